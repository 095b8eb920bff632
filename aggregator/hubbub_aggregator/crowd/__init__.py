"""A simulated crowd: the reports of many devices at once, by the SDK's law.

For simulations alone. Devices randomise with `hubbub.mechanisms`, on the operating system's
randomness, and import nothing from here. The samplers are written afresh from the papers and
the contract's integers, so that each side checks the other.
"""

from typing import Final

from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub_aggregator.crowd.base import Sampler, Values
from hubbub_aggregator.crowd.chance import Chance, SeededChance
from hubbub_aggregator.crowd.local_hashing import LocalHashingSampler
from hubbub_aggregator.crowd.projective_geometry import ProjectiveGeometrySampler
from hubbub_aggregator.crowd.randomised_response import RandomisedResponseSampler
from hubbub_aggregator.crowd.subset_selection import SubsetSelectionSampler
from hubbub_aggregator.crowd.unary_encoding import OptimisedUnarySampler, SymmetricUnarySampler

__all__ = ["Chance", "Sampler", "SeededChance", "Values", "batch_size", "sampler_for"]

# Numbers that a batch holds at once, 8 bytes each: few enough for a processor's cache, many
# enough that numpy is called seldom.
_BATCH_NUMBERS: Final = 1 << 20


def sampler_for(mechanism: Mechanism) -> Sampler:
    """The sampler that makes a mechanism's reports."""
    match mechanism:
        case RandomisedResponse():
            return RandomisedResponseSampler(mechanism)
        case SymmetricUnary():
            return SymmetricUnarySampler(mechanism)
        case OptimisedUnary():
            return OptimisedUnarySampler(mechanism)
        case SubsetSelection():
            return SubsetSelectionSampler(mechanism)
        case ProjectiveGeometry():
            return ProjectiveGeometrySampler(mechanism)
        case LocalHashing():
            return LocalHashingSampler(mechanism)
        case _:
            raise TypeError(f"no crowd makes {mechanism.name} reports")


def batch_size(mechanism: Mechanism) -> int:
    """How many reports to make at once, so that memory stays bounded."""
    return max(1, _BATCH_NUMBERS // sampler_for(mechanism).width)
