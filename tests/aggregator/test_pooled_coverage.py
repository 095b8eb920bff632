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
from hubbub_aggregator.estimation.estimate import Estimate
from hubbub_aggregator.estimation.intervals import Target
from hubbub_aggregator.estimation.pooled import Pool, pooled_estimate
from hubbub_aggregator.tally import Tally
from tests.calibrated import calibrated, memoised
from tests.channels import channel
from tests.memoised_laws import chain_of, is_unary

LEVEL = 0.95
SHARES = (0, 0.02, 0.1, 0.3, 0.5, 0.8, 1)
# Of a count's law what is further out than this many standard deviations is left out.
REACH = 5.0
LEFT_OUT = 1e-5

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

    def estimate(self, count: int, target: Target) -> Estimate:
        """What is said of the first value where so many reports support it, equal in all rounds."""
        made = channel(self.mechanism)
        with_it, without = (made.cells[made.supports[:, 0] == x][0] for x in (1, 0))
        reports = self.n * self.rounds
        cells = count * with_it + (reports - count) * without
        others = self.rounds - 1
        found = Pool(self.rounds, Tally(reports, cells), Tally(reports * others, cells * others))
        return pooled_estimate(self.mechanism, found, target=target, level=LEVEL)


def coverages(crowd: Crowd, target: Target, share: float) -> tuple[float, float]:
    """Of the interval for one value, and of the one of all values at once."""
    holders = round(share * crowd.n)
    law, truth = crowd.law(holders, target), holders / crowd.n
    counts = np.arange(len(law))
    mean = float(law @ counts)
    far = REACH * float(np.sqrt(law @ (counts - mean) ** 2)) + 1
    alone = together = 0.0
    for count in range(max(0, int(mean - far)), min(len(law), ceil(mean + far) + 1)):
        said = crowd.estimate(count, target)
        alone += law[count] * float(said.low[0] <= truth <= said.high[0])
        together += law[count] * float(
            said.simultaneous_low[0] <= truth <= said.simultaneous_high[0]
        )
    return alone, together


def sizes(mechanism: Mechanism, x: float) -> int:
    return ceil(x / min(mechanism.support.q, 1 - mechanism.support.p))


MECHANISMS = [
    memoised("memoised-symmetric-unary", 2),
    memoised("memoised-optimised-unary", 2),
    memoised("memoised-optimised-unary", 2, permanent="8"),
    memoised("memoised-randomised-response", 4, permanent="1", epsilon="0.5"),
    memoised("memoised-local-hashing", 3, cells=2),
]
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)


@each_mechanism
@pytest.mark.parametrize("rounds", [1, 2, 12])
@pytest.mark.parametrize("target", ["respondents", "population"])
def test_intervals_cover(mechanism: Mechanism, rounds: int, target: Target) -> None:
    """From x = 30 on; of one round these are the intervals that there have always been."""
    crowd = Crowd(mechanism, sizes(mechanism, 30), rounds)
    for share in SHARES:
        alone, together = coverages(crowd, target, share)
        assert 0.935 - LEFT_OUT <= alone <= 0.975
        assert together >= LEVEL ** (1 / mechanism.k) - LEFT_OUT


@each_mechanism
def test_with_few_reports_they_cover_at_least_as_often(mechanism: Mechanism) -> None:
    for n, rounds in ((2, 5), (10, 3)):
        crowd = Crowd(mechanism, n, rounds)
        for share in (0.0, 0.5, 1.0):
            alone, together = coverages(crowd, "respondents", share)
            assert alone >= LEVEL - LEFT_OUT
            assert together >= LEVEL ** (1 / mechanism.k) - LEFT_OUT


def test_a_population_that_answers_every_round_afresh() -> None:
    mechanism = calibrated("optimised-unary", 2, "1")
    crowd = Crowd(mechanism, sizes(mechanism, 30), 12)
    for share in SHARES:
        alone, together = coverages(crowd, "population", share)
        assert 0.935 - LEFT_OUT <= alone <= 0.975
        assert together >= LEVEL ** (1 / mechanism.k) - LEFT_OUT
