"""Estimates as an Arrow table, which is what pandas, Polars, DuckDB and Parquet files take.

Needs the extra `analysis`, which the aggregator itself does without.
"""

import io
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub_aggregator.records import columns, rows
from hubbub_aggregator.whole_file import write_whole

if TYPE_CHECKING:
    import pyarrow


class AnalysisMissing(ImportError):
    """A library of the extra `analysis` is not installed."""

    def __init__(self, library: str) -> None:
        super().__init__(f"this needs {library}: pip install 'hubbub[analysis]'")


def arrow_table(report: dict[str, Any]) -> "pyarrow.Table":
    """A row for each value of a report; what they rest on is the schema's metadata.

    Columns and order are the CSV's. Shares are float64 (1 = everybody) and null while n = 0,
    `as_of` is UTC to the millisecond. Raises AnalysisMissing.
    """
    pa = _pyarrow()
    types = {
        **dict.fromkeys(("metric", "digest", "target", "value"), pa.string()),
        **dict.fromkeys(("round", "first_round", "last_round", "pooled_rounds"), pa.int64()),
        **dict.fromkeys(("n", "count", "rank_low", "rank_high"), pa.int64()),
        "as_of": pa.timestamp("ms", tz="UTC"),
        **dict.fromkeys(("at_most", "distinguishable", "found"), pa.bool_()),
    }
    schema = {name: types.get(name, pa.float64()) for name in columns(report)}
    metadata = {
        "hubbub.mechanism": report["mechanism"],
        "hubbub.epsilon_declared": report["epsilon"]["declared"],
        "hubbub.epsilon_realised": report["epsilon"]["realised"],
        "hubbub.kind": report["kind"],
    }
    as_of = report["as_of"] and datetime.fromisoformat(report["as_of"])
    return pa.Table.from_pylist(
        [row | {"as_of": as_of} for row in rows(report)], pa.schema(schema, metadata)
    )


def write_parquet(report: dict[str, Any], path: Path) -> None:
    """Write a report's table as a Parquet file, whole or not at all.

    Raises AnalysisMissing or OSError.
    """
    write_whole(path, parquet_bytes(report))


def parquet_bytes(report: dict[str, Any]) -> bytes:
    """A Parquet file of a report's table. Raises AnalysisMissing."""
    return _parquet(arrow_table(report))


def parquet_of(rows: list[dict[str, Any]]) -> bytes:
    """A Parquet file of rows that are alike, with the types that they have. Raises
    AnalysisMissing."""
    return _parquet(_pyarrow().Table.from_pylist(rows))


def _parquet(table: "pyarrow.Table") -> bytes:
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise AnalysisMissing("pyarrow") from None
    return pyarrow
