"""`python -m hubbub_aggregator` is `hubbub`."""

from hubbub_aggregator.cli import main

main()
