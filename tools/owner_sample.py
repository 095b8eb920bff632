"""Write the page in docs/owner.md, or with --check compare it.

Run as `python -m tools.owner_sample`. Keys, and what is sealed with them, are other ones in every
run: in the document they are made up.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from hubbub.statement import Statement
from tests import owners
from tests.bundles import Operator

DOCUMENT: Final = Path(__file__).resolve().parent.parent / "docs" / "owner.md"

_BEGIN: Final = "<!-- written by tools/owner_sample.py -->\n"
_END: Final = "<!-- end of the sample -->\n"


def sample(operator: Operator) -> str:
    """The page, as Markdown."""
    names = (owners.ONCE, owners.SAMPLED, owners.MEMO["memoised-local-hashing"])
    with owners.month(operator, *names) as owned:
        facts = owned.client.statement()
    text = facts.text(newest=2)
    for count, number in enumerate(_new_in_every_run(facts)):
        made_up = hashlib.sha256(str(count).encode()).hexdigest()
        text = text.replace(number, made_up[: len(number)])
    return f"```\n{text}\n```\n"


def _new_in_every_run(facts: Statement) -> Iterator[str]:
    """The hexadecimal numbers that come from keys and sealing."""
    for bundle in facts.bundles:
        yield bundle.operator.removeprefix("ed25519:")
        yield bundle.fingerprint.hex()
    reports = (report for metric in facts.metrics for report in metric.reports)
    for departure in (departure for report in reports for departure in report.departures):
        yield departure.key_id.hex()
        yield (departure.sha256 or b"").hex()[:16]


def document(operator: Operator) -> str:
    """The document as it should be."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise SystemExit(f"{DOCUMENT} has no place for the sample")
    return f"{before}{begin}\n{sample(operator)}\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        written = document(Operator.create(Path(folder) / "keys"))
    if not check:
        DOCUMENT.write_text(written, encoding="utf-8")
    elif written != DOCUMENT.read_text(encoding="utf-8"):
        raise SystemExit(f"{DOCUMENT} is out of date: run python -m tools.owner_sample")


if __name__ == "__main__":
    main()
