"""Mechanisms as `hubbub sign` makes them: the best parameters for a domain and an ε."""

from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism
from hubbub_aggregator.planning.choice import best


def calibrated(name: str, k: int, epsilon: str) -> Mechanism:
    """The named mechanism for k values, at its best for a value that nobody has."""
    return best(name, k, Epsilon.parse(epsilon))
