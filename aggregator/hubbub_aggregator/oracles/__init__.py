"""The oracles, one for each mechanism of `hubbub.mechanisms`."""

from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub_aggregator.oracles.base import Oracle, Payloads
from hubbub_aggregator.oracles.local_hashing import ListedHashingOracle
from hubbub_aggregator.oracles.open_hashing import OpenHashingOracle
from hubbub_aggregator.oracles.projective_geometry import ProjectiveGeometryOracle
from hubbub_aggregator.oracles.randomised_response import RandomisedResponseOracle
from hubbub_aggregator.oracles.subset_selection import SubsetSelectionOracle
from hubbub_aggregator.oracles.unary_encoding import UnaryEncodingOracle

__all__ = [
    "ListedHashingOracle",
    "OpenHashingOracle",
    "Oracle",
    "Payloads",
    "ProjectiveGeometryOracle",
    "RandomisedResponseOracle",
    "SubsetSelectionOracle",
    "UnaryEncodingOracle",
    "oracle_for",
]


def oracle_for(mechanism: Mechanism) -> Oracle:
    """The oracle that counts a mechanism's reports."""
    match mechanism:
        case RandomisedResponse():
            return RandomisedResponseOracle(mechanism)
        case SymmetricUnary() | OptimisedUnary():
            return UnaryEncodingOracle(mechanism)
        case SubsetSelection():
            return SubsetSelectionOracle(mechanism)
        case ProjectiveGeometry():
            return ProjectiveGeometryOracle(mechanism)
        case LocalHashing() if mechanism.prime == OPEN_PRIME:
            return OpenHashingOracle(mechanism)
        case LocalHashing():
            return ListedHashingOracle(mechanism)
        case _:
            raise TypeError(f"no oracle counts {mechanism.name} reports")
