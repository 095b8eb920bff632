"""What every oracle offers: the cells a mechanism's reports are counted in."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.tally import Counts

Payloads = NDArray[np.uint8]
"""Payloads of n reports: uint8 of shape (n, payload size)."""


class Oracle(Protocol):
    """A mechanism's other half: from payloads to counts. Immutable, without a device's code."""

    @property
    def cells(self) -> int:
        """How many cells a report is counted in; often, but not always, one for each value."""
        ...

    @property
    def payload_size(self) -> int:
        """Bytes of every payload."""
        ...

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        """Which payloads the mechanism can make: bool of shape (n,)."""
        ...

    def fold(self, payloads: Payloads) -> Counts:
        """Count canonical payloads: int64 of shape (cells,), each in [0, n]."""
        ...

    def supports(self, cells: Counts) -> Counts:
        """From what `fold` counted to how many reports support each value.

        `cells`: int64 of shape (cells,). Returns int64 of shape (k,), each in [0, n].
        """
        ...


def big_endian(payloads: Payloads) -> NDArray[np.uint64]:
    """Read each payload, of at most 8 bytes, as an integer: uint64 of shape (n,)."""
    numbers = np.zeros(len(payloads), np.uint64)
    for column in payloads.T:
        numbers <<= np.uint64(8)
        numbers |= column
    return numbers


def count_numbers(payloads: Payloads, cells: int) -> Counts:
    """How often each integer in [0, cells) is among canonical payloads: int64 of shape (cells,)."""
    return np.bincount(big_endian(payloads).astype(np.int64), minlength=cells)
