"""Counting bit vectors, as `hubbub.mechanisms.bit_vector` lays them out.

To unpack every bit to a byte costs more than to add them up where they are, 64 to a word: the
bits at one place of three planes make a sum of the same weight and a carry of twice the weight
(carry-save addition). Of n planes about 2 log2 n are left in the end, and only those are
unpacked.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.oracles.base import Payloads
from hubbub_aggregator.tally import Counts

# Bytes of a plane: large enough to hide what calling numpy costs, and small enough for those
# at work to stay in the processor's cache.
_PLANE: Final = 1 << 16
# A plane has whole words of 8 bytes, whatever the width of a row.
_FEWEST_ROWS: Final = 8
# A power of 2 that a byte can count to.
_MOST_LINES: Final = 128

Plane = NDArray[np.uint64]
"""Rows back to back, as words."""


def canonical(payloads: Payloads, k: int) -> NDArray[np.bool_]:
    """Which vectors of k bits, uint8 of shape (n, ⌈k/8⌉), have no spare bit set."""
    used = (k - 1) % 8 + 1
    spare = np.uint8(0xFF << used & 0xFF)
    clean: NDArray[np.bool_] = payloads[:, -1] & spare == 0
    return clean


def fold(payloads: Payloads, k: int) -> Counts:
    """How many vectors have each of the k bits set: int64 of shape (k,)."""
    n, width = payloads.shape
    rows = _FEWEST_ROWS
    while rows < n and 2 * rows * width <= _PLANE:
        rows *= 2
    counts = np.zeros(8 * width, np.int64)
    for weight, planes in enumerate(_added(_planes(payloads, rows))):
        for plane in planes:
            counts += _unpacked(plane, width) << weight
    return counts[:k]


def _planes(payloads: Payloads, rows: int) -> Iterator[Plane]:
    """The rows, so many to a plane; the last one is filled up with zeros."""
    whole = len(payloads) // rows * rows
    for start in range(0, whole, rows):
        yield payloads[start : start + rows].reshape(-1).view(np.uint64)
    if whole < len(payloads):
        last = np.zeros((rows, payloads.shape[1]), np.uint8)
        last[: len(payloads) - whole] = payloads[whole:]
        yield last.reshape(-1).view(np.uint64)


def _added(planes: Iterator[Plane]) -> list[list[Plane]]:
    """One or two planes of each weight 1, 2, 4, … that add up to all of these."""
    weights: list[list[Plane]] = []
    for plane in planes:
        carry = plane
        for waiting in weights:
            waiting.append(carry)
            if len(waiting) < 3:
                break
            total, carry = _add(*waiting)
            waiting[:] = [total]
        else:
            weights.append([carry])
    return weights


def _add(a: Plane, b: Plane, c: Plane) -> tuple[Plane, Plane]:
    """A full adder for every bit: its sum, and its carry of twice the weight."""
    # Where a and b agree, the carry is theirs, and elsewhere c's: without a third array.
    total = a ^ b
    carry = b ^ c
    carry &= total
    carry ^= b
    total ^= c
    return total, carry


def _unpacked(plane: Plane, width: int) -> Counts:
    """How many rows of a plane have each bit set: int64 of shape (8 · width,)."""
    # Narrow rows lie side by side, several to a line.
    lines = min(_MOST_LINES, plane.nbytes // width)
    bits = np.unpackbits(plane.view(np.uint8).reshape(lines, -1), axis=1, bitorder="little")
    # Eight bytes of ones and zeros to a word, and none of its bytes flows over.
    sums = bits.view(np.uint64).sum(axis=0).view(np.uint8)
    counts: Counts = sums.reshape(-1, 8 * width).sum(axis=0, dtype=np.int64)
    return counts
