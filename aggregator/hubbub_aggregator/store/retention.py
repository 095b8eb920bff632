"""Reports that were retained: from rows, one for each commit, to arrays worth counting in."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hubbub.limits import REPORT_ID_BYTES
from hubbub_aggregator.store.id_set import Ids, as_ids
from hubbub_aggregator.store.types import Unpaired

# A commit may hold a single report. Bytes.
_BLOCK: Final = 4 << 20

# Commits that are fetched together: at first so many, then what comes to a block.
_FIRST: Final = 16
_MOST: Final = 1_024


def unordered(ids: Ids, payloads: bytes) -> tuple[Ids, bytes]:
    """Ids and payloads of a commit, in an order that does not tell which came first.

    By payload, and among equal ones by id. `payloads`: back to back, as many as there are ids.
    """
    table = np.concatenate(
        (
            np.frombuffer(payloads, np.uint8).reshape(len(ids), -1),
            np.ascontiguousarray(ids).view(np.uint8),
        ),
        axis=1,
    )
    in_order = np.sort(table.view(f"V{table.shape[1]}"), axis=None).view(np.uint8)
    table = in_order.reshape(table.shape)
    return (
        as_ids(table[:, -REPORT_ID_BYTES:].tobytes()),
        table[:, :-REPORT_ID_BYTES].tobytes(),
    )


def paired(rows: Callable[[int, int], list[Any]], n: int, size: int) -> Iterator[NDArray[np.uint8]]:
    """Ids and payloads of n reports, side by side: uint8 of shape (some, 16 + size) each.

    `rows`: from the last row that was seen to at most so many after it: id, n, payloads, ids.
    Raises Unpaired, or ValueError, at the latest when all else is given, if they are not what
    commits of such payloads leave.
    """
    parts: list[NDArray[np.uint8]] = []
    counted = held = last = 0
    most = _FIRST
    while some := rows(last, most):
        for row_id, row_n, payloads, ids in some:
            if ids is None:
                raise Unpaired
            if len(payloads) != row_n * size or len(ids) != row_n * REPORT_ID_BYTES:
                raise ValueError(f"not {row_n} payloads of {size} bytes and as many ids")
            columns = (ids, REPORT_ID_BYTES), (payloads, size)
            tables = [np.frombuffer(c, np.uint8).reshape(-1, width) for c, width in columns]
            parts.append(np.concatenate(tables, axis=1))
            counted += row_n
            held += parts[-1].nbytes
            last = row_id
            if held >= _BLOCK:
                yield np.concatenate(parts)
                parts, held = [], 0
        of_them = sum(row_n for _, row_n, *_ in some) * (REPORT_ID_BYTES + size)
        most = min(_MOST, max(1, len(some) * _BLOCK // max(1, of_them)))
    if parts:
        yield np.concatenate(parts)
    if counted != n:
        raise ValueError(f"of {counted} reports, where the tallies say {n}")


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
