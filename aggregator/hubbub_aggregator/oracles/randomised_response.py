"""k-ary randomised response: a report supports the one value whose index it is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import RandomisedResponse
from hubbub_aggregator.oracles.base import Payloads
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
        return _indices(payloads) < self.mechanism.k

    def fold(self, payloads: Payloads) -> Counts:
        return np.bincount(_indices(payloads), minlength=self.mechanism.k)


def _indices(payloads: Payloads) -> NDArray[np.int64]:
    """Read big-endian integers: uint8 of shape (n, size) to int64 of shape (n,)."""
    indices = np.zeros(len(payloads), np.int64)
    for column in payloads.T:
        indices = indices << 8 | column
    return indices
