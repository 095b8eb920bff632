"""Weighted sums of shares: how many gave either of two answers, or the mean of numeric ones.

The estimate is the same sum of the unbiased estimates. Its interval is the score interval of
`intervals.one_value`, and for a single value of weight 1 that very interval: the truth may be
wherever the estimate lies within z standard deviations of it. The variance there depends on
all shares, of which the sum says but one thing; the others are taken to change with it as the
noise changes them, along f̂ + t · Cov(f̂, θ̂)/Var(θ̂).
"""

from dataclasses import dataclass

import numpy as np

from hubbub.mechanisms import Mechanism
from hubbub_aggregator.covariance import Spread, spread
from hubbub_aggregator.intervals import (
    SCORE_FROM,
    Floats,
    Interval,
    Target,
    Variance,
    exact_rates,
    normal_quantile,
    rarer,
    score,
    shares,
)
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.tally import Tally


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
    for one value) the ends are sums of exact ones: of each of the m values that weigh, at level
    1 − (1 − level)/m, so that the sum is covered more often than `level` says.
    """
    _check(mechanism, tally, weights, target, level)
    noise = spread(mechanism, tally, weights)
    estimate = float(weights @ noise.shares)
    if rarer(mechanism.support, tally.n) < SCORE_FROM:
        ends = _exact(mechanism, tally, weights, level)
    else:
        around = along(noise, weights, tally.n, target)
        ends = score(estimate, around, normal_quantile(level))
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
    """The sums of exact intervals' ends; of nothing, 0."""
    weighing = np.flatnonzero(weights)
    miss = (1 - level) / max(1, len(weighing))
    counts = oracle_for(mechanism).supports(tally.cells)[weighing]
    ends = shares(mechanism.support, exact_rates(counts, tally.n, miss / 2))
    low, high = weights[weighing] * ends.low, weights[weighing] * ends.high
    return Interval(np.minimum(low, high).sum(), np.maximum(low, high).sum())


def _check(mechanism: Mechanism, tally: Tally, weights: Floats, target: str, level: float) -> None:
    """Raise ValueError if an argument of `linear_estimate` is out of range."""
    if target not in ("respondents", "population"):
        raise ValueError(f"the target is respondents or population, not {target!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), not {level}")
    if tally.n < 1:
        raise ValueError(f"an estimate needs at least one report, not n = {tally.n}")
    if weights.shape != (mechanism.k,) or not np.isfinite(weights).all():
        raise ValueError(f"weights must be finite, one for each of the {mechanism.k:,} values")
