"""How sure somebody can be afterwards who thought something before, in exact arithmetic. Pure."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Final, NamedTuple

from hubbub.statement.figures import belief, percent

# From next to nothing to nearly sure.
PRIORS: Final = tuple(Fraction(percentage, 100) for percentage in (1, 10, 50, 90))

_WHOLE: Final = "100.0"


class Belief(NamedTuple):
    """Percentages as decimal text, rounded outwards: a promise may be too modest only."""

    least: str
    most: str

    @property
    def is_open(self) -> bool:
        """Whether it says nothing: the answer may be as good as known, or as good as excluded."""
        return (self.least, self.most) == ("0.0", _WHOLE)


def afterwards(prior: Fraction, odds: Fraction) -> Belief:
    """How sure somebody can be at least and at most, after what multiplies odds by up to `odds`."""
    # As sure as possible of the opposite, in thousandths.
    opposite = -(-1000 * belief(odds, 1 - prior) // 1)
    return Belief(percent(1 - Fraction(opposite, 1000)), percent(belief(odds, prior)))


def table(odds: Iterable[Fraction]) -> list[tuple[Fraction, list[Belief]]]:
    """For every prior, what each of these odds makes of it at most."""
    odds = list(odds)
    return [(prior, [afterwards(prior, each) for each in odds]) for prior in PRIORS]
