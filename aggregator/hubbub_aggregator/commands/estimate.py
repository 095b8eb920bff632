"""`hubbub estimate`: what the newest snapshot says, for people, scripts and spreadsheets."""

import csv
import json
import math
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.private_call import (
    MAX_ROUND,
    TIMEOUT,
    AggregatorOption,
    KeysOption,
    private_listener,
)
from hubbub_aggregator.connection import DEFAULT_ADDRESS
from hubbub_aggregator.text_table import text_table


class EstimateFormat(StrEnum):
    """How the estimates are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class EstimateTarget(StrEnum):
    """Whose shares are estimated."""

    RESPONDENTS = "respondents"
    POPULATION = "population"


_TARGETS: Final = {
    EstimateTarget.RESPONDENTS: estimate_pb2.TARGET_RESPONDENTS,
    EstimateTarget.POPULATION: estimate_pb2.TARGET_POPULATION,
}
_AMONG: Final = {
    "respondents": "share among the devices that answered",
    "population": "share among all devices that would have answered",
}
_FIGURES: Final = (
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


def estimate(
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    *,
    round_number: Annotated[
        int | None,
        typer.Option(
            "--round",
            min=0,
            max=MAX_ROUND,
            help="Which round; without it the newest with reports.",
        ),
    ] = None,
    target: Annotated[
        EstimateTarget,
        typer.Option(help="Shares among those who answered, or among all who would have."),
    ] = EstimateTarget.RESPONDENTS,
    level: Annotated[
        float, typer.Option(help="Probability that an interval covers, between 0 and 1.")
    ] = 0.95,
    output: Annotated[
        EstimateFormat, typer.Option("--format", help="table, json or csv.")
    ] = EstimateFormat.TABLE,
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
) -> None:
    """Print a metric's estimates, and how sure they are."""
    if not 0 < level < 1:
        raise CommandError(f"--level is between 0 and 1, for example 0.95, not {level:g}")
    request = estimate_pb2.GetEstimatesRequest(
        metric=metric, round=round_number, target=_TARGETS[target], level=level
    )
    with private_listener(aggregator, keys) as channel:
        stub = estimate_pb2_grpc.EstimateServiceStub(channel)
        answer = stub.GetEstimates(request, timeout=TIMEOUT).estimates
    report = as_report(answer)
    match output:
        case EstimateFormat.JSON:
            print(json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False))
        case EstimateFormat.CSV:
            _print_csv(report)
        case EstimateFormat.TABLE:
            print(_table(report, answer))


def as_report(answer: estimate_pb2.Estimates) -> dict[str, Any]:
    """The answer as the JSON that scripts rely on; figures are None while n = 0."""
    as_of = datetime.fromtimestamp(answer.as_of, UTC).isoformat(timespec="milliseconds")
    return {
        "metric": answer.metric,
        "digest": answer.digest.hex(),
        "round": answer.round,
        "n": answer.n,
        "mechanism": answer.mechanism,
        "epsilon": {"declared": answer.epsilon.declared, "realised": answer.epsilon.realised},
        "kind": answer.kind,
        "target": "population"
        if answer.target == estimate_pb2.TARGET_POPULATION
        else "respondents",
        "level": answer.level,
        "as_of": as_of.replace("+00:00", "Z") if answer.n else None,
        "values": [
            {"value": row.value, "count": row.count}
            | {name: getattr(row, name) if answer.n else None for name in _FIGURES}
            for row in answer.values
        ],
    }


def _print_csv(report: dict[str, Any]) -> None:
    shared = ("metric", "digest", "round", "n", "target", "level", "as_of")
    writer = csv.DictWriter(sys.stdout, [*shared, "value", "count", *_FIGURES])
    writer.writeheader()
    for row in report["values"]:
        writer.writerow({name: report[name] for name in shared} | row)


def _table(report: dict[str, Any], answer: estimate_pb2.Estimates) -> str:
    epsilon, state = report["epsilon"], _state(answer)
    title = f"{report['metric']}, round {report['round']} ({state})"
    law = f"{report['mechanism']}, ε = {epsilon['declared']} (realised {epsilon['realised']})"
    if not report["n"]:
        return f"{title}\n{law}\n{_no_figures(answer)}"
    n, level = report["n"], f"{100 * report['level']:g} %"
    influence = report["values"][0]["influence"]
    return "\n".join(
        (
            f"{title}: n = {n:,} as of {report['as_of']}",
            law,
            f"{_AMONG[report['target']]} ({report['target']}), unbiased; {level} intervals",
            "",
            text_table(("value", "share", "std error", "low", "high", ""), _rows(report)),
            "",
            f"Each interval holds for its value alone. One hostile report moves a share by up to "
            f"{_percent(influence, _decimals(influence))}.",
        )
    )


def _no_figures(answer: estimate_pb2.Estimates) -> str:
    if answer.state == estimate_pb2.ROUND_STATE_CLOSED:
        return "no figures: the round closed without a report"
    return (
        f"no figures yet: the first snapshot needs {answer.publish_step:,} reports, "
        f"or the round's end"
    )


def _rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    values = report["values"]
    decimals = _decimals(min(row["std_error"] for row in values))
    return [
        (
            row["value"],
            *(_percent(row[name], decimals) for name in ("estimate", "std_error", "low", "high")),
            "" if row["distinguishable"] else "not distinguishable from zero",
        )
        for row in values
    ]


def _decimals(error: float) -> int:
    """Decimals of a percentage that show two digits of its error, and no more."""
    return max(0, 1 - math.floor(math.log10(100 * error)))


def _percent(share: float, decimals: int) -> str:
    return f"{100 * share:.{decimals}f} %"


def _state(answer: estimate_pb2.Estimates) -> str:
    name = estimate_pb2.RoundState.Name(answer.state).removeprefix("ROUND_STATE_")
    return name.lower().replace("_", " ")
