"""The oracles, one for each mechanism of `hubbub.mechanisms`."""

from hubbub.mechanisms import Mechanism, OptimisedUnary, RandomisedResponse, SymmetricUnary
from hubbub_aggregator.oracles.base import Oracle, Payloads
from hubbub_aggregator.oracles.optimised_unary import OptimisedUnaryOracle
from hubbub_aggregator.oracles.randomised_response import RandomisedResponseOracle
from hubbub_aggregator.oracles.symmetric_unary import SymmetricUnaryOracle

__all__ = [
    "OptimisedUnaryOracle",
    "Oracle",
    "Payloads",
    "RandomisedResponseOracle",
    "SymmetricUnaryOracle",
    "oracle_for",
]


def oracle_for(mechanism: Mechanism) -> Oracle:
    """The oracle that counts a mechanism's reports."""
    match mechanism:
        case RandomisedResponse():
            return RandomisedResponseOracle(mechanism)
        case SymmetricUnary():
            return SymmetricUnaryOracle(mechanism)
        case OptimisedUnary():
            return OptimisedUnaryOracle(mechanism)
        case _:
            raise TypeError(f"no oracle counts {mechanism.name} reports")
