"""Reports that were retained: from rows, one for each commit, to arrays worth counting in."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# A commit may hold a single report. Bytes.
_BLOCK: Final = 4 << 20


def blocks(rows: Iterable[Any], n: int, size: int) -> Iterator[NDArray[np.uint8]]:
    """Join the first rows, those of n reports together: uint8 of shape (some, size) each.

    `rows` have `n` and `payloads`, in the order of their commits. Raises ValueError, at the
    latest when all else is given, if they are not what commits of such payloads leave.
    """
    parts: list[bytes] = []
    counted = held = 0
    for row in rows:
        # Later commits are of a later snapshot.
        if counted >= n:
            break
        if not isinstance(row.payloads, bytes) or len(row.payloads) != row.n * size:
            raise ValueError(f"not {row.n} payloads of {size} bytes each")
        counted += row.n
        held += len(row.payloads)
        parts.append(row.payloads)
        if held >= _BLOCK:
            yield _array(parts, size)
            parts, held = [], 0
    if parts:
        yield _array(parts, size)
    if counted != n:
        raise ValueError(f"of {counted} reports, where a snapshot says {n}")


def _array(parts: list[bytes], size: int) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(parts), np.uint8).reshape(-1, size)
