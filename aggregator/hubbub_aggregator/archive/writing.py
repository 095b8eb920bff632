"""Writing a round's reports to the archive: sorted by their ids, which are random.

So the order of the rows says nothing of the order in which they came, and neither do the bytes:
the same reports make the same file, whatever commits they came in. A file has no time in it.
"""

import base64
import hashlib
import logging
import os
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np

from hubbub.contract import Metric
from hubbub.limits import REPORT_ID_BYTES
from hubbub_aggregator.archive.errors import ArchiveError, NotArchived
from hubbub_aggregator.archive.files import path_of, require_name
from hubbub_aggregator.archive.sorting import Rows, sorted_parts
from hubbub_aggregator.store import KeptReports
from hubbub_aggregator.version import VERSION
from hubbub_aggregator.whole_file import sync_folder, writing_whole

_log = logging.getLogger(__name__)

# The form of these files; another number is for another reader.
FORMAT: Final = "1"

# Above the size of a sorted part. Bytes, before they are compressed.
_ROW_GROUP: Final = 16 << 20

_PRIVATE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700


class Archive:
    """A folder that rounds are written to when they close."""

    def __init__(self, folder: Path) -> None:
        """Make it, if its parent is there. Raises ArchiveError if it cannot be made or written."""
        self.folder: Final = folder.absolute()
        require_name(folder)
        try:
            if not self.folder.is_dir():
                self.folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
                sync_folder(self.folder.parent)
        except FileNotFoundError:
            # Not made on the way: more often the path is mistyped, or its disk is away.
            raise ArchiveError(
                f"the archive {folder} cannot be made, for there is no folder "
                f"{self.folder.parent}; mount its disk, mkdir it, or give --archive the right path"
            ) from None
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
        another store, such as the one that this was restored after. One that cannot be read may
        have more, too: it is kept under another name. Raises NotArchived, and what `reports` do.
        """
        path = path_of(self.folder, metric.digest, number)
        try:
            # Not the archive's own, which may be on a disk that is away. One by one: what pathlib
            # makes on the way is as open as the umask lets it be.
            for folder in (path.parent.parent, path.parent):
                folder.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
            found = _length(path)
            if found is None:
                _set_aside(path)
            elif found > reports.n:
                raise NotArchived(
                    f"{path} has {found:,} reports, and this store {reports.n:,} of that round, "
                    f"which stays open; see which is right, and move the file away to have it "
                    f"closed",
                    reason="a file that is there has more reports than the store",
                )
            # Nobody else writes this round now: it is locked. What is there, a killed one left.
            for left in path.parent.glob(f".{path.name}.*"):
                left.unlink()
            with writing_whole(path, mode=_PRIVATE) as file:
                _write(file, metric, number, reports, path.parent)
            for folder in (path.parent, *path.parent.parents[:2]):
                sync_folder(folder)
        except OSError as error:
            raise NotArchived(
                f"round {number} of metric {metric.name!r} cannot be archived, and stays open "
                f"({path}: {error.strerror or error}); is there space, and may this process write "
                f"there?",
                reason=error.strerror or "it cannot be written",
            ) from error


def _length(path: Path) -> int | None:
    """How many reports a file says it has, 0 if there is none; None if it cannot be read.

    Raises OSError if it is the disk that cannot be.
    """
    import pyarrow as pa
    from pyarrow import parquet

    if not os.path.lexists(path):
        return 0
    if not path.is_file():
        # To open a pipe would wait for whoever writes to it.
        return None
    try:
        with path.open("rb") as file:
            rows: int = parquet.read_metadata(file).num_rows
    except pa.ArrowException:
        return None
    except OSError as error:
        if error.errno is not None:
            raise
        # Arrow's, of what it cannot read.
        return None
    return rows


def _set_aside(path: Path) -> None:
    """Keep, under a name that nothing has, what is in a round's place. Raises OSError."""
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in count(1))
    aside = next(name for name in names if not os.path.lexists(name))
    path.rename(aside)
    sync_folder(path.parent)
    _log.warning(
        "%s cannot be read, and is written anew from the store; it may have had more reports, so "
        "it is kept as %s: restore it from a backup, or delete it",
        path,
        aside,
    )


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
