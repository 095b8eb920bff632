"""Unary encoding, in all its forms: a report supports every value whose bit is set.

They differ in how bits are drawn and debiased, not in how they are counted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import MemoisedUnary, OptimisedUnary, SymmetricUnary
from hubbub_aggregator.oracles import bit_vector
from hubbub_aggregator.oracles.base import Payloads
from hubbub_aggregator.tally import Counts


@dataclass(frozen=True)
class UnaryEncodingOracle:
    mechanism: SymmetricUnary | OptimisedUnary | MemoisedUnary

    @property
    def cells(self) -> int:
        return self.mechanism.k

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        return bit_vector.canonical(payloads, self.mechanism.k)

    def fold(self, payloads: Payloads) -> Counts:
        return bit_vector.fold(payloads, self.mechanism.k)

    def supports(self, cells: Counts) -> Counts:
        return cells
