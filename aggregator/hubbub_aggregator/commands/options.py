"""Options that several commands have, each of them said once."""

import re
from enum import StrEnum
from math import nan
from pathlib import Path
from typing import Annotated, Final

import typer

from hubbub_aggregator.commands import CommandError

# What a round's number can be asked for; the aggregator says which ones there are.
MAX_ROUND: Final = (1 << 63) - 1


class Target(StrEnum):
    """Whose shares are estimated."""

    RESPONDENTS = "respondents"
    POPULATION = "population"


class Format(StrEnum):
    """How figures of many values are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


class FormatOfOne(StrEnum):
    """How an answer is written that has no row for each value."""

    TABLE = "table"
    JSON = "json"


def _level(text: str) -> float:
    """Raises CommandError."""
    try:
        level = float(text)
    except ValueError:
        level = nan
    if not 0 < level < 1:
        raise CommandError(f"--level is between 0 and 1, for example 0.95, not {text}")
    return level


def rounds_named(text: str) -> tuple[int, int] | None:
    """The first and the last round of "0-29"; None for "all". Raises CommandError."""
    if text == "all":
        return None
    named = re.fullmatch(r"(\d{1,18})-(\d{1,18})", text, re.ASCII)
    if named is None:
        raise CommandError(f"--rounds are FIRST-LAST, for example 0-29, or all; not {text}")
    return int(named[1]), int(named[2])


AggregatorOption = Annotated[str, typer.Option(help="The private listener, host:port.")]
KeysOption = Annotated[
    Path | None,
    typer.Option(help="The keys folder, if the private listener runs with --private-tls."),
]
RoundOption = Annotated[
    int | None,
    typer.Option(
        "--round", min=0, max=MAX_ROUND, help="Which round; without it the newest with reports."
    ),
]
RoundsOption = Annotated[
    str | None,
    typer.Option(
        "--rounds", metavar="FIRST-LAST", help="Pool these rounds, for example 0-29; or all."
    ),
]
TargetOption = Annotated[
    Target, typer.Option(help="Shares among those who answered, or among all who would have.")
]
LevelOption = Annotated[
    float,
    typer.Option(
        parser=_level, metavar="LEVEL", help="Probability that an interval covers, 0 to 1."
    ),
]
FormatOption = Annotated[Format, typer.Option("--format", help="table, json or csv.")]
FormatOfOneOption = Annotated[FormatOfOne, typer.Option("--format", help="table or json.")]
