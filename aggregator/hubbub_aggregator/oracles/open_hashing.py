"""Local hashing of an open domain: reports are kept until somebody names candidates.

Texts are hashed modulo P = 2^61 − 1, exactly, in 64-bit integers. 2^61 leaves 1, so whatever
stands above the 61st bit is added to what stands below.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.limits import MAX_VALUES
from hubbub.mechanisms import LocalHashing
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub_aggregator.oracles.base import Payloads
from hubbub_aggregator.oracles.local_hashing import Intervals, intervals
from hubbub_aggregator.tally import Counts

# Reports at work at a time: what is made of them stays in the processor's cache.
_CHUNK: Final = 1 << 14

_LOWER_30: Final = (1 << 30) - 1
_LOWER_31: Final = (1 << 31) - 1

# A report has at most 183 bits of seed and 12 of bucket.
_LONGEST: Final = 28

Integers = NDArray[Any]
"""uint64: of mixtures of those and Python's integers, the type is not inferred."""


@dataclass(frozen=True)
class OpenHashingOracle:
    """Counts candidates, by their index. For the prime 2^61 − 1."""

    mechanism: LocalHashing

    @property
    def cells(self) -> int:
        # A listed domain may be hashed like texts, and is then counted like any other.
        return self.mechanism.k if self.mechanism.k <= MAX_VALUES else 0

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        # The first byte in which a payload differs from the limit decides.
        limit = self.mechanism.reports.to_bytes(self.payload_size, "big")
        below = np.zeros(len(payloads), np.bool_)
        for column, most in zip(payloads.T[::-1], limit[::-1], strict=True):
            below = (column < most) | (column == most) & below
        return below

    def fold(self, payloads: Payloads) -> Counts:
        return self.candidate_supports(payloads, range(self.cells))

    def supports(self, cells: Counts) -> Counts:
        return cells

    def candidate_supports(self, payloads: Payloads, indices: Sequence[int]) -> Counts:
        """How many of n canonical payloads support each candidate: int64, each in [0, n].

        `indices`: each in [0, 2^61 − 1), of a text its `hubbub.domain.text_index`.
        """
        counts = np.zeros(len(indices), np.int64)
        for start in range(0, len(payloads), _CHUNK):
            seeds, said = read(payloads[start : start + _CHUNK], self.mechanism.buckets)
            first, size = (column[said] for column in self._intervals)
            for place, index in enumerate(indices):
                # The difference of a hash below the first wraps, and is above any size.
                counts[place] += np.count_nonzero(seeds.hashes(index) - first < size)
        return counts

    @cached_property
    def _intervals(self) -> Intervals:
        return intervals(self.mechanism)


class Halves(NamedTuple):
    """Numbers below 2^61, so cut that the products of their halves fit 64 bits."""

    low: Any
    """The lower 31 bits."""
    high: Any
    """The upper 30."""


def _halved(number: Any) -> Halves:
    return Halves(number & _LOWER_31, number >> 31)


class Seeds(NamedTuple):
    """The hashes x ↦ (ax² + bx + c) mod P of n reports: shape (n,)."""

    a: Halves
    b: Halves
    c: Integers

    def hashes(self, x: int) -> Integers:
        """Where every seed puts one x in [0, P)."""
        a, b, c = self
        x1, x2 = _halved(x), _halved(x * x % OPEN_PRIME)
        low = a.low * x2.low + b.low * x1.low
        middle = a.low * x2.high + a.high * x2.low + b.low * x1.high + b.high * x1.low
        high = a.high * x2.high + b.high * x1.high
        # low + 2^31 middle + 2^62 high + c, where 2^61 leaves 1. The terms stay below 2^63,
        # 2^61, 2^33, 2^62 and 2^61, in all by more than the third: so their sum below 2^64.
        total = low + ((middle & _LOWER_30) << 31) + (middle >> 30) + (high << 1) + c
        total = (total & OPEN_PRIME) + (total >> 61)
        # Now at most 7 above P. Below P, the difference wraps and is the larger one.
        hashes: Integers = np.minimum(total, total - OPEN_PRIME)
        return hashes


def read(payloads: Payloads, buckets: int) -> tuple[Seeds, Integers]:
    """The seeds of canonical payloads, and the buckets said under them."""
    padded = np.zeros((len(payloads), _LONGEST), np.uint8)
    padded[:, _LONGEST - payloads.shape[1] :] = payloads
    # Long division of the payload by the buckets, 32 bits at a time.
    said = np.zeros(len(payloads), np.uint64)
    quotients: list[Integers] = []
    for limb in padded.view(">u4").T:
        quotient, said = np.divmod(said << 32 | limb, buckets)
        quotients.append(quotient)
    # What is left has 183 bits at most: the first limb is empty, and two make a word.
    _, *limbs = quotients
    high, middle, low = (
        upper << 32 | lower for upper, lower in zip(limbs[::2], limbs[1::2], strict=True)
    )
    # The seed's digits to the base 2^61 = P + 1, and from them its digits to the base P:
    # z(P + 1)² + y(P + 1) + x = zP² + (2z + y)P + (x + y + z).
    x = low & OPEN_PRIME
    y = (low >> 61 | middle << 3) & OPEN_PRIME
    z = middle >> 58 | high << 6
    carry, c = np.divmod(x + y + z, OPEN_PRIME)
    carry, b = np.divmod(2 * z + y + carry, OPEN_PRIME)
    return Seeds(_halved(z + carry), _halved(b), c), said
