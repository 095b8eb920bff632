"""The oracles: one for each way in which the mechanisms of `hubbub.mechanisms` report."""

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
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub_aggregator.oracles.base import Oracle, Payloads
from hubbub_aggregator.oracles.local_hashing import ListedHashingOracle
from hubbub_aggregator.oracles.memoised_hashing import MemoisedHashingOracle
from hubbub_aggregator.oracles.open_hashing import OpenHashingOracle
from hubbub_aggregator.oracles.projective_geometry import ProjectiveGeometryOracle
from hubbub_aggregator.oracles.randomised_response import RandomisedResponseOracle
from hubbub_aggregator.oracles.subset_selection import SubsetSelectionOracle
from hubbub_aggregator.oracles.unary_encoding import UnaryEncodingOracle

__all__ = [
    "ListedHashingOracle",
    "MemoisedHashingOracle",
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
        case RandomisedResponse() | MemoisedRandomisedResponse():
            return RandomisedResponseOracle(mechanism)
        case SymmetricUnary() | OptimisedUnary() | MemoisedUnary():
            return UnaryEncodingOracle(mechanism)
        case SubsetSelection():
            return SubsetSelectionOracle(mechanism)
        case ProjectiveGeometry():
            return ProjectiveGeometryOracle(mechanism)
        case LocalHashing():
            is_open = mechanism.prime == OPEN_PRIME
            return OpenHashingOracle(mechanism) if is_open else ListedHashingOracle(mechanism)
        case MemoisedLocalHashing():
            return MemoisedHashingOracle(mechanism)
        case _:
            raise TypeError(f"no oracle counts {mechanism.name} reports")
