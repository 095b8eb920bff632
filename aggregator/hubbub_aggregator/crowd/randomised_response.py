"""k-ary randomised response for a crowd."""

from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms import RandomisedResponse
from hubbub_aggregator.crowd.base import Values, big_endian_bytes
from hubbub_aggregator.crowd.chance import Chance, tosses
from hubbub_aggregator.oracles import Payloads


@dataclass(frozen=True)
class RandomisedResponseSampler:
    mechanism: RandomisedResponse

    width = 4

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        mechanism = self.mechanism
        keeps = tosses(chance, mechanism.keep, mechanism.resolution, len(values))
        # One of the k − 1 others: those from the value on are one further.
        lies = chance.below(mechanism.k - 1, len(values))
        lies += lies >= values
        return big_endian_bytes(np.where(keeps, values, lies), mechanism.payload_size)
