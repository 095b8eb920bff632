"""A snapshot as files, with the columns of `hubbub estimate --format csv`. Pure."""

import io
from functools import lru_cache

from hubbub_aggregator.arrow import parquet_bytes
from hubbub_aggregator.csv_rows import write_csv
from hubbub_aggregator.records import as_report, columns, rows
from hubbub_dashboard.answers import Estimates


@lru_cache(maxsize=8)
def csv_file(estimates: Estimates) -> bytes:
    """All values, as UTF-8 with the mark by which spreadsheets know it."""
    report = as_report(estimates.message)
    file = io.StringIO(newline="")
    write_csv(file, columns(report), rows(report))
    return file.getvalue().encode("utf-8-sig")


@lru_cache(maxsize=8)
def parquet_file(estimates: Estimates) -> bytes:
    """All values, with types, and what they rest on as the schema's metadata."""
    return parquet_bytes(as_report(estimates.message))


def name(estimates: Estimates, suffix: str) -> str:
    """What the file is called: metric, round and n, by which one snapshot differs from another."""
    return f"{estimates.metric}-{estimates.round}-{estimates.n}.{suffix}"
