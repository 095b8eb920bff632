"""Which differences are shown, in which order. Pure."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from hubbub_dashboard import text
from hubbub_dashboard.reading.answers import Comparison, Difference
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares.selection import MAX_ROWS, Order, matching

NOT_TOLD: Final = "may be no difference"


class Kind(Enum):
    """What a comparison is of."""

    VALUES = "two values"
    ROUNDS = "two rounds"
    METRICS = "two metrics"


def kind_of(comparison: Comparison) -> Kind:
    """What the two sides differ in."""
    if comparison.left.metric != comparison.right.metric:
        return Kind.METRICS
    return Kind.VALUES if comparison.left == comparison.right else Kind.ROUNDS


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Shown:
    """The differences that are shown, in the order in which they are."""

    differences: tuple[Difference, ...]
    total: int
    """How many there are."""
    places: int
    """Decimals of a percentage that the errors warrant."""
    final: bool
    """Whether both rounds are closed; before, none is called a difference."""
    matches: int
    """How many of all values' names contain what is searched for."""

    def found(self, difference: Difference) -> bool:
        """Whether it may be called a difference."""
        return self.final and difference.distinguishable

    @property
    def doubt(self) -> str:
        """What is said of one that may not."""
        return NOT_TOLD if self.final else "preliminary"


@derived
def show(comparison: Comparison, order: Order, find: str = "") -> Shown:
    """Choose the rows: all as listed, or the `MAX_ROWS` largest, of those whose name contains
    `find`."""
    every = comparison.differences
    found = tuple(matching(every, find, lambda difference: difference.left))
    differences = found
    if order is Order.LARGEST or len(differences) > MAX_ROWS:
        differences = tuple(
            sorted(found, key=lambda difference: -abs(difference.estimate))[:MAX_ROWS]
        )
    places = text.decimals(difference.std_error for difference in every)
    return Shown(differences, len(every), places, comparison.final, len(found))
