"""The demo's end: truth beside estimate, and whether anything was lost or doubled."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.demo.people import People
from hubbub_aggregator.percent import decimals, percent
from hubbub_aggregator.text_table import text_table


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of the demo."""

    table: str
    sent: int
    lost: int
    doubled: int


def judge(
    people: People, bundle: Bundle, estimates: Mapping[str, estimate_pb2.Estimates]
) -> Verdict:
    """Compare every metric's closed round with the answers that its devices were given."""
    rows: list[list[str]] = []
    inside = lost = doubled = 0
    for name, answers in people.answers.items():
        found = estimates[name]
        lost += max(0, len(answers) - found.n)
        doubled += max(0, found.n - len(answers))
        domain = bundle.metrics[name].domain
        truths = Counter(domain.indices[answer] for answer in answers)
        places = decimals(min(value.std_error for value in found.values))
        for index, value in enumerate(found.values):
            truth = truths[index] / len(answers)
            covered = value.low <= truth <= value.high
            inside += covered
            rows.append(
                [
                    name if index == 0 else "",
                    value.value,
                    percent(truth, places),
                    percent(value.estimate, places),
                    f"{percent(value.low, places)} to {percent(value.high, places)}",
                    "inside" if covered else "outside",
                ]
            )
    header = ("metric", "value", "truth", "estimate", "95 % interval", "")
    summary = f"{inside} of {len(rows)} truths inside their interval; about 1 in 20 misses"
    return Verdict(
        table=f"{text_table(header, rows, left=2)}\n\n{summary}",
        sent=people.count * len(people.answers),
        lost=lost,
        doubled=doubled,
    )
