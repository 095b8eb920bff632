"""`hubbub compare`: what differs between values, rounds or metrics, and how surely."""

from collections.abc import Iterable
from typing import Annotated, Final

import typer

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import (
    AggregatorOption,
    Format,
    FormatOption,
    KeysOption,
    LevelOption,
    Target,
    TargetOption,
)
from hubbub_aggregator.commands.output import heading, no_figures, print_csv, print_json, whose
from hubbub_aggregator.comparison_record import (
    COMPARISON_COLUMNS,
    as_comparison_report,
    comparison_rows,
)
from hubbub_aggregator.connection import DEFAULT_ADDRESS, TIMEOUT, private_listener
from hubbub_aggregator.percent import decimals, fixed
from hubbub_aggregator.records import TARGETS, target_name
from hubbub_aggregator.text_table import text_table

# So many differences, or fewer, are told in sentences.
_TOLD: Final = 3

_MULTIPLICITY: Final = (
    "{:,} comparisons: each interval and each p holds for its own, adjusted p (Holm) for all.\n"
    "Not distinguishable: the simultaneous interval, wider than the one shown, holds 0."
)


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
    target: TargetOption = Target.RESPONDENTS,
    level: LevelOption = 0.95,
    output: FormatOption = Format.TABLE,
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
) -> None:
    """Compare the shares of two values, two rounds, or two metrics."""
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
        case Format.JSON:
            print_json(as_comparison_report(answer))
        case Format.CSV:
            print_csv(COMPARISON_COLUMNS, comparison_rows(as_comparison_report(answer)))
        case Format.TABLE:
            print(_text(answer))


def _text(answer: estimate_pb2.CompareResponse) -> str:
    left, right = answer.left, answer.right
    titles = [heading(left)] if left == right else [heading(left), heading(right)]
    if not (left.n and right.n):
        return "\n".join((*titles, no_figures(right if left.n else left)))
    m = len(answer.differences)
    lines = [*titles, whose(target_name(answer.target), answer.level), ""]
    if m <= _TOLD:
        lines += [_sentence(answer, row) for row in answer.differences]
    else:
        lines.append(_table(answer))
    if m > 1:
        lines += ["", _MULTIPLICITY.format(m)]
    return "\n".join(lines)


def _sentence(answer: estimate_pb2.CompareResponse, row: estimate_pb2.Difference) -> str:
    left, right = _names(answer, row)
    figures = row.estimate, row.std_error, row.low, row.high
    difference, error, low, high = _points(figures, row.std_error)
    m = len(answer.differences)
    adjusted = f", adjusted for {m} comparisons {_p(row.adjusted_p_value)}" if m > 1 else ""
    return (
        f"{left} − {right} = {difference} points ({low} to {high}), standard error {error}; "
        f"p {_p(row.p_value)}{adjusted}{_doubt(row, '; ')}"
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
    return [fixed(100 * share, places) for share in shares]


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
