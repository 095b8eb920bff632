"""`hubbub estimate`: what the newest snapshot says, for people, scripts and spreadsheets; or
those of several rounds together."""

from pathlib import Path
from typing import Annotated

import typer

from hubbub_aggregator.answers import Estimates, PooledEstimates
from hubbub_aggregator.arrow import AnalysisMissing, write_parquet
from hubbub_aggregator.candidates import read_candidates
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.estimate_text import NAME_CANDIDATES, estimate_text
from hubbub_aggregator.commands.options import (
    AggregatorOption,
    Format,
    KeysOption,
    LevelOption,
    RoundOption,
    RoundsOption,
    Target,
    TargetOption,
    rounds_named,
)
from hubbub_aggregator.commands.output import print_csv, print_json, remark
from hubbub_aggregator.connection import DEFAULT_ADDRESS
from hubbub_aggregator.reader import connect
from hubbub_aggregator.records import columns


def estimate(
    metric: Annotated[str, typer.Argument(help="The metric's name.")],
    *,
    round_number: RoundOption = None,
    rounds: RoundsOption = None,
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
    if rounds is not None and not (round_number is None and candidates is None):
        raise CommandError("--rounds go with neither --round nor --candidates")
    texts = None if candidates is None else read_candidates(candidates)
    answer: Estimates | PooledEstimates
    with connect(aggregator, keys) as reader:
        if rounds is None:
            answer = reader.estimates(metric, round_number, target, level, texts)
        else:
            answer = reader.pooled(metric, rounds_named(rounds), target, level)
    is_table = to_parquet is None and output in (None, Format.TABLE)
    if not (is_table or answer.report["values"]):
        remark(f"{metric} has {NAME_CANDIDATES}")
    if to_parquet is not None:
        _write_parquet(answer, to_parquet)
        return
    match output:
        case Format.JSON:
            print_json(answer.report)
        case Format.CSV:
            print_csv(columns(answer.report), answer.to_dicts())
        case _:
            print(estimate_text(answer))


def _write_parquet(answer: Estimates | PooledEstimates, path: Path) -> None:
    try:
        write_parquet(answer.report, path)
    except AnalysisMissing as error:
        raise CommandError(str(error)) from None
    print(f"{path}: {len(answer.report['values']):,} values of {answer.metric}")
