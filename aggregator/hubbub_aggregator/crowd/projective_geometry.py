"""Projective geometry response for a crowd: a point in the value's hyperplane, or one outside.

Both kinds are numbered without gaps. In the hyperplane of v, whose leading coordinate is 1,
the other coordinates are those of a point with one dimension less, and settle the leading one.
Outside it every point has exactly one vector x with ⟨v, x⟩ = 1, whose other coordinates are
free.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import ProjectiveGeometry
from hubbub.mechanisms.projective_space import points
from hubbub_aggregator.crowd.base import Values, big_endian_bytes
from hubbub_aggregator.crowd.chance import Chance, Draws, tosses
from hubbub_aggregator.oracles import Payloads

Vectors = NDArray[np.uint64]
"""Coordinates in [0, field), the least significant first: shape (dimensions, n)."""


@dataclass(frozen=True)
class ProjectiveGeometrySampler:
    mechanism: ProjectiveGeometry

    @property
    def width(self) -> int:
        return 8 * self.mechanism.dimensions

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        mechanism, n = self.mechanism, len(values)
        within = tosses(chance, mechanism.within, mechanism.resolution, n)
        inside = chance.below(mechanism.orthogonal, n)
        outside = chance.below(mechanism.cells - mechanism.orthogonal, n)
        free = np.where(within, self._numbers(inside), outside)
        reports = self._completed(values, free, product=~within)
        return big_endian_bytes(self._indices(reports), mechanism.payload_size)

    def _completed(self, values: Values, free: Draws, product: NDArray[np.bool_]) -> Vectors:
        """The vectors x with ⟨v, x⟩ = product, 0 or 1, for the values' points v.

        `free`: the numbers of x without the coordinate in v's leading place.
        """
        field = np.uint64(self.mechanism.field)
        own, leading = self._numbers(values), self._leading(values)
        # A coordinate 0 is put in at the leading place, and then made what it must be.
        power = self._powers[leading]
        vectors = self._coordinates(free // power * power * field + free % power)
        others = (self._coordinates(own) * vectors % field).sum(axis=0) % field
        vectors[leading, np.arange(len(values))] = (product + field - others) % field
        return vectors

    def _leading(self, indices: Draws) -> NDArray[np.int64]:
        """The leading place of each point: points are in the order of their vectors' numbers."""
        return np.searchsorted(self._firsts, indices, side="right") - 1

    def _numbers(self, indices: Draws) -> Draws:
        """The number, to the base `field`, of each point's vector, which leads with a 1."""
        leading = self._leading(indices)
        return indices - self._firsts[leading] + self._powers[leading]

    def _coordinates(self, numbers: Draws) -> Vectors:
        vectors: Vectors = numbers // self._powers[:, None] % np.uint64(self.mechanism.field)
        return vectors

    def _indices(self, vectors: Vectors) -> Draws:
        """The points on which vectors lie, none of them the origin."""
        places, rows = np.arange(len(vectors)), np.arange(vectors.shape[1])
        leading: NDArray[np.int64] = np.where(vectors > 0, places[:, None], 0).max(axis=0)
        inverse = self._inverses[vectors[leading, rows]]
        scaled = vectors * inverse % np.uint64(self.mechanism.field)
        numbers: Draws = (scaled * self._powers[:, None]).sum(axis=0)
        return numbers - self._powers[leading] + self._firsts[leading]

    @cached_property
    def _powers(self) -> NDArray[np.uint64]:
        """field^place, for every place."""
        field, dimensions = self.mechanism.field, self.mechanism.dimensions
        return np.array([field**place for place in range(dimensions)], np.uint64)

    @cached_property
    def _firsts(self) -> NDArray[np.uint64]:
        """The first point that leads in each place."""
        field, dimensions = self.mechanism.field, self.mechanism.dimensions
        return np.array([points(field, place) for place in range(dimensions)], np.uint64)

    @cached_property
    def _inverses(self) -> NDArray[np.uint64]:
        field = self.mechanism.field
        # 0 has none, and is never asked about.
        return np.array([0, *(pow(x, -1, field) for x in range(1, field))], np.uint64)
