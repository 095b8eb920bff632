"""Writing a round's reports to the archive: sorted by their ids, which are random.

So the order of the rows says nothing of the order in which they came, and neither do the bytes:
the same reports make the same file, whatever commits they came in. A file has no time in it.
"""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.contract import Metric
from hubbub.limits import REPORT_ID_BYTES
from hubbub_aggregator.archive.errors import ArchiveError
from hubbub_aggregator.archive.files import path_of
from hubbub_aggregator.store import KeptReports
from hubbub_aggregator.version import VERSION
from hubbub_aggregator.whole_file import sync_folder, writing_whole

Rows = NDArray[np.uint8]
"""Reports: an id and a payload, side by side; uint8 of shape (n, 16 + payload size)."""

# The form of these files; another number is for another reader.
FORMAT: Final = "1"

# Reports that are sorted at a time. What does not fit is read from the store once more for each
# further part: ids are random, so a part is a range of them. Bytes.
_PART: Final = 128 << 20
_ROW_GROUP: Final = 16 << 20

_PRIVATE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700


class Archive:
    """A folder that rounds are written to when they close."""

    def __init__(self, folder: Path) -> None:
        """Raises ArchiveError if it is not there, and cannot be made."""
        self.folder: Final = folder.absolute()
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(mode=_PRIVATE_FOLDER, parents=True)
                sync_folder(self.folder.parent)
        except OSError as error:
            raise ArchiveError(
                f"the archive {folder} cannot be made ({error.strerror}); give --archive a folder "
                f"that can be written"
            ) from None

    def write(self, metric: Metric, number: int, reports: KeptReports) -> None:
        """Write a round's file, whole or not at all; when this returns, it is durable.

        One that an earlier attempt left is replaced. Raises ArchiveError, and what `reports` do.
        """
        path = path_of(self.folder, metric.digest, number)
        try:
            path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            # Nobody else writes this round now: it is locked. What is there, a killed one left.
            for left in path.parent.glob(f".{path.name}.*"):
                left.unlink()
            with writing_whole(path, mode=_PRIVATE) as file:
                _write(file, metric, number, reports)
            for folder in (path.parent, *path.parent.parents[:2]):
                sync_folder(folder)
        except OSError as error:
            raise ArchiveError(
                f"round {number} of metric {metric.name!r} cannot be archived, and stays open "
                f"({path}: {error.strerror or error}); is there space, and may this process write "
                f"there?"
            ) from error


def _write(file: Any, metric: Metric, number: int, reports: KeptReports) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    size = metric.mechanism.payload_size
    columns = {"id": pa.binary(REPORT_ID_BYTES), "payload": pa.binary(size)}
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in columns.items()])
    digest = hashlib.sha256()
    # Of ids there is nothing to compress: they are random. By column, which Arrow's types omit.
    compression: Any = {"id": "NONE", "payload": "ZSTD"}
    with parquet.ParquetWriter(
        file,
        schema,
        use_dictionary=False,
        compression=compression,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        for rows in _sorted_parts(reports, size):
            digest.update(rows.data)
            arrays = [
                _column(rows[:, :REPORT_ID_BYTES], columns["id"]),
                _column(rows[:, REPORT_ID_BYTES:], columns["payload"]),
            ]
            table = pa.Table.from_arrays(arrays, schema=schema)
            writer.write_table(table, row_group_size=max(1, _ROW_GROUP // rows.shape[1]))
        writer.add_key_value_metadata(
            {
                "hubbub.format": FORMAT,
                "hubbub.version": VERSION,
                "hubbub.metric": metric.name,
                "hubbub.contract": base64.b64encode(metric.contract).decode(),
                "hubbub.digest": metric.digest.hex(),
                "hubbub.round": str(number),
                "hubbub.n": str(reports.n),
                # Of all rows, an id and a payload each: damage that Parquet would not notice.
                "hubbub.rows_sha256": digest.hexdigest(),
            }
        )


def _sorted_parts(reports: KeptReports, size: int) -> Iterator[Rows]:
    """All reports in the order of their ids, in parts that depend on the ids alone."""
    parts = max(1, -(-reports.n * (REPORT_ID_BYTES + size) // _PART))
    for part in range(parts):
        chosen = [_of_part(rows, part, parts) for rows in reports.read(size)]
        rows = np.concatenate(chosen)
        del chosen
        if len(rows):
            high, low = id_words(rows)
            yield rows[np.lexsort((low, high))]


def _of_part(rows: Rows, part: int, parts: int) -> Rows:
    if parts == 1:
        return rows
    firsts = np.ascontiguousarray(rows[:, :4]).view(">u4")[:, 0].astype(np.uint64)
    mine: NDArray[np.bool_] = (firsts * np.uint64(parts)) >> np.uint64(32) == part
    return rows[mine]


def id_words(rows: Rows) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The ids' bytes as two numbers, by which they are in order: uint64 of shape (n,) each."""
    words = np.ascontiguousarray(rows[:, :REPORT_ID_BYTES]).view(">u8").astype(np.uint64)
    return words[:, 0], words[:, 1]


def _column(column: Rows, kind: Any) -> Any:
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(column))
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(column), [None, data])
