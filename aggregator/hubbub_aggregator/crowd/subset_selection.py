"""Subset selection for a crowd: sets by Floyd's algorithm, then the values' own part.

Floyd (Communications of the ACM, 1987): to choose s of m, for each last = m − s, …, m − 1 draw
one of 0 … last, and take it, or `last` itself if it is taken already. All sets are equally
likely, and a set costs s draws however many there are to choose from.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import SubsetSelection
from hubbub_aggregator.crowd.base import Values, big_endian_bytes, packed
from hubbub_aggregator.crowd.chance import Chance, tosses
from hubbub_aggregator.oracles import Payloads

Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class SubsetSelectionSampler:
    mechanism: SubsetSelection

    @property
    def width(self) -> int:
        return self.mechanism.k

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        mechanism, n = self.mechanism, len(values)
        included = tosses(chance, mechanism.included, mechanism.resolution, n)
        bits = self._others(included, chance)
        # Nothing tells one of the k − 1 others from the next, so they may be numbered in any
        # way: each by itself, but the last value by the own one's number.
        rows = np.arange(n)
        bits[:, -1] = bits[rows, values]
        bits[rows, values] = included
        if mechanism.ranks is None:
            return packed(bits)
        return big_endian_bytes(self._ranks(bits), mechanism.payload_size)

    def _others(self, included: NDArray[np.bool_], chance: Chance) -> Bits:
        """Uniform sets of others, one fewer where the own value is included.

        Bool of shape (n, k), of which the last column is left out.
        """
        others, size, n = self.mechanism.k - 1, self.mechanism.size, len(included)
        bits = np.zeros((n, others + 1), np.bool_)
        rows = np.arange(n)
        # With one fewer to choose, Floyd begins one later.
        first = others - size
        bits[rows, chance.below(first + 1, n)] = ~included
        for last in range(first + 1, others):
            drawn = chance.below(last + 1, n)
            drawn[bits[rows, drawn]] = last
            bits[rows, drawn] = True
        return bits

    def _ranks(self, bits: Bits) -> NDArray[np.uint64]:
        """Each set's rank: C(v₁, 1) + C(v₂, 2) + … of its values, ascending."""
        k, size = self.mechanism.k, self.mechanism.size
        members = (np.flatnonzero(bits) % k).reshape(-1, size)
        ranks = np.zeros(len(bits), np.uint64)
        for values, smaller in zip(members.T, self._smaller, strict=True):
            ranks += smaller[values]
        return ranks

    @cached_property
    def _smaller(self) -> list[NDArray[np.uint64]]:
        """C(value, place) of every value, for places 1 to size: uint64 of shape (k,) each."""
        k, size = self.mechanism.k, self.mechanism.size
        # No set has a value so high in its place that this exceeds the last rank, or 64 bits.
        most = (1 << 64) - 1
        return [
            np.array([min(comb(value, place), most) for value in range(k)], np.uint64)
            for place in range(1, size + 1)
        ]
