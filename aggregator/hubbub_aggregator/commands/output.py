"""What commands print: JSON and CSV for scripts, and the lines that several have for people."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hubbub.printing import for_programs
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.csv_rows import write_csv
from hubbub_aggregator.records import provenance, state_name

# What is stored of a round that was forgotten is what is stored of one that nobody answered.
EMPTY: Final = "closed with no reports, or its counts were forgotten"

AMONG: Final = {
    "respondents": "share among the devices that answered",
    "population": "share among all devices that would have answered",
}


def remark(text: str) -> None:
    """Tell a person what was noticed, beside what a command prints."""
    print(f"hubbub: {text}", file=sys.stderr)


def print_json(report: Mapping[str, Any]) -> None:
    for_programs(sys.stdout)
    print(json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False))


def print_csv(columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows under a header; what is None is left empty."""
    for_programs(sys.stdout)
    write_csv(sys.stdout, columns, rows)


def whose(target: str, level: float, among: Mapping[str, str] = AMONG) -> str:
    """One line: what is estimated, and what its intervals are. `among`: by target."""
    return f"{among[target]} ({target}), unbiased; {100 * level:g} % intervals"


def heading(of: estimate_pb2.Provenance) -> str:
    """One line: which snapshot, and the law of its reports."""
    source = provenance(of)
    epsilon, as_of = source["epsilon"], f" as of {source['as_of']}" if of.n else ""
    return (
        f"{of.metric}, round {of.round} ({state_name(of.state)}): n = {of.n:,}{as_of}; "
        f"{of.mechanism}, ε = {epsilon['declared']} (realised {epsilon['realised']})"
    )


def no_figures(of: estimate_pb2.Provenance) -> str:
    """Why there is nothing to say of a snapshot that is not there."""
    if of.state == estimate_pb2.ROUND_STATE_CLOSED:
        return f"no figures: round {of.round} of {of.metric} {EMPTY}"
    return f"no figures yet: round {of.round} of {of.metric} has no snapshot; ask again later"
