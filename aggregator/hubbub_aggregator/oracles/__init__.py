"""The oracles, one for each mechanism of `hubbub.mechanisms`."""

from hubbub.mechanisms import Mechanism, OptimisedUnary, RandomisedResponse, SymmetricUnary
from hubbub_aggregator.oracles.base import Oracle, Payloads
from hubbub_aggregator.oracles.randomised_response import RandomisedResponseOracle
from hubbub_aggregator.oracles.unary_encoding import UnaryEncodingOracle

__all__ = [
    "Oracle",
    "Payloads",
    "RandomisedResponseOracle",
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
        case _:
            raise TypeError(f"no oracle counts {mechanism.name} reports")
