"""Counting bit vectors, as `hubbub.mechanisms.bit_vector` lays them out."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.oracles.base import Payloads
from hubbub_aggregator.tally import Counts

# Bits unpacked at a time, one to a byte: stays in the processor's cache.
_CHUNK_BITS: Final = 1 << 20


def canonical(payloads: Payloads, k: int) -> NDArray[np.bool_]:
    """Which vectors of k bits, uint8 of shape (n, ⌈k/8⌉), have no spare bit set."""
    used = (k - 1) % 8 + 1
    spare = np.uint8(0xFF << used & 0xFF)
    clean: NDArray[np.bool_] = payloads[:, -1] & spare == 0
    return clean


def fold(payloads: Payloads, k: int) -> Counts:
    """How many vectors have each of the k bits set: int64 of shape (k,)."""
    counts = np.zeros(k, np.int64)
    rows = max(1, _CHUNK_BITS // k)
    for start in range(0, len(payloads), rows):
        bits = np.unpackbits(payloads[start : start + rows], axis=1, count=k, bitorder="little")
        counts += bits.sum(axis=0, dtype=np.int64)
    return counts
