"""Counts that add: over batches, processes, machines and time."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

# How counts are kept: the same bytes on every machine.
_STORED: Final = np.dtype("<i8")


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How many of n reports fell into each cell."""

    n: int
    cells: Counts
    """Reports per cell, int64 of shape (cells,), each in [0, n]."""
    plain: int = 0
    """How many of the n came unsealed."""

    @classmethod
    def empty(cls, cells: int) -> "Tally":
        return cls(0, np.zeros(cells, np.int64))

    @classmethod
    def from_bytes(cls, n: int, data: bytes, plain: int = 0) -> "Tally":
        """Undo `to_bytes`. Raises ValueError for bytes that are no tally of n reports."""
        if len(data) % _STORED.itemsize:
            raise ValueError("not a whole number of cells")
        cells = np.frombuffer(data, _STORED).astype(np.int64)
        if cells.size and not 0 <= cells.min() <= cells.max() <= n:
            raise ValueError(f"a cell lies outside [0, {n}]")
        if not 0 <= plain <= n:
            raise ValueError(f"{plain} plain reports of {n}")
        return cls(n, cells, plain)

    def to_bytes(self) -> bytes:
        """The cells, 8 bytes each, little-endian."""
        return self.cells.astype(_STORED).tobytes()

    def __add__(self, other: "Tally") -> "Tally":
        if self.cells.shape != other.cells.shape:
            raise ValueError("tallies of different mechanisms do not add")
        return Tally(self.n + other.n, self.cells + other.cells, self.plain + other.plain)
