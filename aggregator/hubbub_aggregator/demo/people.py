"""The demo's people: a table whose every row becomes a device with its true answers."""

import csv
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.definitions import Definitions, MetricDefinition, read_definitions

# Beside the packages in a checkout; where an installed wheel puts its data otherwise.
_EXAMPLES: Final = (
    Path(__file__).resolve().parents[3] / "examples",
    Path(sysconfig.get_path("data")) / "share" / "hubbub" / "examples",
)
_NO_ANSWER: Final = "(no answer)"


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
    rows = _read(folder / "rand_hie.csv")
    answers = {
        metric: [value(row[column]) for row in rows]
        for metric, (column, value) in _RAND_COLUMNS.items()
    }
    return People(read_definitions(folder / "rand_hie.toml"), answers)


def column_of(path: Path, column: str, epsilon: str) -> People:
    """One column of anybody's CSV file; its distinct cells become the metric's values.

    For a demonstration only: a real domain is written down before anybody is asked, since
    one that is read off the answers tells that somebody gave each of them.
    """
    rows = _read(path)
    if not rows or column not in rows[0]:
        known = ", ".join(filter(None, rows[0])) if rows else ""
        raise CommandError(f"{path} has no column {column!r}; it has {known or 'none with rows'}")
    cells = [row[column].strip() for row in rows]
    values = sorted(set(cells) - {""}, key=_natural)
    metric = MetricDefinition(
        name="demo.column",
        question=f"What is in column {column} of {path.name}?",
        source="demo",
        values=values,
        absent=_NO_ANSWER if "" in cells else "",
        epsilon=epsilon,
    )
    return People(Definitions(metric=[metric]), {metric.name: [cell or None for cell in cells]})


def _natural(cell: str) -> tuple[bool, float, str]:
    """Numbers by size, then everything else by the alphabet."""
    try:
        return False, float(cell), cell
    except ValueError:
        return True, 0.0, cell


def _read(path: Path) -> list[dict[str, str]]:
    try:
        # utf-8-sig: spreadsheets put a mark before the first column's name.
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            delimiter = max(",;\t", key=header.count)
            # Cells that no column's name stands above are of no use here.
            return list(csv.DictReader(file, delimiter=delimiter, restkey="", restval=""))
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8 text") from None
    except csv.Error as error:
        raise CommandError(f"{path} is not a CSV file: {error}") from None
