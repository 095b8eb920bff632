"""Subset selection: a report supports the values of its set."""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import SubsetSelection
from hubbub_aggregator.oracles import bit_vector
from hubbub_aggregator.oracles.base import Payloads, big_endian
from hubbub_aggregator.tally import Counts


@dataclass(frozen=True)
class SubsetSelectionOracle:
    mechanism: SubsetSelection

    @property
    def cells(self) -> int:
        return self.mechanism.k

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        ranks = self.mechanism.ranks
        if ranks is not None:
            return big_endian(payloads) < ranks
        sizes = np.bitwise_count(payloads).sum(axis=1, dtype=np.int64)
        clean = bit_vector.canonical(payloads, self.mechanism.k)
        clean &= sizes == self.mechanism.size
        return clean

    def fold(self, payloads: Payloads) -> Counts:
        if self.mechanism.ranks is None:
            return bit_vector.fold(payloads, self.mechanism.k)
        counts = np.zeros(self.mechanism.k, np.int64)
        ranks = big_endian(payloads)
        # The largest member first: the last value whose sets of smaller values are not more
        # than the rank (the combinatorial number system).
        for smaller in self._smaller:
            members = np.searchsorted(smaller, ranks, side="right") - 1
            counts += np.bincount(members, minlength=len(counts))
            ranks -= smaller[members]
        return counts

    def supports(self, cells: Counts) -> Counts:
        return cells

    @cached_property
    def _smaller(self) -> list[NDArray[np.uint64]]:
        """For each place, the last first: C(value, place) of every value, uint64 of shape (k,)."""
        k, size = self.mechanism.k, self.mechanism.size
        # What exceeds 64 bits is beyond every rank.
        most = (1 << 64) - 1
        return [
            np.array([min(comb(value, place), most) for value in range(k)], np.uint64)
            for place in range(size, 0, -1)
        ]
