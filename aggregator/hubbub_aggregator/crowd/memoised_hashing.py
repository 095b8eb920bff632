"""Memoised local hashing for a crowd, each device with a hash and a memo of its own."""

from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms import MemoisedLocalHashing
from hubbub_aggregator.crowd.base import Values, big_endian_bytes
from hubbub_aggregator.crowd.chance import Chance, Draws
from hubbub_aggregator.crowd.memoised_response import MemoisedRandomisedResponseSampler
from hubbub_aggregator.oracles import Payloads
from hubbub_aggregator.oracles.base import big_endian
from hubbub_aggregator.oracles.hyperplanes import point_numbers


@dataclass(frozen=True)
class MemoisedHashingSampler:
    mechanism: MemoisedLocalHashing

    @property
    def width(self) -> int:
        return 4 + self.mechanism.dimensions

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        mechanism = self.mechanism
        seeds = chance.below(mechanism.seeds, len(values))
        cells = self._hashed(seeds, values)
        said = MemoisedRandomisedResponseSampler(mechanism.chain).randomise(cells, chance)
        reports = seeds * np.uint64(mechanism.cells) + big_endian(said)
        return big_endian_bytes(reports, mechanism.payload_size)

    def _hashed(self, seeds: Draws, values: Values) -> Draws:
        """The cells of the values: products of the seeds' vectors and the values' points."""
        field, dimensions = self.mechanism.cells, self.mechanism.dimensions
        powers = np.array([field**place for place in range(dimensions)], np.uint64)[:, None]
        points = point_numbers(field, dimensions).astype(np.uint64)[values]
        products = (seeds // powers % field) * (points // powers % field)
        cells: Draws = products.sum(axis=0) % field
        return cells
