"""Memoised randomised response for a crowd, each device with a memo of its own."""

from dataclasses import dataclass

from hubbub.mechanisms import MemoisedRandomisedResponse
from hubbub_aggregator.crowd.base import Values
from hubbub_aggregator.crowd.chance import Chance
from hubbub_aggregator.crowd.randomised_response import RandomisedResponseSampler
from hubbub_aggregator.oracles import Payloads
from hubbub_aggregator.oracles.base import big_endian


@dataclass(frozen=True)
class MemoisedRandomisedResponseSampler:
    mechanism: MemoisedRandomisedResponse

    width = 4

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        # Of a memo only the row that is asked for shows.
        rows = RandomisedResponseSampler(self.mechanism.permanent).randomise(values, chance)
        return RandomisedResponseSampler(self.mechanism.instant).randomise(big_endian(rows), chance)
