"""What a page shows as files, with the columns of the commands' `--format csv`. Pure."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

from hubbub_aggregator.arrow import parquet_bytes, parquet_of
from hubbub_aggregator.comparison_record import (
    COMPARISON_COLUMNS,
    as_comparison_report,
    comparison_rows,
)
from hubbub_aggregator.csv_rows import write_csv
from hubbub_aggregator.records import as_report, columns, rows
from hubbub_dashboard.reading.answers import Comparison, Estimates
from hubbub_dashboard.reading.derived import derived


@derived
def csv_file(estimates: Estimates) -> bytes:
    """All values of a snapshot, as UTF-8 with the mark by which spreadsheets know it."""
    report = as_report(estimates.message)
    return csv_of(columns(report), rows(report))


def csv_of(header: Iterable[str], lines: Iterable[Mapping[str, Any]]) -> bytes:
    """Rows as UTF-8 with the mark by which spreadsheets know it."""
    file = io.StringIO(newline="")
    write_csv(file, header, lines)
    return file.getvalue().encode("utf-8-sig")


@derived
def parquet_file(estimates: Estimates) -> bytes:
    """All values, with types, and what they rest on as the schema's metadata."""
    return parquet_bytes(as_report(estimates.message))


def name(estimates: Estimates, suffix: str) -> str:
    """What the file is called: metric, round and n, by which one snapshot differs from another."""
    return f"{estimates.metric}-{estimates.round}-{estimates.n}.{suffix}"


@derived
def comparison_csv(comparison: Comparison) -> bytes:
    """All differences, as `csv_file`."""
    report = as_comparison_report(comparison.message)
    return csv_of(COMPARISON_COLUMNS, comparison_rows(report))


@derived
def comparison_parquet(comparison: Comparison) -> bytes:
    """All differences, with types."""
    return parquet_of(comparison_rows(as_comparison_report(comparison.message)))


def comparison_name(comparison: Comparison, suffix: str) -> str:
    """What the file is called: both sides, and their n."""
    left, right = comparison.left, comparison.right
    sides = [f"{side.metric}-{side.round}-{side.n}" for side in (left, right)]
    return f"{'-vs-'.join(sides if left != right else sides[:1])}-differences.{suffix}"
