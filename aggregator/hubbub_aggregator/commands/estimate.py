"""`hubbub estimate`: what the newest snapshot says, for people, scripts and spreadsheets."""

import csv
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hubbub_aggregator.arrow import AnalysisMissing, write_parquet
from hubbub_aggregator.candidates import read_candidates
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.private_call import MAX_ROUND, AggregatorOption, KeysOption
from hubbub_aggregator.connection import DEFAULT_ADDRESS
from hubbub_aggregator.percent import decimals, percent
from hubbub_aggregator.reader import Estimates, connect
from hubbub_aggregator.records import COLUMNS
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


AMONG: Final = {
    "respondents": "share among the devices that answered",
    "population": "share among all devices that would have answered",
}


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
    candidates: Annotated[
        Path | None,
        typer.Option(help="Of an open domain: a file of the texts to look for, one a line."),
    ] = None,
    output: Annotated[
        EstimateFormat, typer.Option("--format", help="table, json or csv.")
    ] = EstimateFormat.TABLE,
    to_parquet: Annotated[
        Path | None, typer.Option(help="Write the estimates to this Parquet file instead.")
    ] = None,
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
) -> None:
    """Print a metric's estimates, and how sure they are."""
    if not 0 < level < 1:
        raise CommandError(f"--level is between 0 and 1, for example 0.95, not {level:g}")
    texts = None if candidates is None else read_candidates(candidates)
    with connect(aggregator, keys) as reader:
        answer = reader.estimates(metric, round_number, target, level, texts)
    if to_parquet is not None:
        _write_parquet(answer, to_parquet)
        return
    match output:
        case EstimateFormat.JSON:
            print(json.dumps(answer.report, indent=2, ensure_ascii=False, allow_nan=False))
        case EstimateFormat.CSV:
            _print_csv(answer)
        case EstimateFormat.TABLE:
            print(_table(answer))


def _write_parquet(answer: Estimates, path: Path) -> None:
    try:
        write_parquet(answer.report, path)
    except AnalysisMissing as error:
        raise CommandError(str(error)) from None
    print(f"{path}: {len(answer.report['values']):,} values of {answer.metric}")


def _print_csv(answer: Estimates) -> None:
    writer = csv.DictWriter(sys.stdout, COLUMNS)
    writer.writeheader()
    writer.writerows(answer.to_dicts())


def _table(answer: Estimates) -> str:
    title = f"{answer.metric}, round {answer.round} ({answer.state})"
    epsilon = answer.epsilon
    law = f"{answer.mechanism}, ε = {epsilon.declared} (realised {epsilon.realised})"
    if not answer.n:
        return f"{title}\n{law}\n{_no_figures(answer)}"
    title = f"{title}: n = {answer.n:,} as of {answer.report['as_of']}"
    values = answer.report["values"]
    if not values:
        return f"{title}\n{law}\nan open domain: name candidates with --candidates FILE"
    influence = values[0]["influence"]
    return "\n".join(
        (
            title,
            law,
            f"{AMONG[answer.target]} ({answer.target}), unbiased; "
            f"{100 * answer.level:g} % intervals",
            "",
            text_table(("value", "share", "std error", "low", "high", ""), _rows(values)),
            "",
            f"Each interval holds for its value alone. One hostile report moves a share by up to "
            f"{percent(influence, decimals(influence))}.",
        )
    )


def _no_figures(answer: Estimates) -> str:
    if answer.state == "closed":
        return "no figures: the round closed without a report"
    return (
        f"no figures yet: the first snapshot needs {answer.publish_step:,} reports, "
        f"or the round's end"
    )


def _rows(values: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    places = decimals(min(row["std_error"] for row in values))
    return [
        (
            row["value"],
            *(percent(row[name], places) for name in ("estimate", "std_error", "low", "high")),
            "" if row["distinguishable"] else "not distinguishable from zero",
        )
        for row in values
    ]
