"""Writing a round's reports to the archive: sorted by their ids, which are random.

So the order of the rows says nothing of the order in which they came, and neither do the bytes:
the same reports make the same file, whatever commits they came in. A file has no time in it.
"""

import base64
import hashlib
import os
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from hubbub.contract import Metric
from hubbub.limits import REPORT_ID_BYTES
from hubbub_aggregator.archive.errors import ArchiveError
from hubbub_aggregator.archive.files import path_of, require_name
from hubbub_aggregator.archive.sorting import Rows, sorted_parts
from hubbub_aggregator.store import KeptReports
from hubbub_aggregator.version import VERSION
from hubbub_aggregator.whole_file import sync_folder, writing_whole

# The form of these files; another number is for another reader.
FORMAT: Final = "1"

# Above the size of a sorted part. Bytes, before they are compressed.
_ROW_GROUP: Final = 16 << 20

_PRIVATE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700


class Archive:
    """A folder that rounds are written to when they close."""

    def __init__(self, folder: Path) -> None:
        """Raises ArchiveError if it cannot be written, or is not there and cannot be made."""
        self.folder: Final = folder.absolute()
        require_name(folder)
        try:
            _make(self.folder)
        except OSError as error:
            raise ArchiveError(
                f"the archive {folder} cannot be made ({error.strerror}); give --archive a folder "
                f"that can be written"
            ) from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise ArchiveError(
                f"the archive {folder} cannot be written by this user; allow it, or give "
                f"--archive another folder"
            )

    def write(self, metric: Metric, number: int, reports: KeptReports) -> None:
        """Write a round's file, whole or not at all; when this returns, it is durable.

        One that an earlier attempt left is replaced, unless it has more reports: then it is of
        another store, such as the one that this was restored after. Raises ArchiveError, and what
        `reports` do.
        """
        path = path_of(self.folder, metric.digest, number)
        try:
            # Not the archive's own, which may be on a disk that is away. One by one: what pathlib
            # makes on the way is as open as the umask lets it be.
            for folder in (path.parent.parent, path.parent):
                folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
            _require_no_more(path, reports.n)
            # Nobody else writes this round now: it is locked. What is there, a killed one left.
            for left in path.parent.glob(f".{path.name}.*"):
                left.unlink()
            with writing_whole(path, mode=_PRIVATE) as file:
                _write(file, metric, number, reports, path.parent)
            for folder in (path.parent, *path.parent.parents[:2]):
                sync_folder(folder)
        except OSError as error:
            raise ArchiveError(
                f"round {number} of metric {metric.name!r} cannot be archived, and stays open "
                f"({path}: {error.strerror or error}); is there space, and may this process write "
                f"there?"
            ) from error


def _require_no_more(path: Path, n: int) -> None:
    """Raises ArchiveError if there is a file with more than n reports; a damaged one has none."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with path.open("rb") as file:
            found = parquet.read_metadata(file).num_rows
    except (FileNotFoundError, pa.ArrowException):
        return
    except OSError as error:
        if error.errno is not None:
            raise
        # Arrow's, of what it cannot read.
        return
    if found > n:
        raise ArchiveError(
            f"{path} has {found:,} reports, and this store {n:,} of that round, which stays open; "
            f"see which is right, and move the file away to have it closed"
        )


def _make(folder: Path) -> None:
    """Make a folder, and each that leads to it, durable and for this user alone."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
        sync_folder(folder.parent)


def _write(
    file: BinaryIO, metric: Metric, number: int, reports: KeptReports, scratch: Path
) -> None:
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
        for rows in sorted_parts(reports, size, scratch):
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
                "hubbub.plain": str(reports.plain),
                # Of all rows, an id and a payload each: damage that Parquet would not notice.
                "hubbub.rows_sha256": digest.hexdigest(),
            }
        )


def _column(column: Rows, kind: Any) -> Any:
    import pyarrow as pa

    data = pa.py_buffer(np.ascontiguousarray(column))
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(column), [None, data])
