"""Estimates as plain data: what scripts, spreadsheets and notebooks rely on.

Keys are added here, never renamed.
"""

from datetime import UTC, datetime
from typing import Any, Final

from hubbub.v1 import estimate_pb2

FIGURES: Final = (
    "estimate",
    "std_error",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "distinguishable",
    "rank_low",
    "rank_high",
    "influence",
)
# What a row says of the snapshot it is from.
_OF_SNAPSHOT: Final = ("metric", "digest", "round", "n", "target", "level", "as_of")
COLUMNS: Final[tuple[str, ...]] = (*_OF_SNAPSHOT, "value", "count", *FIGURES)

TARGETS: Final[dict[str, estimate_pb2.Target.ValueType]] = {
    "respondents": estimate_pb2.TARGET_RESPONDENTS,
    "population": estimate_pb2.TARGET_POPULATION,
}


def as_report(answer: estimate_pb2.Estimates) -> dict[str, Any]:
    """The answer as `hubbub estimate --format json` prints it; figures are None while n = 0."""
    return {
        **_source(answer),
        "kind": answer.kind,
        "target": target_name(answer.target),
        "level": answer.level,
        "as_of": _as_of(answer),
        "values": [
            {"value": row.value, "count": row.count}
            | {name: getattr(row, name) if answer.n else None for name in FIGURES}
            for row in answer.values
        ],
    }


def provenance(of: estimate_pb2.Provenance) -> dict[str, Any]:
    """Where figures come from; `as_of` is None while n = 0."""
    return {**_source(of), "as_of": _as_of(of)}


def target_name(target: estimate_pb2.Target.ValueType) -> str:
    """ "respondents" or "population"."""
    return estimate_pb2.Target.Name(target).removeprefix("TARGET_").lower()


def state_name(state: estimate_pb2.RoundState.ValueType) -> str:
    """ "not begun", "open" or "closed"."""
    if state == estimate_pb2.ROUND_STATE_NOT_OPEN:
        return "not begun"
    return estimate_pb2.RoundState.Name(state).removeprefix("ROUND_STATE_").lower()


def _source(of: estimate_pb2.Estimates | estimate_pb2.Provenance) -> dict[str, Any]:
    return {
        "metric": of.metric,
        "digest": of.digest.hex(),
        "round": of.round,
        "n": of.n,
        "mechanism": of.mechanism,
        "epsilon": {"declared": of.epsilon.declared, "realised": of.epsilon.realised},
    }


def _as_of(of: estimate_pb2.Estimates | estimate_pb2.Provenance) -> str | None:
    if not of.n:
        return None
    as_of = datetime.fromtimestamp(of.as_of, UTC).isoformat(timespec="milliseconds")
    return as_of.replace("+00:00", "Z")


def rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A row of COLUMNS for each value, which says on its own which snapshot it is from."""
    of_snapshot = {name: report[name] for name in _OF_SNAPSHOT}
    return [of_snapshot | value for value in report["values"]]
