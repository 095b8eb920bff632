"""The mechanisms, by the names that metrics.toml and the estimates use."""

from typing import Final

from hubbub.exact import Epsilon
from hubbub.mechanisms.base import Mechanism, Support
from hubbub.mechanisms.optimised_unary import OptimisedUnary
from hubbub.mechanisms.randomised_response import RandomisedResponse
from hubbub.mechanisms.symmetric_unary import SymmetricUnary

__all__ = [
    "MECHANISMS",
    "Mechanism",
    "OptimisedUnary",
    "RandomisedResponse",
    "Support",
    "SymmetricUnary",
    "most_accurate",
]

MECHANISMS: Final[dict[str, type[Mechanism]]] = {
    "randomised-response": RandomisedResponse,
    "symmetric-unary": SymmetricUnary,
    "optimised-unary": OptimisedUnary,
}


def most_accurate(k: int, epsilon: Epsilon) -> Mechanism:
    """The mechanism ("auto") whose estimate of an absent value has the smallest variance."""
    calibrated = (mechanism.calibrate(k, epsilon) for mechanism in MECHANISMS.values())
    return min(calibrated, key=lambda mechanism: mechanism.support.variance)
