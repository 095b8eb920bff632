"""Local hashing for a crowd: a fresh hash for every report, its bucket or a lie."""

from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms import LocalHashing
from hubbub_aggregator.crowd.base import Values, big_endian_bytes
from hubbub_aggregator.crowd.chance import Chance, tosses
from hubbub_aggregator.oracles import Payloads

_WORD_BITS = 64


@dataclass(frozen=True)
class LocalHashingSampler:
    mechanism: LocalHashing

    width = 8

    def randomise(self, values: Values, chance: Chance) -> Payloads:
        mechanism, n = self.mechanism, len(values)
        prime, buckets = mechanism.prime, mechanism.buckets
        keeps = tosses(chance, mechanism.keep, mechanism.resolution, n)
        lies = chance.below(buckets - 1, n) + np.uint64(1)
        # A seed below P³ is three digits below P.
        a, b, c = (chance.below(prime, n) for _ in range(3))
        if mechanism.reports > 1 << _WORD_BITS:
            # The same arithmetic with Python's integers, which an open domain needs.
            a, b, c, values = (numbers.astype(object) for numbers in (a, b, c, values))
        said = ((a * values + b) * values + c) % prime * buckets // prime
        said = np.where(keeps, said, (said + lies) % buckets)
        reports = ((a * prime + b) * prime + c) * buckets + said
        return big_endian_bytes(reports, mechanism.payload_size)
