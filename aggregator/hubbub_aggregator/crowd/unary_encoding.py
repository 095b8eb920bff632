"""Unary encoding for a crowd, symmetric and optimised: a draw for every bit of every report."""

from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms import OptimisedUnary, SymmetricUnary
from hubbub_aggregator.crowd.base import Values, packed
from hubbub_aggregator.crowd.chance import Chance, tosses
from hubbub_aggregator.oracles import Payloads


@dataclass(frozen=True)
class SymmetricUnarySampler:
    mechanism: SymmetricUnary

    @property
    def width(self) -> int:
        return self.mechanism.k

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        mechanism, n = self.mechanism, len(values)
        bits = tosses(chance, mechanism.flip, mechanism.resolution, n, mechanism.k)
        bits[np.arange(n), values] ^= True
        return packed(bits)


@dataclass(frozen=True)
class OptimisedUnarySampler:
    mechanism: OptimisedUnary

    @property
    def width(self) -> int:
        return self.mechanism.k

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        mechanism, n = self.mechanism, len(values)
        bits = tosses(chance, mechanism.raised, mechanism.resolution, n, mechanism.k)
        bits[np.arange(n), values] = chance.below(2, n)
        return packed(bits)
