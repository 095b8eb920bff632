"""`hubbub query`: a weighted sum of shares, such as the mean of numeric answers."""

from pathlib import Path
from statistics import median_high, median_low
from typing import Annotated, Any, Final

import grpc
import typer

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import (
    AggregatorOption,
    FormatOfOne,
    FormatOfOneOption,
    KeysOption,
    LevelOption,
    RoundOption,
    Target,
    TargetOption,
)
from hubbub_aggregator.commands.output import AMONG, heading, no_figures, print_json
from hubbub_aggregator.connection import DEFAULT_ADDRESS, TIMEOUT, private_listener
from hubbub_aggregator.csv_table import read_columns
from hubbub_aggregator.percent import fixed, places_for
from hubbub_aggregator.records import TARGETS, provenance, target_name

_FIGURES: Final = ("estimate", "std_error", "low", "high", "influence")

# A standard error that is smaller, next to the weights, is what rounding leaves of none: of a
# variance of 0 some 1e-16.
_NEGLIGIBLE: Final = 1e-7

# Terms of a sum that are spelt out.
_SPELT: Final = 6

_INSTEAD: Final = "; say what the others weigh with --weights FILE.csv"

Weights = list[tuple[str, float]]


def query(
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    weights: Annotated[
        list[str] | None,
        typer.Argument(help="What each value weighs: soup=1 salad=1; all others weigh 0."),
    ] = None,
    *,
    weights_file: Annotated[
        Path | None,
        typer.Option("--weights", help="A CSV file of weights, columns value and weight."),
    ] = None,
    values_as_numbers: Annotated[
        bool, typer.Option("--values-as-numbers", help="Each value weighs the number it is.")
    ] = False,
    round_number: RoundOption = None,
    target: TargetOption = Target.RESPONDENTS,
    level: LevelOption = 0.95,
    output: FormatOfOneOption = FormatOfOne.TABLE,
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
) -> None:
    """Estimate a weighted sum of shares: either of two answers, or a mean."""
    if bool(weights) + (weights_file is not None) + values_as_numbers != 1:
        raise CommandError("say what is summed: VALUE=WEIGHT…, --weights or --values-as-numbers")
    with private_listener(aggregator, keys) as channel:
        if weights_file is not None:
            terms = _read(weights_file)
        elif values_as_numbers:
            terms = _numbers(channel, metric)
        else:
            terms = [_term(text) for text in weights or ()]
        middle = _middle(terms) if values_as_numbers else 0.0
        request = estimate_pb2.QueryRequest(
            metric=metric,
            round=round_number,
            target=TARGETS[target],
            level=level,
            weights=[
                estimate_pb2.Weight(value=value, weight=weight - middle) for value, weight in terms
            ],
        )
        answer = estimate_pb2_grpc.EstimateServiceStub(channel).Query(request, timeout=TIMEOUT)
    _shift(answer, middle)
    if output is FormatOfOne.JSON:
        print_json(_report(answer, terms))
    else:
        print(_text(answer, terms, "mean" if values_as_numbers else _sum(terms)))


def _term(text: str) -> tuple[str, float]:
    value, equals, weight = text.rpartition("=")
    if not equals:
        raise CommandError(f"a weight is written VALUE=WEIGHT, for example soup=1, not {text!r}")
    return value, _number(weight, f"the weight {weight!r} of {value!r}")


def _read(path: Path) -> Weights:
    values, weights = read_columns(path, "value", "weight")
    return [
        (value, _number(weight, f"{path}: the weight {weight!r} of {value!r}"))
        for value, weight in zip(values, weights, strict=True)
    ]


def _numbers(channel: grpc.Channel, metric: str) -> Weights:
    """Every value of a metric, weighing the number that its label is."""
    stub = estimate_pb2_grpc.EstimateServiceStub(channel)
    known = stub.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT).metrics
    # Of a metric that is not there, the aggregator says so itself.
    return [
        (value, _number(value, f"the value {value!r} of {metric!r}", _INSTEAD))
        for summary in known
        if summary.name == metric
        for value in summary.values
    ]


def _middle(terms: Weights) -> float:
    """The number that a mean is reckoned from.

    Shares add up to 1, so Σ w f = m + Σ (w − m) f for every m; what differs is the noise of the
    estimates, whose sum is not 1. From the median on (between two, from what is nearest to 0)
    the weights are least in sum: a mean of years is not one of millennia.
    """
    numbers = [weight for _, weight in terms]
    if not numbers:
        return 0.0
    return min(max(0.0, median_low(numbers)), median_high(numbers))


def _shift(answer: estimate_pb2.QueryResponse, by: float) -> None:
    """Add what the weights were reckoned from to what came of them."""
    if answer.HasField("estimate"):
        answer.estimate += by
        answer.low += by
        answer.high += by


def _number(text: str, of: str, instead: str = "") -> float:
    try:
        return float(text)
    except ValueError:
        raise CommandError(f"{of} is no number{instead}") from None


def _report(answer: estimate_pb2.QueryResponse, terms: Weights) -> dict[str, Any]:
    """The answer as the JSON that scripts rely on; figures are None while n = 0."""
    return {
        **provenance(answer.provenance),
        "target": target_name(answer.target),
        "level": answer.level,
        "weights": [{"value": value, "weight": weight} for value, weight in terms],
        **{name: getattr(answer, name) if answer.HasField(name) else None for name in _FIGURES},
    }


def _text(answer: estimate_pb2.QueryResponse, terms: Weights, name: str) -> str:
    title = heading(answer.provenance)
    if not answer.HasField("estimate"):
        return f"{title}\n{no_figures(answer.provenance)}"
    scale, unit = _unit(terms)
    target = target_name(answer.target)
    error, influence = answer.std_error, answer.influence
    if error < _NEGLIGIBLE * max(abs(weight) for _, weight in terms):
        error = influence = 0.0

    def write(number: float, error: float) -> str:
        return fixed(scale * number, places_for(scale * error))

    return "\n".join(
        (
            title,
            f"{AMONG[target].removeprefix('share ')} ({target}), unbiased",
            "",
            f"{name} = {write(answer.estimate, error)}{unit}",
            f"standard error {write(error, error)}{unit}; {100 * answer.level:g} % interval "
            f"{write(answer.low, error)} to {write(answer.high, error)}{unit}",
            f"One hostile report moves it by up to {write(influence, influence)}{unit}.",
        )
    )


def _unit(terms: Weights) -> tuple[int, str]:
    """In what a sum is written: of whole shares as one, less others in points, else a number."""
    weights = {weight for _, weight in terms}
    if weights <= {0, 1}:
        return 100, " %"
    return (100, " points") if weights <= {0, 1, -1} else (1, "")


def _sum(terms: Weights) -> str:
    weighing = [(value, weight) for value, weight in terms if weight]
    if len(weighing) > _SPELT:
        return f"weighted sum over {len(weighing):,} values"
    first, *rest = (_product(value, weight) for value, weight in weighing)
    return " ".join((first, *(f"− {x[1:]}" if x[0] == "−" else f"+ {x}" for x in rest)))


def _product(value: str, weight: float) -> str:
    sign = "−" if weight < 0 else ""
    return f"{sign}{value}" if abs(weight) == 1 else f"{sign}{abs(weight):g} × {value}"
