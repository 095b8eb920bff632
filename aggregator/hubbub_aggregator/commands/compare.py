"""`hubbub compare`: what differs between values, rounds or metrics, and how surely."""

import csv
import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.asking import (
    TARGETS,
    LevelOption,
    TargetOption,
    heading,
    no_figures,
    require_level,
)
from hubbub_aggregator.commands.estimate import AMONG, EstimateTarget
from hubbub_aggregator.commands.private_call import (
    TIMEOUT,
    AggregatorOption,
    KeysOption,
    private_listener,
)
from hubbub_aggregator.connection import DEFAULT_ADDRESS
from hubbub_aggregator.percent import decimals
from hubbub_aggregator.records import provenance, target_name
from hubbub_aggregator.text_table import text_table

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
_COLUMNS: Final = (
    *(f"{side}_{name}" for side in ("left", "right") for name in ("metric", "round", "n")),
    *("target", "level", "left", "right"),
    *_FIGURES,
)
# So many differences, or fewer, are told in sentences.
_TOLD: Final = 3

_MULTIPLICITY: Final = (
    "{:,} comparisons: each interval and each p holds for its own; adjusted p (Holm) and what is "
    "distinguishable hold for all at once."
)


class CompareFormat(StrEnum):
    """How the differences are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def compare(
    metric: Annotated[str, typer.Argument(help="The metric on the left.")],
    other_metric: Annotated[
        str | None,
        typer.Argument(metavar="[METRIC2]", help="The metric on the right; without it the same."),
    ] = None,
    *,
    rounds: Annotated[
        tuple[int, int] | None,
        typer.Option(metavar="A B", help="The rounds on the left and on the right."),
    ] = None,
    left: Annotated[
        list[str] | None,
        typer.Option(
            help="A value on the left, for the --right in its place; both may be repeated. "
            "Without them every value is compared with itself."
        ),
    ] = None,
    right: Annotated[list[str] | None, typer.Option(help="A value on the right.")] = None,
    target: TargetOption = EstimateTarget.RESPONDENTS,
    level: LevelOption = 0.95,
    output: Annotated[
        CompareFormat, typer.Option("--format", help="table, json or csv.")
    ] = CompareFormat.TABLE,
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
) -> None:
    """Compare the shares of two values, two rounds, or two metrics."""
    require_level(level)
    if rounds is not None and min(rounds) < 0:
        raise CommandError(f"--rounds are counted from 0, not from {min(rounds)}")
    if len(left or ()) != len(right or ()):
        raise CommandError("give as many --left as --right: each pair is one comparison")
    left_round, right_round = rounds or (None, None)
    request = estimate_pb2.CompareRequest(
        left=estimate_pb2.RoundOfMetric(metric=metric, round=left_round),
        right=estimate_pb2.RoundOfMetric(metric=other_metric or metric, round=right_round),
        pairs=[
            estimate_pb2.ValuePair(left=one, right=other)
            for one, other in zip(left or (), right or (), strict=True)
        ],
        target=TARGETS[target],
        level=level,
    )
    with private_listener(aggregator, keys) as channel:
        answer = estimate_pb2_grpc.EstimateServiceStub(channel).Compare(request, timeout=TIMEOUT)
    match output:
        case CompareFormat.JSON:
            print(json.dumps(_report(answer), indent=2, ensure_ascii=False, allow_nan=False))
        case CompareFormat.CSV:
            _print_csv(_report(answer))
        case CompareFormat.TABLE:
            print(_text(answer))


def _report(answer: estimate_pb2.CompareResponse) -> dict[str, Any]:
    """The answer as the JSON that scripts rely on; figures are None while either n = 0."""
    return {
        "left": provenance(answer.left),
        "right": provenance(answer.right),
        "target": target_name(answer.target),
        "level": answer.level,
        "comparisons": len(answer.differences),
        "differences": [
            {"left": row.values.left, "right": row.values.right}
            | {name: getattr(row, name) if _is_known(answer) else None for name in _FIGURES}
            for row in answer.differences
        ],
    }


def _is_known(answer: estimate_pb2.CompareResponse) -> bool:
    return bool(answer.left.n and answer.right.n)


def _print_csv(report: dict[str, Any]) -> None:
    shared = {name: report[name] for name in ("target", "level")}
    for side in ("left", "right"):
        shared |= {f"{side}_{name}": report[side][name] for name in ("metric", "round", "n")}
    writer = csv.DictWriter(sys.stdout, _COLUMNS)
    writer.writeheader()
    writer.writerows(shared | row for row in report["differences"])


def _text(answer: estimate_pb2.CompareResponse) -> str:
    left, right = answer.left, answer.right
    titles = [heading(left)] if left == right else [heading(left), heading(right)]
    if not _is_known(answer):
        return "\n".join((*titles, no_figures(right if left.n else left)))
    target, m = target_name(answer.target), len(answer.differences)
    lines = [
        *titles,
        f"{AMONG[target]} ({target}), unbiased; {100 * answer.level:g} % intervals",
        "",
    ]
    if m <= _TOLD:
        lines += [_sentence(answer, row) for row in answer.differences]
    else:
        lines.append(_table(answer))
    if m > 1:
        lines += ["", _MULTIPLICITY.format(m)]
    return "\n".join(lines)


def _sentence(answer: estimate_pb2.CompareResponse, row: estimate_pb2.Difference) -> str:
    left, right = _names(answer, row)
    way, ends = (
        ("more", (row.low, row.high)) if row.estimate > 0 else ("less", (-row.high, -row.low))
    )
    size, error, low, high = _points((abs(row.estimate), row.std_error, *ends), row.std_error)
    m = len(answer.differences)
    adjusted = f", adjusted for {m} comparisons {_p(row.adjusted_p_value)}" if m > 1 else ""
    return (
        f"{left} is {size} percentage points {way} frequent than {right} (standard error {error}, "
        f"interval {low} to {high}); p {_p(row.p_value)}{adjusted}{_doubt(row, '; ')}"
    )


def _table(answer: estimate_pb2.CompareResponse) -> str:
    least = min(row.std_error for row in answer.differences)
    rows = [
        (
            *_names(answer, row),
            *_points((row.estimate, row.std_error, row.low, row.high), least),
            _p(row.p_value).removeprefix("= "),
            _p(row.adjusted_p_value).removeprefix("= "),
            _doubt(row),
        )
        for row in answer.differences
    ]
    header = ("left", "right", "points", "std error", "low", "high", "p", "adjusted p", "")
    return text_table(header, rows, left=2)


def _points(shares: Iterable[float], error: float) -> list[str]:
    """Percentage points, with the digits that an error is worth."""
    places = decimals(error)
    return [f"{100 * share:.{places}f}" for share in shares]


def _doubt(row: estimate_pb2.Difference, before: str = "") -> str:
    return "" if row.distinguishable else f"{before}not distinguishable from no difference"


def _names(answer: estimate_pb2.CompareResponse, row: estimate_pb2.Difference) -> tuple[str, str]:
    """What is on either side, with what the sides differ in."""
    sides = answer.left, answer.right
    values = row.values.left, row.values.right
    if answer.left == answer.right:
        return values
    if answer.left.metric == answer.right.metric:
        one, other = (f"{v} in round {side.round}" for v, side in zip(values, sides, strict=True))
    else:
        one, other = (f"{v} in {side.metric}" for v, side in zip(values, sides, strict=True))
    return one, other


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"= {value:.2g}"
