"""One file for each `hubbub` command."""

from hubbub_aggregator.mistakes import Mistake


class CommandError(Mistake):
    """What is wrong with how a command was called, or with what it met."""
