"""Differences as plain data: what scripts, spreadsheets and notebooks rely on.

Keys are added here, never renamed.
"""

from typing import Any, Final

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.records import provenance, target_name

_FIGURES: Final = (
    "estimate",
    "std_error",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "p_value",
    "adjusted_p_value",
    "distinguishable",
)
COMPARISON_COLUMNS: Final = (
    *(f"{side}_{name}" for side in ("left", "right") for name in ("metric", "round", "n")),
    *("target", "level", "left", "right"),
    *_FIGURES,
)


def as_comparison_report(answer: estimate_pb2.CompareResponse) -> dict[str, Any]:
    """The answer as `hubbub compare --format json` prints it; figures are None while a side has
    no reports."""
    is_known = bool(answer.left.n and answer.right.n)
    return {
        "left": provenance(answer.left),
        "right": provenance(answer.right),
        "target": target_name(answer.target),
        "level": answer.level,
        "comparisons": len(answer.differences),
        "differences": [
            {"left": row.values.left, "right": row.values.right}
            | {name: getattr(row, name) if is_known else None for name in _FIGURES}
            for row in answer.differences
        ],
    }


def comparison_rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each difference, which says on its own what it is a difference of."""
    shared = {name: report[name] for name in ("target", "level")}
    for side in ("left", "right"):
        shared |= {f"{side}_{name}": report[side][name] for name in ("metric", "round", "n")}
    return [shared | row for row in report["differences"]]
