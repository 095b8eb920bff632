"""`hubbub estimate`: what the newest snapshot says, for people, scripts and spreadsheets."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hubbub_aggregator.arrow import AnalysisMissing, write_parquet
from hubbub_aggregator.candidates import read_candidates
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.options import (
    AggregatorOption,
    Format,
    KeysOption,
    LevelOption,
    RoundOption,
    Target,
    TargetOption,
)
from hubbub_aggregator.commands.output import print_csv, print_json, remark, whose
from hubbub_aggregator.connection import DEFAULT_ADDRESS
from hubbub_aggregator.percent import decimals, percent
from hubbub_aggregator.reader import Estimates, connect
from hubbub_aggregator.records import COLUMNS
from hubbub_aggregator.text_table import text_table

_NAME_CANDIDATES: Final = "an open domain: name candidates with --candidates FILE"


def estimate(
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    *,
    round_number: RoundOption = None,
    target: TargetOption = Target.RESPONDENTS,
    level: LevelOption = 0.95,
    candidates: Annotated[
        Path | None,
        typer.Option(help="Of an open domain: a file of the texts to look for, one a line."),
    ] = None,
    output: Annotated[
        Format | None, typer.Option("--format", help="table, json or csv.  [default: table]")
    ] = None,
    to_parquet: Annotated[
        Path | None, typer.Option(help="Write the estimates to this Parquet file instead.")
    ] = None,
    aggregator: AggregatorOption = DEFAULT_ADDRESS,
    keys: KeysOption = None,
) -> None:
    """Print a metric's estimates, and how sure they are."""
    if output is not None and to_parquet is not None:
        raise CommandError("give --format or --to-parquet: a Parquet file is a format of its own")
    texts = None if candidates is None else read_candidates(candidates)
    with connect(aggregator, keys) as reader:
        answer = reader.estimates(metric, round_number, target, level, texts)
    is_table = to_parquet is None and output in (None, Format.TABLE)
    if not (is_table or answer.report["values"]):
        remark(f"{metric} has {_NAME_CANDIDATES}")
    if to_parquet is not None:
        _write_parquet(answer, to_parquet)
        return
    match output:
        case Format.JSON:
            print_json(answer.report)
        case Format.CSV:
            print_csv(COLUMNS, answer.to_dicts())
        case _:
            print(_table(answer))


def _write_parquet(answer: Estimates, path: Path) -> None:
    try:
        write_parquet(answer.report, path)
    except AnalysisMissing as error:
        raise CommandError(str(error)) from None
    print(f"{path}: {len(answer.report['values']):,} values of {answer.metric}")


def _table(answer: Estimates) -> str:
    title = f"{answer.metric}, round {answer.round} ({answer.state})"
    epsilon = answer.epsilon
    law = f"{answer.mechanism}, ε = {epsilon.declared} (realised {epsilon.realised})"
    if not answer.n:
        return f"{title}\n{law}\n{_no_figures(answer)}"
    title = f"{title}: n = {answer.n:,} as of {answer.report['as_of']}"
    values = answer.report["values"]
    if not values:
        return f"{title}\n{law}\n{_NAME_CANDIDATES}"
    influence = values[0]["influence"]
    return "\n".join(
        (
            title,
            law,
            whose(answer.target, answer.level),
            "",
            text_table(("value", "share", "std error", "low", "high", ""), _rows(values)),
            "",
            f"Each interval holds for its value alone. One hostile report moves a share by up to "
            f"{percent(influence, decimals(influence))}.",
            "Not distinguishable from zero is judged over all values at once.",
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
