"""Memoised local hashing (LOLOHA): memoised randomised response over a few hashed cells.

Arcolezi et al. ("Frequency Estimation of Evolving Data Under Local Differential Privacy"). The
memo has a row for every cell instead of every value, so it costs less; values that share a cell
look alike.

A device draws its hash once, from a public list: the vectors of t integers modulo the prime
g = `cells`. Values are points of the projective space of t dimensions, and fall into the cell
that is their product with the vector. Of the g^t hashes exactly one in g puts two values into
the same cell: so a report supports another value with probability 1/g exactly, and an estimate
has no error that more devices do not mend, as it would with a list drawn by chance (Cormode,
Maddock and Maple, VLDB 2021). A device's reports all name its hash: log2 g^t bits that are the
same in each. What is protected is between histories whose *cells* change and come back alike under
it, not whose values do: (a, b) and (a, c) change in the same round, and yet under some hashes
only one of them changes its cell.
"""

from fractions import Fraction
from typing import NamedTuple

from hubbub.exact import Epsilon
from hubbub.limits import MAX_CELLS
from hubbub.mechanisms import big_endian, projective_space
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import SHIPPED, Resolution
from hubbub.mechanisms.memoised import require_memo
from hubbub.mechanisms.memoised_response import MemoisedRandomisedResponse
from hubbub.mechanisms.primes import is_prime
from hubbub.mechanisms.randomised_response import RandomisedResponse
from hubbub.randomness import Source


class MemoisedLocalHashing(NamedTuple):
    """Rows and rounds as memoised randomised response over a prime number of cells."""

    k: int
    chain: MemoisedRandomisedResponse
    """What is reported of a cell."""
    dimensions: int
    """t: how many coordinates a seed has."""

    @classmethod
    def of(
        cls,
        k: int,
        keep: int,
        permanent_keep: int,
        cells: int,
        dimensions: int,
        *,
        resolution: Resolution = SHIPPED,
    ) -> "MemoisedLocalHashing":
        """From the integers that a contract holds."""
        chain = MemoisedRandomisedResponse.of(cells, keep, permanent_keep, resolution)
        return cls(k, chain, dimensions)

    @classmethod
    def calibrate(
        cls, k: int, permanent: RandomisedResponse, epsilon: Epsilon
    ) -> "MemoisedLocalHashing":
        """The most telling rounds within ε, and the shortest list of hashes for k values.

        `permanent`: of a prime number of cells; a row must cost more than ε.
        """
        chain = MemoisedRandomisedResponse.calibrate(permanent, epsilon)
        dimensions = 2
        while projective_space.points(permanent.k, dimensions) < k:
            dimensions += 1
        return cls(k, chain, dimensions)

    @property
    def name(self) -> str:
        return "memoised-local-hashing"

    @property
    def cells(self) -> int:
        """g: what values are hashed into."""
        return self.chain.k

    @property
    def parameters(self) -> dict[str, int]:
        return {**self.chain.parameters, "cells": self.cells, "dimensions": self.dimensions}

    @property
    def rows(self) -> int:
        return self.cells

    @property
    def seeds(self) -> int:
        """g^t: how long the list of hashes is."""
        return int(self.cells**self.dimensions)

    @property
    def row_ratio(self) -> Fraction:
        return self.chain.row_ratio

    @property
    def ratio(self) -> Fraction:
        # First what makes the rest small enough to reckon with.
        if not (2 <= self.dimensions < MAX_CELLS.bit_length() and self.cells <= MAX_CELLS):
            raise ValueError(f"there are no {self.dimensions} dimensions over {self.cells}")
        if not is_prime(self.cells):
            raise ValueError(f"the number of cells, {self.cells}, is not a prime")
        if self.reports > MAX_CELLS:
            raise ValueError(f"a list of {self.seeds:,} hashes is too long to count by")
        if self.k > projective_space.points(self.cells, self.dimensions):
            raise ValueError(f"{self.seeds:,} hashes are too few for {self.k} values")
        require_memo(self)
        return self.chain.ratio

    @property
    def support(self) -> Support:
        return Support(self.chain.support.p, Fraction(1, self.cells))

    @property
    def carried(self) -> Support:
        # Another value shares the device's cell in both rounds, or in neither.
        own, other = self.chain.carried
        return Support(own, (own + (self.cells - 1) * other) / self.cells)

    @property
    def reports(self) -> int:
        """How many different reports there are: seeds times cells."""
        return self.seeds * self.cells

    @property
    def payload_size(self) -> int:
        return big_endian.size(self.reports)

    @property
    def memo_size(self) -> int:
        return big_endian.size(self.seeds) + self.chain.memo_size

    def cell(self, seed: int, value: int) -> int:
        """Where a value in [0, k) falls under a seed in [0, seeds)."""
        vector = projective_space.digits(seed, self.cells, self.dimensions)
        point, _ = projective_space.coordinates(value, self.cells, self.dimensions)
        return projective_space.product(vector, point, self.cells)

    def memorise(self, source: Source) -> bytes:
        seed = source.below(self.seeds)
        return big_endian.pack(seed, self.seeds) + self.chain.memorise(source)

    def respond(self, memo: bytes, value: int, source: Source) -> bytes:
        size = big_endian.size(self.seeds)
        seed = big_endian.unpack(memo[:size], self.seeds)
        response = self.chain.respond(memo[size:], self.cell(seed, value), source)
        cell = big_endian.unpack(response, self.cells)
        return big_endian.pack(seed * self.cells + cell, self.reports)

    def randomise(self, value: int, source: Source) -> bytes:
        return self.respond(self.memorise(source), value, source)

    def read(self, payload: bytes) -> tuple[int, int]:
        """The seed and the cell of a payload. Raises ValueError if it is none."""
        return divmod(big_endian.unpack(payload, self.reports), self.cells)

    def supported(self, payload: bytes) -> list[int]:
        seed, cell = self.read(payload)
        return [value for value in range(self.k) if self.cell(seed, value) == cell]
