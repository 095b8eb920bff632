"""The mechanisms, by the names that metrics.toml and the estimates use."""

from typing import Final

from hubbub.mechanisms.base import Mechanism, OneTimeMechanism, Support
from hubbub.mechanisms.local_hashing import LocalHashing
from hubbub.mechanisms.memoised import MemoisedMechanism
from hubbub.mechanisms.memoised_hashing import MemoisedLocalHashing
from hubbub.mechanisms.memoised_response import MemoisedRandomisedResponse
from hubbub.mechanisms.memoised_unary import MemoisedUnary
from hubbub.mechanisms.optimised_unary import OptimisedUnary
from hubbub.mechanisms.projective_geometry import ProjectiveGeometry
from hubbub.mechanisms.randomised_response import RandomisedResponse
from hubbub.mechanisms.subset_selection import SubsetSelection
from hubbub.mechanisms.symmetric_unary import SymmetricUnary

__all__ = [
    "MECHANISMS",
    "MEMOISED",
    "LocalHashing",
    "Mechanism",
    "MemoisedLocalHashing",
    "MemoisedMechanism",
    "MemoisedRandomisedResponse",
    "MemoisedUnary",
    "OneTimeMechanism",
    "OptimisedUnary",
    "ProjectiveGeometry",
    "RandomisedResponse",
    "SubsetSelection",
    "Support",
    "SymmetricUnary",
]

MECHANISMS: Final[dict[str, type[OneTimeMechanism]]] = {
    "randomised-response": RandomisedResponse,
    "symmetric-unary": SymmetricUnary,
    "optimised-unary": OptimisedUnary,
    "subset-selection": SubsetSelection,
    "projective-geometry": ProjectiveGeometry,
    "local-hashing": LocalHashing,
}

MEMOISED: Final[dict[str, type[MemoisedMechanism]]] = {
    "memoised-randomised-response": MemoisedRandomisedResponse,
    "memoised-symmetric-unary": MemoisedUnary,
    "memoised-optimised-unary": MemoisedUnary,
    "memoised-local-hashing": MemoisedLocalHashing,
}
