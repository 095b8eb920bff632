"""Reading a file of the archive: nothing in it is believed that was not checked."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.contract import Metric, parse_metric
from hubbub.errors import BundleError
from hubbub.limits import REPORT_ID_BYTES
from hubbub_aggregator.archive.errors import ArchiveError
from hubbub_aggregator.archive.files import Place, path_of, require_name
from hubbub_aggregator.archive.sorting import id_words
from hubbub_aggregator.archive.writing import FORMAT
from hubbub_aggregator.oracles import Payloads, oracle_for

if TYPE_CHECKING:
    import duckdb

# How much of a file is at work at a time, in bytes; DuckDB itself gives no fewer rows at once
# than it has in a vector.
_BATCH: Final = 16 << 20
_FEWEST_ROWS: Final = 2_048

_NUMBER: Final = re.compile("0|[1-9][0-9]{0,18}")
_GLOB: Final = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class ArchivedRound:
    """A file whose head has been checked; its rows are as they are read."""

    place: Place
    metric: Metric
    n: int
    plain: int
    """How many of them came unsealed, as it says: the reports do not show it."""
    version: str
    """The Hubbub that wrote it."""
    rows_sha256: str

    def payloads(self, reader: "duckdb.DuckDBPyConnection") -> Iterator[Payloads]:
        """All payloads, in arrays of some MiB; canonical, and of reports that differ in their id.

        Raises ArchiveError, at the latest when all else is given.
        """
        size = self.metric.mechanism.payload_size
        oracle = oracle_for(self.metric.mechanism)
        digest, n, last = hashlib.sha256(), 0, b""
        for rows in _rows(reader, self.place, size):
            ids = rows[:, :REPORT_ID_BYTES]
            first = ids[0].tobytes()
            if first <= last or not _increasing(rows):
                raise self._damaged("its ids are not each above the one before")
            last = ids[-1].tobytes()
            payloads = np.ascontiguousarray(rows[:, REPORT_ID_BYTES:])
            if not oracle.canonical(payloads).all():
                raise self._damaged("it holds a report that no device makes")
            digest.update(rows.tobytes())
            n += len(rows)
            yield payloads
        if n != self.n:
            raise self._damaged(f"it holds {n:,} reports, where it says {self.n:,}")
        if digest.hexdigest() != self.rows_sha256:
            raise self._damaged("its reports are not those that were written")

    def _damaged(self, what: str) -> ArchiveError:
        return damaged(self.place, what)


def damaged(place: Place, what: str) -> ArchiveError:
    """What to say of a file that is not as it was written."""
    return ArchiveError(f"{place.path} is damaged ({what}); restore it from a backup")


def open_reader() -> "duckdb.DuckDBPyConnection":
    """A DuckDB of its own, which keeps nothing and fetches nothing."""
    import duckdb

    return duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            # Nothing is put on disk, beside whatever folder this is run in.
            "temp_directory": "",
            "memory_limit": "512MB",
            # More would read ahead, and wait for the counting all the same.
            "threads": "1",
            # Rows come in the order of the file.
            "preserve_insertion_order": "true",
        },
    )


def open_round(place: Place) -> ArchivedRound:
    """Check a file's form, and what it says of itself, against its contract and its name.

    Raises ArchiveError or OSError.
    """
    import pyarrow as pa
    from pyarrow import parquet

    if not place.path.is_file():
        # To open a pipe would wait for whoever writes to it.
        raise ArchiveError(f"{place.path} is no file; restore it from a backup")
    try:
        # Opened here: a name that begins with ~ is no home, as it would be to Arrow.
        with place.path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            schema, found, rows = file.schema_arrow, file.metadata.metadata, file.metadata.num_rows
    except pa.ArrowException as error:
        raise damaged(place, f"it is no Parquet file: {_one_line(error)}") from None
    except OSError as error:
        if error.errno is not None:
            raise
        raise damaged(place, f"it is no Parquet file: {_one_line(error)}") from None
    said = {key: value.decode("utf-8", "replace") for key, value in (found or {}).items()}
    form = _said(place, said, "format")
    if form != FORMAT:
        raise ArchiveError(
            f"{place.path} has form {form[:20]!r}, and this version knows {FORMAT}; run a newer "
            f"Hubbub"
        )
    metric = _contract(place, _said(place, said, "contract"))
    for name, expected in {"digest": metric.digest.hex(), "n": str(rows)}.items():
        if _said(place, said, name) != expected:
            raise damaged(place, f"it says {name} {said[_key(name)][:64]!r}, not {expected}")
    _require_place(place, metric, _round(place, _said(place, said, "round"), metric))
    if not metric.retain:
        raise ArchiveError(
            f"{place.path} keeps reports of metric {metric.name!r}, whose contract does not allow "
            f"it; delete it"
        )
    size = metric.mechanism.payload_size
    wanted = [("id", pa.binary(REPORT_ID_BYTES)), ("payload", pa.binary(size))]
    if [(field.name, field.type) for field in schema] != wanted:
        raise damaged(place, f"its columns are not an id and a payload of {size} bytes")
    return ArchivedRound(
        place=place,
        metric=metric,
        n=rows,
        plain=_plain(place, _said(place, said, "plain"), rows),
        version=_said(place, said, "version"),
        rows_sha256=_said(place, said, "rows_sha256"),
    )


def _key(name: str) -> bytes:
    return f"hubbub.{name}".encode()


def _said(place: Place, said: Mapping[bytes, str], name: str) -> str:
    try:
        return said[_key(name)]
    except KeyError:
        raise damaged(place, f"it does not say its {name}") from None


def _round(place: Place, text: str, metric: Metric) -> int:
    if _NUMBER.fullmatch(text) is None or int(text) >= metric.schedule.rounds:
        raise damaged(place, f"it says round {text[:20]!r}, which its contract has not")
    return int(text)


def _require_place(place: Place, metric: Metric, number: int) -> None:
    """Raises ArchiveError for a file that was moved to where another is looked for."""
    if (metric.digest, number) != (place.digest, place.round):
        belongs = path_of(place.path.parents[2], metric.digest, number)
        raise ArchiveError(
            f"{place.path} is the file of round {number} of metric {metric.name!r}, which belongs "
            f"in {belongs.parent}; move it there"
        )


def _plain(place: Place, text: str, n: int) -> int:
    if _NUMBER.fullmatch(text) is None or int(text) > n:
        raise damaged(place, f"it says plain {text[:20]!r} of {n:,} reports")
    return int(text)


def _contract(place: Place, text: str) -> Metric:
    try:
        return parse_metric(base64.b64decode(text, validate=True))
    except BundleError as error:
        raise damaged(place, f"no device accepts its contract: {error}") from None
    except binascii.Error:
        raise damaged(place, "its contract is not base64") from None


def _rows(
    reader: "duckdb.DuckDBPyConnection", place: Place, size: int
) -> Iterator[NDArray[np.uint8]]:
    """Ids and payloads side by side, in the order of the file."""
    import duckdb
    import pyarrow as pa

    # A name is no pattern here, and of one that begins with ~ that is no home.
    name = _GLOB.sub(lambda special: f"[{special[0]}]", require_name(place.path))
    most = max(_FEWEST_ROWS, _BATCH // (REPORT_ID_BYTES + size))
    try:
        found = reader.sql(
            "SELECT id, payload FROM read_parquet(?, hive_partitioning = false)", params=[name]
        )
        batches: Any = found.to_arrow_reader(most)
        for batch in batches:
            columns = [
                _bytes(batch.column(number), width)
                for number, width in enumerate((REPORT_ID_BYTES, size))
            ]
            if batch.num_rows:
                yield np.concatenate(columns, axis=1)
    except (duckdb.Error, pa.ArrowException) as error:
        raise damaged(place, f"it cannot be read: {_one_line(error)}") from None


def _bytes(column: Any, width: int) -> NDArray[np.uint8]:
    """A column of byte strings as a table: uint8 of shape (n, width)."""
    import pyarrow as pa

    fixed = column.cast(pa.binary(width))
    if fixed.null_count:
        raise pa.ArrowInvalid("a value is missing")
    data = fixed.buffers()[1]
    rows = np.frombuffer(data, np.uint8).reshape(-1, width)
    return rows[fixed.offset : fixed.offset + len(fixed)]


def _increasing(rows: NDArray[np.uint8]) -> bool:
    high, low = id_words(rows)
    above = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    return bool(above.all())


def _one_line(error: Exception) -> str:
    """The first line, since DuckDB and Arrow add what is for their developers."""
    return str(error).partition("\n")[0][:200]
