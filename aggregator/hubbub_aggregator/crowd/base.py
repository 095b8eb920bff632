"""What every sampler offers: the reports of many devices at once."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.crowd.chance import Chance
from hubbub_aggregator.oracles import Payloads

Values = NDArray[np.uint64]
"""The devices' values: uint64 of shape (n,), each in [0, k)."""


class Sampler(Protocol):
    """A mechanism's `randomise` for a crowd: the same law, other code. Immutable."""

    @property
    def width(self) -> int:
        """How many numbers a report takes while it is made: what bounds a batch."""
        ...

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        """One fresh, independent payload for each value: uint8 of shape (n, payload size)."""
        ...


def packed(bits: NDArray[np.bool_]) -> Payloads:
    """Bit vectors as unary encoding sends them, from bool of shape (n, k)."""
    return np.packbits(bits, axis=1, bitorder="little")


def big_endian_bytes(numbers: NDArray[Any], size: int) -> Payloads:
    """Write each number in `size` bytes: uint8 of shape (n, size).

    `numbers`: uint64, or Python's integers (dtype object) if some are larger.
    """
    if numbers.dtype != object:
        octets = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)
        return octets[:, 8 - size :]
    written = b"".join(int(number).to_bytes(size, "big") for number in numbers)
    return np.frombuffer(written, np.uint8).reshape(-1, size)
