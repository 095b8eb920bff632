"""k-ary randomised response: a report supports the one value whose index it is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import RandomisedResponse
from hubbub_aggregator.oracles.base import Payloads, big_endian
from hubbub_aggregator.tally import Counts


@dataclass(frozen=True)
class RandomisedResponseOracle:
    mechanism: RandomisedResponse

    @property
    def cells(self) -> int:
        return self.mechanism.k

    @property
    def payload_size(self) -> int:
        return self.mechanism.payload_size

    def canonical(self, payloads: Payloads) -> NDArray[np.bool_]:
        return big_endian(payloads) < self.mechanism.k

    def fold(self, payloads: Payloads) -> Counts:
        return np.bincount(big_endian(payloads).astype(np.int64), minlength=self.mechanism.k)

    def supports(self, cells: Counts) -> Counts:
        return cells
