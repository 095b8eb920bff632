"""Memoised local hashing: reports are counted by seed and cell, and added up by value.

n reports and k values would make nk hashes. But a report (x, c) supports the value v where
⟨x, v⟩ − c = 0, so that the sums over hyperplanes know a way that hangs on neither: see there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import MemoisedLocalHashing
from hubbub_aggregator.oracles.base import Payloads, big_endian, count_numbers
from hubbub_aggregator.oracles.hyperplanes import Values, point_numbers, product_sums
from hubbub_aggregator.tally import Counts


@dataclass(frozen=True)
class MemoisedHashingOracle:
    mechanism: MemoisedLocalHashing

    @property
    def cells(self) -> int:
        return self.mechanism.reports

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        return big_endian(payloads) < self.mechanism.reports

    def fold(self, payloads: Payloads) -> Counts:
        return count_numbers(payloads, self.mechanism.reports)

    def supports(self, cells: Counts) -> Counts:
        return over_reports(self.mechanism, cells)


def over_reports(mechanism: MemoisedLocalHashing, values: Values) -> Values:
    """For every value, the sum of `values` over the reports that support it.

    `values`: one for each report, int64 or float64. Returns shape (k,), the same dtype.
    """
    field = mechanism.cells
    by_cell = values.reshape(-1, field).T
    sums = product_sums(by_cell[-np.arange(field) % field], field, mechanism.dimensions)
    found: Values = sums[0, _vectors(mechanism)]
    return found


def over_values(mechanism: MemoisedLocalHashing, values: Values) -> Values:
    """For every report, the sum of `values` over the values that it supports.

    `values`: of shape (k,), int64 or float64. Returns one for each report, the same dtype.
    """
    table = np.zeros((mechanism.cells, mechanism.seeds), values.dtype)
    table[0, _vectors(mechanism)] = values
    return product_sums(table, mechanism.cells, mechanism.dimensions).T.ravel()


def _vectors(mechanism: MemoisedLocalHashing) -> NDArray[np.int64]:
    """The number of each value's vector."""
    return point_numbers(mechanism.cells, mechanism.dimensions)[: mechanism.k]
