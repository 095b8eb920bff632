"""Projective geometry response: reports are counted by point, and added up by hyperplane."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import ProjectiveGeometry
from hubbub_aggregator.oracles.base import Payloads, big_endian, count_numbers
from hubbub_aggregator.oracles.hyperplanes import hyperplane_sums
from hubbub_aggregator.tally import Counts


@dataclass(frozen=True)
class ProjectiveGeometryOracle:
    mechanism: ProjectiveGeometry

    @property
    def cells(self) -> int:
        return self.mechanism.cells

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        return big_endian(payloads) < self.mechanism.cells

    def fold(self, payloads: Payloads) -> Counts:
        return count_numbers(payloads, self.mechanism.cells)

    def supports(self, cells: Counts) -> Counts:
        sums = hyperplane_sums(cells, self.mechanism.field, self.mechanism.dimensions)
        return sums[: self.mechanism.k]
