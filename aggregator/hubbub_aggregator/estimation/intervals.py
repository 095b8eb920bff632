"""Intervals around a share: found on the count, then mapped through the mechanism's line.

With p and q a mechanism's support and f a value's share, the expected share of reports that
support the value, here its *rate*, is σ = q + f(p − q). Every interval below is one for σ,
given count/n; `as_shares` maps it to f. Nothing is clipped: a share may come out below 0 or
above 1, and cutting that off would hide how much of the interval is noise.

    score, respondents   (count/n − σ)² = z²/n · (f p(1 − p) + (1 − f) q(1 − q))
    score, population    (count/n − σ)² = z²/n · σ(1 − σ)                (Wilson 1927)
    exact                both binomial tails at most (1 − level)/2   (Clopper, Pearson 1934)

A respondent's true value is fixed, so its count is a sum of two binomials, Bin(nf, p) and
Bin(n(1 − f), q), and narrower than the population's Bin(n, σ). The exact interval, made for
the latter, also covers the former: beyond one report from the mean its tails are no heavier
(Hoeffding 1956).
"""

from math import log
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtri

from hubbub.mechanisms import Support
from hubbub_aggregator.tally import Counts

Floats = NDArray[np.float64]

Target = Literal["respondents", "population"]
"""Whose share is meant: that among the n devices that answered, whose values are fixed, so
that the noise is the only uncertainty; or that among all devices that would have answered,
of which these are a random sample."""

# A score interval leans on the normal law, which needs about this many reports of the rarer
# kind, x = n · min(q, 1 − p), even where nobody or everybody has the value. At level 0.95 its
# exact coverage is in [0.92, 0.975] for x ≥ 10, and for x ≥ 30 in [0.935, 0.965] if ε ≥ 0.5;
# below that, where p and q are close to 1/2, 0.9348 is the lowest found.
SCORE_FROM: Final = 10


def rarer(support: Support, n: float) -> float:
    """Reports of the rarer kind, x = n · min(q, 1 − p)."""
    return float(n * min(support.q, 1 - support.p))


def require_range(target: str, level: float, n: int) -> None:
    """Raise ValueError if one of them is nothing that can be estimated."""
    if target not in ("respondents", "population"):
        raise ValueError(f"the target is respondents or population, not {target!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), not {level}")
    if n < 1:
        raise ValueError(f"an estimate needs at least one report, not n = {n}")


def require_counts(counts: Counts, n: int) -> None:
    """Raise ValueError if these are no counts of reports, one for each value."""
    if counts.ndim != 1 or not counts.size or counts.dtype != np.int64:
        raise ValueError(
            f"counts must be int64, one for each value, not {counts.dtype} of shape {counts.shape}"
        )
    if counts.min() < 0 or counts.max() > n:
        raise ValueError(f"counts must be in [0, n = {n:,}]")


def normal_quantile(level: float) -> float:
    """How many standard deviations around its mean hold a normal variable at this level."""
    return -float(ndtri((1 - level) / 2))


class Interval(NamedTuple):
    """Lower and upper ends, one of each for a value: float64, shape (k,)."""

    low: Floats
    high: Floats


def one_value(
    support: Support, counts: Counts | Floats, n: int, target: Target, level: float = 0.95
) -> Interval:
    """Intervals for shares, each of which covers its own value with probability `level`.

    `counts`: reports that support each value, in [0, n], shape (k,); expected ones need not be
    whole. Score intervals, close to `level` on either side; with too few reports for them,
    exact ones, which cover at least that often.
    """
    if rarer(support, n) < SCORE_FROM:
        rates = exact_rates(counts, n, (1 - level) / 2)
    else:
        z = normal_quantile(level)
        if target == "population":
            rates = wilson_rates(counts, n, z)
        else:
            rates = respondent_rates(support, counts, n, z)
    return as_shares(support, rates)


def simultaneous(
    support: Support, counts: Counts | Floats, n: int, level: float = 0.95
) -> Interval:
    """Intervals for shares that all cover at once with probability `level`, for either target.

    `counts` as for `one_value`. Exact intervals at Šidák's level, level^(1/k): at least
    `level` where the counts are independent (unary encoding, respondents), and by the sum of
    the misses never below 1 + ln(level), 0.9487 at 0.95. Score intervals would not do: so
    far out their tails are too thin.
    """
    # 1 − level^(1/k) without losing it in the subtraction: k may be 65,536.
    miss = -np.expm1(log(level) / len(counts))
    return as_shares(support, exact_rates(counts, n, float(miss) / 2))


def respondent_rates(support: Support, counts: Counts | Floats, n: int, z: float) -> Interval:
    """Score interval for the rate of n fixed values; z > 0 standard deviations."""
    return score(counts / n, _respondents(support, counts, n), z)


def wilson_rates(counts: Counts | Floats, n: int, z: float) -> Interval:
    """Wilson's score interval for a binomial rate; z > 0 standard deviations."""
    return score(counts / n, _binomial(counts, n), z)


class Variance(NamedTuple):
    """An estimate's variance as a function of what it estimates, around the estimate.

    Where the truth lies t above the estimate it is at + slope·t − curvature·t².
    """

    at: Floats | float
    """≥ 0."""
    slope: Floats | float
    curvature: Floats | float = 0.0
    """≥ 0."""


def share_variance(support: Support, counts: Counts | Floats, n: int, target: Target) -> Variance:
    """The variance of estimated shares, as a function of the true ones."""
    span = float(support.p - support.q)
    of_rates = _binomial(counts, n) if target == "population" else _respondents(support, counts, n)
    return Variance(of_rates.at / span**2, of_rates.slope / span, of_rates.curvature)


def _respondents(support: Support, counts: Counts | Floats, n: int) -> Variance:
    """Of the rates of n fixed values.

    One report's variance, averaged over the devices, is on the line from q(1 − q) at σ = q
    to p(1 − p) at σ = p, which is (1 − p − q)σ + pq: ≥ 0 at every count in [0, n].
    """
    slope, base = float(1 - support.p - support.q), float(support.p * support.q)
    return Variance((slope * counts / n + base) / n, slope / n)


def _binomial(counts: Counts | Floats, n: int) -> Variance:
    """Of binomial rates: σ(1 − σ)/n."""
    observed = counts / n
    return Variance(observed * (1 - observed) / n, (1 - 2 * observed) / n, 1 / n)


def score(estimates: Floats | float, variance: Variance, z: float) -> Interval:
    """What the truth may be: where the estimate lies within z standard deviations of it.

    The ends are the roots of t² = z² (at + slope·t − curvature·t²): real, one on either side
    of the estimate. At each, a square is z² times the variance there, so that is ≥ 0 too.
    """
    at, slope, curvature = variance
    widening = 1 + z * z * curvature
    middle = z * z * slope / 2
    half = np.sqrt(z * z * at * widening + middle**2)
    return Interval(estimates + (middle - half) / widening, estimates + (middle + half) / widening)


def exact_rates(counts: Counts | Floats, n: int, tail: float) -> Interval:
    """Clopper and Pearson's interval for a binomial rate: each tail at most `tail`."""
    # A quantile takes tens of microseconds, and among many values most counts recur.
    distinct, where = np.unique(counts, return_inverse=True)
    below, above = distinct.astype(np.float64), (n - distinct).astype(np.float64)
    low, high = np.zeros_like(below), np.ones_like(below)
    some, rest = distinct > 0, distinct < n
    low[some] = betaincinv(below[some], above[some] + 1, tail)
    high[rest] = betainccinv(below[rest] + 1, above[rest], tail)
    return Interval(low[where], high[where])


def as_share(support: Support, rate: Floats) -> Floats:
    """The shares that rates stand for: f = (σ − q)/(p − q). Of count/n, unbiased estimates."""
    # Subtracted exactly: p − q may be as small as 1e-12.
    return (rate - float(support.q)) / float(support.p - support.q)


def as_shares(support: Support, rates: Interval) -> Interval:
    """An interval for shares, from one for rates."""
    return Interval(as_share(support, rates.low), as_share(support, rates.high))
