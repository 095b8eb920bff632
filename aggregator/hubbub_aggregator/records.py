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
    "found",
    "consistent",
)
_OF_VALUE: Final = ("value", "count", *FIGURES)
# What a row says of the snapshot it is from, or of the snapshots.
_OF_SNAPSHOT: Final = ("metric", "digest", "round", "n", "target", "level", "as_of")
_OF_POOL: Final = (
    *("metric", "digest", "first_round", "last_round", "pooled_rounds"),
    *("n", "target", "level", "at_most", "as_of"),
)
COLUMNS: Final[tuple[str, ...]] = (*_OF_SNAPSHOT, *_OF_VALUE)
POOLED_COLUMNS: Final[tuple[str, ...]] = (*_OF_POOL, *_OF_VALUE)

TARGETS: Final[dict[str, estimate_pb2.Target.ValueType]] = {
    "respondents": estimate_pb2.TARGET_RESPONDENTS,
    "population": estimate_pb2.TARGET_POPULATION,
}

Sourced = estimate_pb2.Estimates | estimate_pb2.PoolResponse | estimate_pb2.Provenance


def as_report(answer: estimate_pb2.Estimates) -> dict[str, Any]:
    """The answer as `hubbub estimate --format json` prints it; figures are None while n = 0."""
    return _source(answer, round=answer.round) | _figures(answer)


def as_pooled_report(answer: estimate_pb2.PoolResponse) -> dict[str, Any]:
    """The answer as `hubbub estimate --rounds … --format json` prints it."""
    reported = {summary.round: summary.n for summary in answer.rounds}
    asked = range(answer.first, answer.last + 1)
    rounds = {
        "first_round": answer.first,
        "last_round": answer.last,
        "pooled_rounds": len(reported),
        "rounds": [{"round": number, "n": n} for number, n in reported.items()],
        "without_reports": [number for number in asked if number not in reported],
    }
    return _source(answer, **rounds) | {"at_most": answer.at_most} | _figures(answer)


def provenance(of: estimate_pb2.Provenance) -> dict[str, Any]:
    """Where figures come from; `as_of` is None while n = 0."""
    return _source(of, round=of.round) | {"as_of": _as_of(of)}


def target_name(target: estimate_pb2.Target.ValueType) -> str:
    """ "respondents" or "population"."""
    return estimate_pb2.Target.Name(target).removeprefix("TARGET_").lower()


def state_name(state: estimate_pb2.RoundState.ValueType) -> str:
    """ "not begun", "open" or "closed"."""
    if state == estimate_pb2.ROUND_STATE_NOT_OPEN:
        return "not begun"
    return estimate_pb2.RoundState.Name(state).removeprefix("ROUND_STATE_").lower()


def _source(of: Sourced, **rounds: Any) -> dict[str, Any]:
    return {
        "metric": of.metric,
        "digest": of.digest.hex(),
        **rounds,
        "n": of.n,
        "plain": of.plain,
        "mechanism": of.mechanism,
        "epsilon": {"declared": of.epsilon.declared, "realised": of.epsilon.realised},
    }


def _figures(answer: estimate_pb2.Estimates | estimate_pb2.PoolResponse) -> dict[str, Any]:
    return {
        "kind": answer.kind,
        "target": target_name(answer.target),
        "level": answer.level,
        "as_of": _as_of(answer),
        "values": [
            {"value": row.value, "count": row.count}
            | {name: _figure(row, name) if answer.n else None for name in FIGURES}
            for row in answer.values
        ],
    }


def _figure(row: estimate_pb2.ValueEstimate, name: str) -> Any:
    if name == "consistent" and not row.HasField("consistent"):
        return None
    return getattr(row, name)


def _as_of(of: Sourced) -> str | None:
    if not of.n:
        return None
    as_of = datetime.fromtimestamp(of.as_of, UTC).isoformat(timespec="milliseconds")
    return as_of.replace("+00:00", "Z")


def columns(report: dict[str, Any]) -> tuple[str, ...]:
    """The columns of its rows."""
    return COLUMNS if "round" in report else POOLED_COLUMNS


def rows(report: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each value, which says on its own which snapshot, or which, it is from."""
    shared = {name: report[name] for name in columns(report) if name in report}
    return [shared | value for value in report["values"]]
