"""How tests judge chance: one false-alarm rate, explicit n, bounds that hold for every n.

A test asserts that what it saw lies inside an interval from here. If the law under test is
right, an assertion fails with probability at most `ALPHA`; nothing is seeded away, so a suite
of 1,000 such assertions fails by chance at most once in 1,000 runs. Only simulated crowds
have seeds, so that their true values stay the same.

An assertion that looks at m figures at once passes `figures=m`, and each gets ALPHA/m. All
functions take numbers or arrays of figures alike.
"""

from math import exp, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

ALPHA: Final = 1e-6

Figures = float | NDArray[np.float64]


class Range(NamedTuple):
    """What chance allows."""

    low: Figures
    high: Figures

    def holds(self, seen: Figures) -> bool:
        """Whether every figure lies inside."""
        return bool(np.all((self.low <= seen) & (seen <= self.high)))


def mean_range(mean: Figures, variance: Figures, bound: Figures, n: int, figures: int = 1) -> Range:
    """Where the average of n independent draws lies; Bernstein's inequality (1927).

    `mean` and `variance`: of one draw, averaged over the n if they differ; `bound`: how far a
    draw can lie from its mean.
    """
    nats = log(2 * figures / ALPHA)
    third = nats * np.asarray(bound) / 3
    reach = (third + np.sqrt(third**2 + 2 * nats * n * np.asarray(variance))) / n
    return Range(mean - reach, mean + reach)


def variance_range(
    variance: Figures, fourth: Figures, bound: Figures, n: int, figures: int = 1
) -> Range:
    """Where the mean square of n independent draws' distances from their known mean lies.

    `variance` and `fourth`: second and fourth central moment of one draw; `bound`: how far a
    draw can lie from its mean. Bernstein's inequality on the squares: nothing normal assumed.
    """
    spread = np.asarray(fourth) - np.asarray(variance) ** 2
    return mean_range(variance, spread, np.asarray(bound) ** 2, n, figures)


def proportion_range(probability: float, n: int, figures: int = 1) -> Range:
    """How many of n independent trials succeed; the binomial's own quantiles."""
    tail = ALPHA / figures / 2
    law = stats.binom(n, probability)
    return Range(float(law.ppf(tail)), float(law.isf(tail)))


def divergence(seen: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """n · KL(seen/n ‖ probabilities), in nats: half of the likelihood-ratio chi-square.

    Takes every bin, however rare: nothing is pooled or dropped, and one sighting in a bin
    of probability 0 makes it infinite.
    """
    return float(special.rel_entr(seen, seen.sum() * probabilities).sum())


def divergence_limit(bins: int) -> float:
    """What `divergence` exceeds with probability at most ALPHA, for every n and law.

    Agrawal (IEEE Transactions on Information Theory, 2020): P(n · KL ≥ t) is at most
    e^−t (e t/(bins − 1))^(bins − 1) for t > bins − 1. The chi-square law would be sharper but
    is wrong where few are expected.
    """
    free = bins - 1
    # With u = t/free: u − ln u = 1 − ln(ALPHA)/free, on the branch above 1.
    return float(-free * special.lambertw(-exp(log(ALPHA) / free - 1), -1).real)


def count_law(
    p: float, q: float, holders: int, others: int, reach: float = 10
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The exact law of a value's count: Bin(holders, p) convolved with Bin(others, q).

    Returns the counts and their probabilities, within `reach` standard deviations (and as
    many reports) of each mean; what is left out adds up to less than 1e-15.
    """
    first_own, own = _binomial(holders, p, reach)
    first_other, other = _binomial(others, q, reach)
    law = np.convolve(own, other)
    return first_own + first_other + np.arange(len(law)), law


def _binomial(n: int, x: float, reach: float) -> tuple[int, NDArray[np.float64]]:
    far = reach * (1 + np.sqrt(n * x * (1 - x)))
    first, last = max(0, int(n * x - far)), min(n, int(n * x + far) + 1)
    return first, stats.binom.pmf(np.arange(first, last + 1), n, x)
