"""Local hashing of a listed domain: a report supports the values that fall into its bucket.

n reports and k values make nk hashes, here at two additions and a comparison each. A hash is a
polynomial of degree 2 modulo P: from value to value it grows by a step, and the step by a
constant, so that nothing is multiplied. Nor is anything reduced, since words of 32 bits wrap by
themselves: a hash h is held as the word sh + s − 1, with s = ⌊2^32/P⌋. To wrap at 2^32 and not
at sP loses 2^32 − sP each time. For as long as all that was lost is less than s, the word lies
in [sh, sh + s − 1], and is below sm just where h is below m; then it is made anew.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import LocalHashing
from hubbub_aggregator.oracles.base import Payloads, big_endian
from hubbub_aggregator.tally import Counts

# Hashes at work at a time: they stay in the processor's cache.
_CHUNK: Final = 1 << 16

# With fewer than this, more hashes are begun at the same time.
_SMALL: Final = 1 << 14

_WORDS: Final = 1 << 32


class Intervals(NamedTuple):
    """Which hashes fall into each bucket: uint64, of shape (buckets,)."""

    first: NDArray[np.uint64]
    size: NDArray[np.uint64]


def intervals(mechanism: LocalHashing) -> Intervals:
    """The hashes of each bucket: ⌊hg/P⌋ = j where jP ≤ hg < (j + 1)P."""
    prime, buckets = mechanism.prime, mechanism.buckets
    edges = np.array([-(-j * prime // buckets) for j in range(buckets + 1)], np.uint64)
    return Intervals(edges[:-1], np.diff(edges))


@dataclass(frozen=True)
class ListedHashingOracle:
    """Counts all values when reports come in. For primes below 2^17."""

    mechanism: LocalHashing

    @property
    def cells(self) -> int:
        return self.mechanism.k

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        return big_endian(payloads) < self.mechanism.reports

    def fold(self, payloads: Payloads) -> Counts:
        # The values are cut into runs that step at the same time; the last may run past k. Of
        # few reports there are many runs, since a step costs as much as some thousand hashes.
        k = self.mechanism.k
        runs = max(-(-k // self._longest_run), min(k, _SMALL // max(1, len(payloads))))
        counts = np.zeros((runs, -(-k // runs)), np.int64)
        rows = max(1, _CHUNK // runs)
        for start in range(0, len(payloads), rows):
            self._count(big_endian(payloads[start : start + rows]), counts)
        return counts.ravel()[:k]

    def supports(self, cells: Counts) -> Counts:
        return cells

    def _count(self, reports: NDArray[np.uint64], counts: Counts) -> None:
        """Add how many reports support each value; `counts` has shape (runs, length)."""
        prime, scale = self.mechanism.prime, self._scale
        seeds, said = np.divmod(reports, self.mechanism.buckets)
        rest, c = np.divmod(seeds, prime)
        a, b = np.divmod(rest, prime)
        first, size = (column[said] for column in self._intervals)
        runs, length = counts.shape
        x = np.arange(0, runs * length, length, dtype=np.uint64)[:, None]
        # Counted from where the bucket begins, so that one comparison tells.
        hashes = ((a * x + b) * x + c + (prime - first)) % prime
        word = (hashes * scale + (scale - 1)).astype(np.uint32)
        step = ((a * (2 * x + 1) + b) % prime * scale).astype(np.uint32)
        growth = (2 * a % prime * scale).astype(np.uint32)
        bound = (size * scale).astype(np.uint32)
        falls = np.empty(word.shape, np.bool_)
        for place in range(length):
            np.less(word, bound, out=falls)
            counts[:, place] += _true_in_rows(falls)
            np.add(word, step, out=word)
            np.add(step, growth, out=step)

    @property
    def _scale(self) -> int:
        """s: how many words stand for a hash."""
        return _WORDS // self.mechanism.prime

    @property
    def _longest_run(self) -> int:
        """For how many values in a row a word has lost less than s.

        An addition that wraps loses `lost`, and what a step has lost, every word after it loses
        too: at the L-th value that makes at most L(L − 1)/2 times `lost`.
        """
        lost = _WORDS % self.mechanism.prime
        if not lost:
            return self.mechanism.k
        return (1 + isqrt(1 + 8 * ((self._scale - 1) // lost))) // 2

    @cached_property
    def _intervals(self) -> Intervals:
        return intervals(self.mechanism)


def _true_in_rows(table: NDArray[np.bool_]) -> NDArray[np.int64]:
    """How many are true in each row."""
    rows, columns = table.shape
    # numpy counts a whole array three times as fast as along an axis, but a call for each row
    # pays only where rows are long.
    if rows < columns:
        return np.array([np.count_nonzero(row) for row in table], np.int64)
    return np.asarray(np.count_nonzero(table, axis=1), np.int64)
