"""Tables that people bring: CSV files, as spreadsheets and scripts write them."""

import csv
from pathlib import Path
from typing import Final

from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.output import remark

_DELIMITERS: Final = ",;\t"


def read_columns(path: Path, *names: str) -> list[list[str]]:
    """Read the cells of each named column, top to bottom, without spaces around them.

    A cell that a row is too short for is empty. Cells that no name stands above are left out,
    with a remark on standard error. Raises CommandError or OSError.
    """
    header, *rows = _read(path) or [[]]
    if not rows:
        raise CommandError(f"{path} has no rows under a header")
    places = {name: place for place, name in enumerate(header)}
    for name in names:
        if name not in places:
            known = ", ".join(filter(None, header))
            raise CommandError(f"{path} has no column {name!r}; it has {known or 'none'}")
    surplus = sum(len(row) > len(header) for row in rows)
    if surplus:
        remark(f"{path}: {surplus:,} rows have more cells than the header, which are left out")
    return [_column(rows, places[name]) for name in names]


def _column(rows: list[list[str]], place: int) -> list[str]:
    return [row[place].strip() if place < len(row) else "" for row in rows]


def _read(path: Path) -> list[list[str]]:
    """The lines, taken apart; blank ones are left out."""
    try:
        # utf-8-sig: spreadsheets put a mark before the first column's name.
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            delimiter = max(_DELIMITERS, key=header.count)
            return [row for row in csv.reader(file, delimiter=delimiter) if row]
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not UTF-8 text") from None
    except csv.Error as error:
        raise CommandError(f"{path} is not a CSV file: {error}") from None
