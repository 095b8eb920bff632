"""Weighted sums of shares: how many gave either of two answers, or the mean of numeric ones.

The estimate is the same sum of the unbiased estimates. Its interval is the score interval of
`intervals.one_value`, and for a single value of weight 1 that very interval: the truth may be
wherever the estimate lies within z standard deviations of it. The variance there depends on
all shares, of which the sum says but one thing; the others are taken to change with it as the
noise changes them, along f̂ + t · Cov(f̂, θ̂)/Var(θ̂).
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Final

import numpy as np

from hubbub.mechanisms import Mechanism
from hubbub_aggregator.estimation.covariance import Spread, spread
from hubbub_aggregator.estimation.intervals import (
    SCORE_FROM,
    Floats,
    Interval,
    Target,
    Variance,
    as_shares,
    exact_rates,
    normal_quantile,
    rarer,
    require_range,
    score,
)
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.tally import Tally

# Where reports are few, the exact intervals of so many values are joined; of more, that would be
# wider than what holds for every sum.
_JOINED: Final = 2


@dataclass(frozen=True, slots=True)
class LinearEstimate:
    """A weighted sum of shares, never clipped."""

    estimate: float
    """Unbiased."""
    std_error: float
    """Estimated standard deviation of `estimate`; ≥ 0."""
    low: float
    high: float
    influence: float
    """How far one hostile report moves `estimate`, at most."""


def linear_estimate(
    mechanism: Mechanism,
    tally: Tally,
    weights: Floats,
    *,
    target: Target = "respondents",
    level: float = 0.95,
) -> LinearEstimate:
    """Estimate Σ weights · shares, with an interval that covers it with probability `level`.

    `tally`: at least one report. `weights`: one for each value, finite, float64 of shape (k,).
    Raises ValueError for anything else. With too few reports for a score interval (x < 10, as
    for one value; of a sum in a projective space x is its own) the interval is one that holds
    for any number, and covers more often than `level` says.
    """
    require_range(target, level, tally.n)
    if weights.shape != (mechanism.k,) or not np.isfinite(weights).all():
        raise ValueError(f"weights must be finite, one for each of the {mechanism.k:,} values")
    noise = spread(mechanism, tally, weights)
    estimate = float(weights @ noise.shares)
    weighing = np.count_nonzero(weights)
    # Of one value it is the very interval that it has alone.
    x = noise.rarer if weighing > 1 else rarer(mechanism.support, tally.n)
    if x >= SCORE_FROM:
        around = along(noise, weights, tally.n, target)
        ends = score(estimate, around, normal_quantile(level))
    elif weighing <= _JOINED:
        ends = _exact(mechanism, tally, weights, level)
    else:
        reach = _bernstein(noise, weights, tally.n, target, level)
        ends = Interval(np.array(estimate - reach), np.array(estimate + reach))
    return LinearEstimate(
        estimate=estimate,
        std_error=std_error(noise, weights, tally.n, target),
        low=float(ends.low),
        high=float(ends.high),
        influence=noise.influence,
    )


def along(noise: Spread, weights: Floats, n: int, target: Target) -> Variance:
    """The variance of an estimated sum as a function of the true one."""
    if target == "respondents":
        return Variance(noise.variance, noise.slope)
    # A sample adds (Σ f w² − θ²)/n, of which the last term curves.
    squares = weights**2
    change = noise.covariance / noise.variance if noise.variance else noise.covariance
    slope = noise.slope + float(squares @ change - 2 * weights @ noise.shares) / n
    return Variance(max(0.0, noise.variance + _sampling(noise, weights) / n), slope, 1 / n)


def std_error(noise: Spread, weights: Floats, n: int, target: Target) -> float:
    """Estimated standard deviation of a weighted sum."""
    variance = noise.variance
    if target == "population":
        # As for one value: a share held to [0, 1] has a spread that is not negative.
        variance += max(0.0, _sampling(noise, weights)) / n
    return float(np.sqrt(variance))


def _sampling(noise: Spread, weights: Floats) -> float:
    """n times what a sample of devices adds to the variance of the sum."""
    return float(weights**2 @ noise.shares - (weights @ noise.shares) ** 2)


def _exact(mechanism: Mechanism, tally: Tally, weights: Floats, level: float) -> Interval:
    """The sums of exact intervals' ends, each at level 1 − (1 − level)/m; of nothing, 0."""
    weighing = np.flatnonzero(weights)
    miss = (1 - level) / max(1, len(weighing))
    counts = oracle_for(mechanism).supports(tally.cells)[weighing]
    ends = as_shares(mechanism.support, exact_rates(counts, tally.n, miss / 2))
    low, high = weights[weighing] * ends.low, weights[weighing] * ends.high
    return Interval(np.minimum(low, high).sum(), np.maximum(low, high).sum())


def _bernstein(noise: Spread, weights: Floats, n: int, target: Target, level: float) -> float:
    """How far a sum may lie from the truth by Bernstein's inequality (1927), for every n.

    Nothing estimated goes in: the variance is that of the crowd for which it is greatest.
    """
    nats = log(2 / (1 - level))
    variance = noise.greatest
    if target == "population":
        # A sample of weights varies most if one half is the lowest, the other the highest.
        variance += float(np.ptp(weights)) ** 2 / 4 / n
    third = nats * noise.influence / 3
    return third + sqrt(third**2 + 2 * nats * variance)
