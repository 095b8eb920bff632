"""k-ary randomised response, memoised or not: a report supports the one value whose index it is.

What a memo changes is how often, not what is counted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import MemoisedRandomisedResponse, RandomisedResponse
from hubbub_aggregator.oracles.base import Payloads, big_endian, count_numbers
from hubbub_aggregator.tally import Counts


@dataclass(frozen=True)
class RandomisedResponseOracle:
    mechanism: RandomisedResponse | MemoisedRandomisedResponse

    @property
    def cells(self) -> int:
        return self.mechanism.k

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        return big_endian(payloads) < self.mechanism.k

    def fold(self, payloads: Payloads) -> Counts:
        return count_numbers(payloads, self.mechanism.k)

    def supports(self, cells: Counts) -> Counts:
        return cells
