"""Mechanisms as `hubbub sign` makes them: the best parameters for a domain and an ε."""

from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism, MemoisedMechanism
from hubbub_aggregator.planning.choice import best
from tests.core import SHIPPED


def calibrated(name: str, k: int, epsilon: str) -> Mechanism:
    """The named mechanism for k values, at its best for a value that nobody has."""
    return best(name, k, Epsilon.parse(epsilon))


def memoised(
    name: str,
    k: int,
    *,
    permanent: str = "2",
    epsilon: str = "1",
    cells: int = 2,
) -> MemoisedMechanism:
    """The named memoised mechanism; `cells` for local hashing alone."""
    made: MemoisedMechanism = SHIPPED.memoised(
        name, k, permanent=permanent, epsilon=epsilon, cells=cells
    )
    return made
