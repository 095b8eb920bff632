"""Putting a round's reports in the order of their ids, of which few are in memory at a time.

What does not fit is dealt out to a file without a name: ids are random, so a part of them is a
range, and each part has its share of every block. However many reports there are, each is written
once and read once.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.limits import REPORT_ID_BYTES
from hubbub_aggregator.store import KeptReports

Rows = NDArray[np.uint8]
"""Reports: an id and a payload, side by side; uint8 of shape (n, 16 + payload size)."""

# Reports that are sorted at a time, in bytes. Sorting and writing them takes some eight times as
# much. Whoever sends millions of ids that begin alike makes it more: they are all in one part.
_PART: Final = 12 << 20


def sorted_parts(reports: KeptReports, size: int, scratch: Path) -> Iterator[Rows]:
    """All reports in the order of their ids, in parts that depend on the ids alone.

    `size`: of a payload, in bytes; `scratch`: the folder of the file without a name, which gets
    as large as all reports together. Raises OSError, and what `reports` do.
    """
    parts = max(1, -(-reports.n * (REPORT_ID_BYTES + size) // _PART))
    if parts == 1:
        blocks = list(reports.read(size))
        yield _sorted(np.concatenate(blocks))
        return
    with TemporaryFile(dir=scratch) as file:
        part_of = _deal(reports.read(size), file, parts, REPORT_ID_BYTES + size)
        for part in range(parts):
            rows = part_of(part)
            if len(rows):
                yield _sorted(rows)


def id_words(rows: Rows) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The ids' bytes as two numbers, by which they are in order: uint64 of shape (n,) each."""
    words = np.ascontiguousarray(rows[:, :REPORT_ID_BYTES]).view(">u8").astype(np.uint64)
    return words[:, 0], words[:, 1]


def _sorted(rows: Rows) -> Rows:
    high, low = id_words(rows)
    return rows[np.lexsort((low, high))]


def _deal(blocks: Iterator[Rows], file: BinaryIO, parts: int, width: int) -> Callable[[int], Rows]:
    """Write blocks to a file, each in the order of the parts; returns what reads a part."""
    bounds: list[NDArray[np.int64]] = []
    written = 0
    for rows in blocks:
        firsts = np.ascontiguousarray(rows[:, :4]).view(">u4")[:, 0].astype(np.uint64)
        places = (firsts * np.uint64(parts)) >> np.uint64(32)
        order = np.argsort(places, kind="stable")
        file.write(rows[order].data)
        sizes = np.bincount(places.astype(np.int64), minlength=parts)
        bounds.append(written + np.concatenate(([0], np.cumsum(sizes))))
        written += len(rows)

    def part_of(part: int) -> Rows:
        runs: list[bytes] = []
        for bound in bounds:
            first, last = int(bound[part]), int(bound[part + 1])
            file.seek(first * width)
            runs.append(file.read((last - first) * width))
        return np.frombuffer(b"".join(runs), np.uint8).reshape(-1, width)

    return part_of
