"""Memoised unary encoding for a crowd, each device with a memo of its own."""

from dataclasses import dataclass

from hubbub.mechanisms import MemoisedUnary, OptimisedUnary, SymmetricUnary
from hubbub_aggregator.crowd.base import Values, packed
from hubbub_aggregator.crowd.chance import Chance, tosses
from hubbub_aggregator.crowd.unary_encoding import OptimisedUnarySampler, SymmetricUnarySampler
from hubbub_aggregator.oracles import Payloads


@dataclass(frozen=True)
class MemoisedUnarySampler:
    mechanism: MemoisedUnary

    @property
    def width(self) -> int:
        return self.mechanism.k

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        permanent, n = self.mechanism.permanent, len(values)
        # Of a memo only the row that is asked for shows.
        rows = _sampler(permanent).randomise(values, chance)
        flips = tosses(chance, self.mechanism.flip, permanent.resolution, n, self.mechanism.k)
        vectors: Payloads = rows ^ packed(flips)
        return vectors


def _sampler(
    permanent: SymmetricUnary | OptimisedUnary,
) -> SymmetricUnarySampler | OptimisedUnarySampler:
    if isinstance(permanent, SymmetricUnary):
        return SymmetricUnarySampler(permanent)
    return OptimisedUnarySampler(permanent)
