"""Counting bit vectors, as `hubbub.mechanisms.bit_vector` lays them out.

To unpack every bit to a byte costs more than to add them up where they are, 64 to a word: the
bits at one place of three planes make a sum of the same weight and a carry of twice the weight
(carry-save addition). Of n planes about 2 log2 n are left in the end. Those are cut in half, and
the halves added up in the same way, until they are small; and only what is left then is unpacked.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.oracles.base import Payloads
from hubbub_aggregator.tally import Counts

# Bytes of a plane: large enough to hide what calling numpy costs, and small enough for those
# at work to stay in the processor's cache.
_PLANE: Final = 1 << 17
# Bytes that are unpacked, in all and in a plane: to cut planes further would cost more than it
# saves.
_SMALL: Final = 1 << 15
_SMALL_PLANE: Final = 1 << 13
# A plane has whole words of 8 bytes, whatever the width of a row.
_FEWEST_ROWS: Final = 8
# A power of 2 that a byte can count to.
_MOST_LINES: Final = 128

Plane = NDArray[np.uint64]
"""Rows back to back, as words."""
Planes = list[list[Plane]]
"""Planes of each weight 1, 2, 4, …, at most two of a weight."""


def canonical(payloads: Payloads, k: int) -> NDArray[np.bool_]:
    """Which vectors of k bits, uint8 of shape (n, ⌈k/8⌉), have no spare bit set."""
    used = (k - 1) % 8 + 1
    spare = np.uint8(0xFF << used & 0xFF)
    clean: NDArray[np.bool_] = payloads[:, -1] & spare == 0
    return clean


def fold(payloads: Payloads, k: int) -> Counts:
    """How many vectors have each of the k bits set: int64 of shape (k,)."""
    n, width = payloads.shape
    if not n:
        return np.zeros(k, np.int64)
    rows = _FEWEST_ROWS
    # Two at the least, or the last one would be mostly zeros.
    largest = min(_PLANE, max(_SMALL // 2, payloads.nbytes // 2))
    while rows < n and 2 * rows * width <= largest:
        rows *= 2
    planes: Planes = []
    for plane in _planes(payloads, rows):
        _add_to(planes, 0, plane)
    while rows > _FEWEST_ROWS and _worth_halving(planes):
        rows //= 2
        planes = _halved(planes)
    return _unpacked(planes, rows, width)[:k]


def _planes(payloads: Payloads, rows: int) -> Iterator[Plane]:
    """The rows, so many to a plane; the last one is filled up with zeros."""
    whole = len(payloads) // rows * rows
    for start in range(0, whole, rows):
        yield payloads[start : start + rows].reshape(-1).view(np.uint64)
    if whole < len(payloads):
        last = np.zeros((rows, payloads.shape[1]), np.uint8)
        last[: len(payloads) - whole] = payloads[whole:]
        yield last.reshape(-1).view(np.uint64)


def _add_to(planes: Planes, place: int, plane: Plane) -> None:
    """Add one of weight 2^place, which is overwritten unless that is 1."""
    while True:
        while len(planes) <= place:
            planes.append([])
        same = planes[place]
        same.append(plane)
        if len(same) < 3:
            return
        # Those of weight 1 may be the caller's own.
        total, plane = _add(*same, into=same[0] if place else None)
        same[:] = [total]
        place += 1


def _add(a: Plane, b: Plane, c: Plane, *, into: Plane | None) -> tuple[Plane, Plane]:
    """A full adder for every bit: its sum, in `a` or anew, and its carry of twice the weight."""
    # Where a and b agree, the carry is theirs, and elsewhere c's: without a third array.
    carry = b ^ c
    total = np.bitwise_xor(a, b, out=into)
    carry &= total
    carry ^= b
    total ^= c
    return total, carry


def _worth_halving(planes: Planes) -> bool:
    size = planes[0][0].nbytes
    return size > _SMALL_PLANE and size * sum(map(len, planes)) > _SMALL


def _halved(planes: Planes) -> Planes:
    """The same counts in planes of half as many rows."""
    halves: Planes = []
    for place, same in enumerate(planes):
        for plane in same:
            for half in plane.reshape(2, -1):
                _add_to(halves, place, half)
    return halves


def _unpacked(planes: Planes, rows: int, width: int) -> Counts:
    """How often each bit of a row is set, by weight: int64 of shape (8 · width,)."""
    flat = [plane for same in planes for plane in same]
    together = np.concatenate(flat) if len(flat) > 1 else flat[0]
    bits = np.unpackbits(together.view(np.uint8), bitorder="little").view(np.uint64)
    # Eight bytes of ones and zeros to a word, and none of its bytes flows over. Narrow rows lie
    # side by side, several to a line.
    sums = bits.reshape(len(flat), min(_MOST_LINES, rows), -1).sum(axis=1).view(np.uint8)
    side_by_side = sums.reshape(len(flat), -1, 8 * width)
    counts: Counts
    if side_by_side.shape[1] == 1:
        counts = side_by_side[:, 0].astype(np.int64)
    else:
        counts = side_by_side.sum(axis=1, dtype=np.int64)
    weighed: Counts = counts[0]
    places = [place for place, same in enumerate(planes) for _ in same]
    for place, more in zip(places[1:], counts[1:], strict=True):
        weighed += more << place
    return weighed
