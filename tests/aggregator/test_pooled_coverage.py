"""How often intervals over rounds cover, computed and not sampled.

Of devices that answer every round with one value: for them errors are the largest possible. A
device's count is then a mixture of two binomials, by what its row says, and the crowd's is the
sum of those: powers of the mixtures' transforms.
"""

from math import ceil
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hubbub.mechanisms import Mechanism
from hubbub_aggregator.estimation.intervals import Interval, Target
from hubbub_aggregator.estimation.pooled import Pool, pooled_estimate
from hubbub_aggregator.tally import Tally
from tests.calibrated import calibrated, memoised
from tests.channels import channel
from tests.memoised_laws import chain_of, is_unary

LEVEL = 0.95
SHARES = (0, 0.02, 0.1, 0.3, 0.5, 0.8, 1)
# What a transform adds to a law, or takes away.
ROUNDING = 1e-9

Floats = NDArray[np.float64]


class Crowd(NamedTuple):
    mechanism: Mechanism
    n: int
    rounds: int

    def device(self, *, own: bool) -> Floats:
        """The law of how many of one device's reports support a value."""
        if not self.mechanism.name.startswith("memoised"):
            return self._told(float(self.mechanism.support[not own]))
        chain = chain_of(self.mechanism)
        row = float(chain.row[not own])
        if not own and not is_unary(self.mechanism) and chain.k != self.mechanism.k:
            row = 1 / chain.k  # in the value's cell or not, a row says each cell once in g
        one, other = (self._told(float(rate)) for rate in chain.round)
        return row * one + (1 - row) * other

    def _told(self, rate: float) -> Floats:
        return np.asarray(stats.binom.pmf(np.arange(self.rounds + 1), self.rounds, rate))

    def law(self, holders: int, target: Target) -> Floats:
        """The law of the count of a value that `holders` of the devices have, or are likely to."""
        size, n = self.n * self.rounds + 1, self.n
        own, other = (np.fft.rfft(self.device(own=own), size) for own in (True, False))
        if target == "population":
            own = other = holders / n * own + (1 - holders / n) * other
        return np.maximum(np.fft.irfft(own**holders * other ** (n - holders), size), 0)

    def intervals(self, target: Target) -> tuple[Interval, Interval]:
        """What is said of the first value at every count, as large in all rounds: for itself
        alone, and of all values at once."""
        made = channel(self.mechanism)
        with_it, without = (made.cells[made.supports[:, 0] == x][0] for x in (1, 0))
        reports, others = self.n * self.rounds, self.rounds - 1
        ends = []
        for count in range(reports + 1):
            cells = count * with_it + (reports - count) * without
            pairs = Tally(reports * others, cells * others)
            found = Pool(self.rounds, Tally(reports, cells), pairs)
            said = pooled_estimate(self.mechanism, found, target=target, level=LEVEL)
            figures = said.low, said.high, said.simultaneous_low, said.simultaneous_high
            ends.append([figure[0] for figure in figures])
        low, high, lowest, highest = np.array(ends).T
        return Interval(low, high), Interval(lowest, highest)


def coverages(crowd: Crowd, target: Target) -> Floats:
    """For each share, of the interval for one value and the one of all at once: (shares, 2)."""
    intervals = crowd.intervals(target)
    found = []
    for share in SHARES:
        holders = round(share * crowd.n)
        law, truth = crowd.law(holders, target), holders / crowd.n
        found.append([law[(low <= truth) & (truth <= high)].sum() for low, high in intervals])
    return np.array(found)


def many(mechanism: Mechanism) -> int:
    """Devices with x = 30 reports, and rows, of the rarer kind."""
    rates = [mechanism.support]
    if mechanism.name.startswith("memoised"):
        rates.append(chain_of(mechanism).row)
    return ceil(30 / min(min(q, 1 - p) for p, q in rates))


def at_once(mechanism: Mechanism) -> float:
    """What each of the simultaneous intervals must cover, for all of them to."""
    return float(LEVEL ** (1 / mechanism.k)) - ROUNDING


MECHANISMS = [
    memoised("memoised-symmetric-unary", 2),
    memoised("memoised-optimised-unary", 2),
    memoised("memoised-optimised-unary", 2, permanent="3"),
    memoised("memoised-randomised-response", 4, permanent="1", epsilon="0.5"),
    memoised("memoised-local-hashing", 3, cells=2),
]
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)


@each_mechanism
@pytest.mark.parametrize("rounds", [1, 2, 8])
@pytest.mark.parametrize("target", ["respondents", "population"])
def test_intervals_cover(mechanism: Mechanism, rounds: int, target: Target) -> None:
    """From x = 30 on; of one round these are the intervals that there have always been."""
    alone, together = coverages(Crowd(mechanism, many(mechanism), rounds), target).T
    assert alone.min() >= 0.935
    assert alone.max() <= 0.975
    assert together.min() >= at_once(mechanism)


@each_mechanism
@pytest.mark.parametrize(("n", "rounds"), [(2, 5), (10, 3)])
def test_with_few_reports_they_cover_at_least_as_often(
    mechanism: Mechanism, n: int, rounds: int
) -> None:
    alone, together = coverages(Crowd(mechanism, n, rounds), "respondents").T
    assert alone.min() >= LEVEL - ROUNDING
    assert together.min() >= at_once(mechanism)


def test_a_population_that_answers_every_round_afresh_is_covered() -> None:
    mechanism = calibrated("optimised-unary", 2, "1")
    alone, together = coverages(Crowd(mechanism, many(mechanism), 8), "population").T
    assert alone.min() >= 0.935
    assert alone.max() <= 0.975
    assert together.min() >= at_once(mechanism)
