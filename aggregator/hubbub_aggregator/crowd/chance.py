"""Where a simulated crowd's randomness comes from.

A seeded generator that is no cryptographer's: as good as any for a simulation, and never for a
device. A probability is still an integer threshold: a draw below `one`, which is 2^64, is
compared with the contract's own number.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms.coin import Resolution

Draws = NDArray[np.uint64]


class Chance(Protocol):
    """Uniform, independent integers, as many as wanted."""

    def below(self, limit: int, *shape: int) -> Draws:
        """Fresh integers in [0, limit), 1 ≤ limit ≤ 2^64: uint64 of the given shape."""
        ...


class SeededChance:
    """numpy's generator; without a seed, one from the operating system."""

    def __init__(self, seed: int | None = None) -> None:
        """`seed`: at least 0; the same one gives the same crowd, with the same numpy."""
        self._generator = np.random.default_rng(seed)

    def below(self, limit: int, *shape: int) -> Draws:
        return self._generator.integers(limit - 1, size=shape, dtype=np.uint64, endpoint=True)


def tosses(
    chance: Chance, threshold: int, resolution: Resolution, *shape: int
) -> NDArray[np.bool_]:
    """Coins that come up True with probability exactly threshold/one, 0 ≤ threshold < one."""
    return chance.below(resolution.one, *shape) < np.uint64(threshold)
