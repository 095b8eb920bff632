"""The mechanisms, by the names that metrics.toml and the estimates use."""

from typing import Final

from hubbub.mechanisms.base import Mechanism, Support
from hubbub.mechanisms.local_hashing import LocalHashing
from hubbub.mechanisms.optimised_unary import OptimisedUnary
from hubbub.mechanisms.projective_geometry import ProjectiveGeometry
from hubbub.mechanisms.randomised_response import RandomisedResponse
from hubbub.mechanisms.subset_selection import SubsetSelection
from hubbub.mechanisms.symmetric_unary import SymmetricUnary

__all__ = [
    "MECHANISMS",
    "LocalHashing",
    "Mechanism",
    "OptimisedUnary",
    "ProjectiveGeometry",
    "RandomisedResponse",
    "SubsetSelection",
    "Support",
    "SymmetricUnary",
]

MECHANISMS: Final[dict[str, type[Mechanism]]] = {
    "randomised-response": RandomisedResponse,
    "symmetric-unary": SymmetricUnary,
    "optimised-unary": OptimisedUnary,
    "subset-selection": SubsetSelection,
    "projective-geometry": ProjectiveGeometry,
    "local-hashing": LocalHashing,
}
