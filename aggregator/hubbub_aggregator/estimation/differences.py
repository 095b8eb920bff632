"""Differences between two shares: of two values, two rounds, or two metrics.

Two values of one snapshot are in the same reports, and their estimates vary together; two
snapshots are of reports that were randomised afresh, and what they vary by adds, or of memos
that have a little in common: see `comparison`. For a population they are two independent
samples of it, also where the same devices answered.

    interval       the score interval, as for one share, with the variance of the difference
                   where the shares are moved towards it as noise would move them
    p-value        the score test of "no difference", two-sided: the interval at this level
                   would just reach 0; adjusted by Holm (1979) for all that were compared
    simultaneous   exact intervals of both shares at Šidák's level, put together: their half
                   widths as the sides of a triangle (Zou and Donner 2008, "MOVER"), or where
                   reports are too few for that, end to end; of a single difference, its own
"""

from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, ndtr

from hubbub_aggregator.estimation.comparison import (
    Compared,
    Indices,
    Sample,
    Side,
    compared_between,
    compared_within,
)
from hubbub_aggregator.estimation.intervals import (
    SCORE_FROM,
    Floats,
    Interval,
    Target,
    as_shares,
    exact_rates,
    normal_quantile,
    require_range,
    score,
)

# Putting two half widths together as sides of a triangle leans on the normal law as far out
# as the tails lie. At a tail of e^−t it errs by some t³/x, with x the reports of the rarer
# kind; below this quotient exact laws of two counts show no miss beyond the level's.
_TRIANGLE_UNTIL: Final = 10

# Halvings of [0, 1] that tell two shares apart as well as float64 does.
_HALVINGS: Final = 52


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Shares on the left less shares on the right, never clipped; arrays of shape (m,)."""

    estimate: Floats
    """Unbiased."""
    std_error: Floats
    low: Floats
    high: Floats
    """Interval for this difference alone."""
    simultaneous_low: Floats
    simultaneous_high: Floats
    """Intervals that cover all m differences at once; with m = 1 the same as above."""
    p_value: Floats
    """Of "no difference": two-sided, for this one alone."""
    adjusted_p_value: Floats
    """The same, for all m at once."""
    distinguishable: NDArray[np.bool_]
    """Whether the simultaneous interval excludes 0."""


def within(
    sample: Sample,
    left: Indices,
    right: Indices,
    *,
    target: Target = "respondents",
    level: float = 0.95,
) -> Differences:
    """Compare values of one snapshot in pairs; in a pair they differ. Takes O(mk).

    Raises ValueError for a target or level out of range, or without a report.
    """
    require_range(target, level, sample.tally.n)
    return _figures(compared_within(sample, (left, right), target), level)


def between(
    left: Sample,
    right: Sample,
    left_values: Indices,
    right_values: Indices,
    *,
    target: Target = "respondents",
    level: float = 0.95,
) -> Differences:
    """Compare values of two snapshots, that share no report, in pairs. Raises as `within`."""
    require_range(target, level, min(left.tally.n, right.tally.n))
    values = left_values, right_values
    return _figures(compared_between(left, right, values, target), level)


def _figures(compared: Compared, level: float) -> Differences:
    if compared.rarer < SCORE_FROM:
        alone, p_values = _end_to_end(compared, 1 - level), _exact_p_values(compared)
    else:
        alone = score(compared.estimate, compared.variance, normal_quantile(level))
        p_values = _score_p_values(compared)
    # One difference is judged by its own interval, and so agrees with its p-value.
    together = alone if len(p_values) == 1 else _simultaneous(compared, level)
    return Differences(
        estimate=compared.estimate,
        std_error=compared.std_error,
        low=alone.low,
        high=alone.high,
        simultaneous_low=together.low,
        simultaneous_high=together.high,
        p_value=p_values,
        adjusted_p_value=holm(p_values),
        distinguishable=(together.low > 0) | (together.high < 0),
    )


def _simultaneous(compared: Compared, level: float) -> Interval:
    miss = -float(np.expm1(log(level) / len(compared.std_error)))
    if _TRIANGLE_UNTIL * compared.rarer < -(log(miss / 2) ** 3):
        return _end_to_end(compared, miss)
    left, right = (_exact(side, miss / 2) for side in (compared.left, compared.right))
    one, other = compared.left.shares, compared.right.shares
    below = _third_side(one - left.low, right.high - other, compared.correlation)
    above = _third_side(left.high - one, other - right.low, compared.correlation)
    return Interval(compared.estimate - below, compared.estimate + above)


def _third_side(one: Floats, other: Floats, cosine: Floats) -> Floats:
    """The law of cosines."""
    return np.sqrt(np.maximum(0, one**2 + other**2 - 2 * cosine * one * other))


def _end_to_end(compared: Compared, miss: float) -> Interval:
    """From where the left lies lowest and the right highest, whatever their correlation."""
    left, right = (_exact(side, miss / 4) for side in (compared.left, compared.right))
    return Interval(left.low - right.high, left.high - right.low)


def _exact(side: Side, tail: float) -> Interval:
    return as_shares(side.support, exact_rates(side.counts, side.n, tail))


def _score_p_values(compared: Compared) -> Floats:
    estimate, variance = compared.estimate, compared.variance
    at_none = variance.at - variance.slope * estimate - variance.curvature * estimate**2
    # Where no difference is so far off that there is no variance left, p is 0.
    distance = np.abs(estimate) / np.sqrt(np.maximum(at_none, np.finfo(np.float64).tiny))
    return np.asarray(2 * ndtr(-distance))


def _exact_p_values(compared: Compared) -> Floats:
    """One less the level at which the exact intervals, end to end, would just reach 0."""
    left, right = compared.left, compared.right
    smaller = np.minimum(_tail(left, right), _tail(right, left))
    return np.asarray(np.minimum(1, 4 * smaller))


def _tail(more: Side, less: Side) -> Floats:
    """How unlikely so many reports for the one and so few for the other are, if shares agree.

    The larger of the two tails, at the share which makes that smallest: where they are alike.
    """
    bounds = [side.possible for side in (more, less)]
    low = np.full(len(more.counts), min(bound[0] for bound in bounds))
    high = np.full(len(more.counts), max(bound[1] for bound in bounds))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        upper, lower = _tails(more, less, middle)
        low, high = np.where(upper < lower, middle, low), np.where(upper < lower, high, middle)
    return np.maximum(*_tails(more, less, (low + high) / 2))


def _tails(more: Side, less: Side, shares: Floats) -> tuple[Floats, Floats]:
    """P(count ≥ that of the one) and P(count ≤ that of the other), if both have these shares."""
    upper: Floats = bdtrc(more.counts - 1, more.n, more.rates(shares))
    lower: Floats = bdtr(less.counts, less.n, less.rates(shares))
    return upper, lower


def holm(p_values: Floats) -> Floats:
    """Adjust p-values for their number: of all at or below α, none is false but with chance α.

    Holm (1979): the least is multiplied by m, the next by m − 1, none falls below one before.
    """
    order = np.argsort(p_values)
    steps = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(steps * p_values[order]))
    return adjusted
