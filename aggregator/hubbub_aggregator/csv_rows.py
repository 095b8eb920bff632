"""Rows as CSV, as scripts and spreadsheets read them."""

import csv
from collections.abc import Iterable, Mapping
from typing import Any, TextIO


def write_csv(file: TextIO, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows under a header; what is None is left empty."""
    writer = csv.DictWriter(file, list(columns))
    writer.writeheader()
    writer.writerows(rows)
