"""The demo's people: a table whose every row becomes a device with its true answers."""

import re
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub.limits import MAX_VALUES
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.output import remark
from hubbub_aggregator.csv_table import read_columns
from hubbub_aggregator.definitions import Definitions, MetricDefinition, read_definitions

# Beside the packages in a checkout; where an installed wheel puts its data otherwise.
_EXAMPLES: Final = (
    Path(__file__).resolve().parents[3] / "examples",
    Path(sysconfig.get_path("data")) / "share" / "hubbub" / "examples",
)
_NO_ANSWER: Final = "(no answer)"
# More values than anybody reads through in a terminal.
_MANY_VALUES: Final = 200


@dataclass(frozen=True, slots=True)
class People:
    """What is asked, and every person's true answer to it."""

    definitions: Definitions
    answers: Mapping[str, Sequence[str | None]]
    """By metric; position i is person i, None for no answer."""

    @property
    def count(self) -> int:
        return len(next(iter(self.answers.values())))


def _doctor_visits(text: str) -> str:
    """The bucket that a number of visits falls in."""
    visits = int(text)
    if visits <= 2:
        return text
    if visits <= 5:
        return "3–5"
    return "6–10" if visits <= 10 else "11+"


# Which column answers which metric of rand_hie.toml, and how a cell becomes a value.
_RAND_COLUMNS: Final[Mapping[str, tuple[str, Callable[[str], str]]]] = {
    "health.self_rated": ("health", str),
    "health.physical_limitation": ("physical_limitation", {"0": "no", "1": "yes"}.__getitem__),
    "health.doctor_visits": ("doctor_visits", _doctor_visits),
}


def rand_hie() -> People:
    """20,190 person-years of the RAND Health Insurance Experiment."""
    folder = next((folder for folder in _EXAMPLES if (folder / "rand_hie.csv").exists()), None)
    if folder is None:
        raise CommandError(
            "the example data is not installed; run this in a checkout, or give --csv and --column"
        )
    columns = read_columns(
        folder / "rand_hie.csv", *(column for column, _ in _RAND_COLUMNS.values())
    )
    answers = {
        metric: list(map(value, cells))
        for (metric, (_, value)), cells in zip(_RAND_COLUMNS.items(), columns, strict=True)
    }
    return People(read_definitions(folder / "rand_hie.toml"), answers)


def column_of(path: Path, column: str, epsilon: str) -> People:
    """One column of anybody's CSV file; its distinct cells become the metric's values.

    For a demonstration only: a real domain is written down before anybody is asked, since
    one that is read off the answers tells that somebody gave each of them.
    """
    (cells,) = read_columns(path, column)
    values = sorted(set(cells) - {""}, key=_natural)
    if len(values) > MAX_VALUES:
        raise CommandError(
            f"column {column!r} of {path} has {len(values):,} distinct values; a metric has at "
            f"most {MAX_VALUES:,}"
        )
    if len(values) > _MANY_VALUES:
        remark(f"column {column!r} has {len(values):,} distinct values: the table is long")
    metric = MetricDefinition(
        name=_metric_name(column),
        question=_encodable(f"What is in column {column} of {path.name}?"),
        source="demo",
        values=values,
        absent=_NO_ANSWER if "" in cells else "",
        epsilon=_encodable(epsilon),
    )
    return People(Definitions(metric=[metric]), {metric.name: [cell or None for cell in cells]})


def _metric_name(column: str) -> str:
    """The column's name with a "-" for whatever a metric's name cannot have."""
    name = re.sub(r"[^a-z0-9._-]", "-", column.strip().lower())[:64]
    return name if re.search(r"[a-z0-9]", name) else "column"


def _encodable(text: str) -> str:
    """The text with a "?" for each byte of a command line that was not UTF-8."""
    return text.encode(errors="replace").decode()


def _natural(cell: str) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by the alphabet."""
    try:
        return False, float(cell), cell
    except ValueError:
        return True, 0.0, cell
