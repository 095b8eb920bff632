"""A simulated crowd: the reports of many devices at once, by the SDK's law.

Of a memoised mechanism, one round of devices whose memos are fresh.

For simulations alone. Devices randomise with `hubbub.mechanisms`, on the operating system's
randomness, and import nothing from here. The samplers are written afresh from the papers and
the contract's integers, so that each side checks the other.
"""

from collections.abc import Callable
from typing import Any, Final

from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    MemoisedLocalHashing,
    MemoisedRandomisedResponse,
    MemoisedUnary,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub_aggregator.crowd.base import Sampler, Values
from hubbub_aggregator.crowd.chance import Chance, SeededChance
from hubbub_aggregator.crowd.local_hashing import LocalHashingSampler
from hubbub_aggregator.crowd.memoised_hashing import MemoisedHashingSampler
from hubbub_aggregator.crowd.memoised_response import MemoisedRandomisedResponseSampler
from hubbub_aggregator.crowd.memoised_unary import MemoisedUnarySampler
from hubbub_aggregator.crowd.projective_geometry import ProjectiveGeometrySampler
from hubbub_aggregator.crowd.randomised_response import RandomisedResponseSampler
from hubbub_aggregator.crowd.subset_selection import SubsetSelectionSampler
from hubbub_aggregator.crowd.unary_encoding import OptimisedUnarySampler, SymmetricUnarySampler

__all__ = ["Chance", "Sampler", "SeededChance", "Values", "batch_size", "sampler_for"]

# Numbers that a batch holds at once, 8 bytes each: few enough for a processor's cache, many
# enough that numpy is called seldom.
_BATCH_NUMBERS: Final = 1 << 20


_SAMPLERS: Final[dict[type, Callable[[Any], Sampler]]] = {
    RandomisedResponse: RandomisedResponseSampler,
    SymmetricUnary: SymmetricUnarySampler,
    OptimisedUnary: OptimisedUnarySampler,
    SubsetSelection: SubsetSelectionSampler,
    ProjectiveGeometry: ProjectiveGeometrySampler,
    LocalHashing: LocalHashingSampler,
    MemoisedUnary: MemoisedUnarySampler,
    MemoisedRandomisedResponse: MemoisedRandomisedResponseSampler,
    MemoisedLocalHashing: MemoisedHashingSampler,
}


def sampler_for(mechanism: Mechanism) -> Sampler:
    """The sampler that makes a mechanism's reports."""
    kind = _SAMPLERS.get(type(mechanism))
    if kind is None:
        raise TypeError(f"no crowd makes {mechanism.name} reports")
    return kind(mechanism)


def batch_size(mechanism: Mechanism) -> int:
    """How many reports to make at once, so that memory stays bounded."""
    return max(1, _BATCH_NUMBERS // sampler_for(mechanism).width)
