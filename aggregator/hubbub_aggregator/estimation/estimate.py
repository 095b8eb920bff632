"""From counts to shares: the unbiased estimate, and how sure it is.

For every pure mechanism (Wang, Blocki, Li and Jha, USENIX Security 2017):
estimate = (count/n − q)/(p − q), from the realised p and q of the integer thresholds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import Support
from hubbub_aggregator.estimation.intervals import (
    Floats,
    Interval,
    Target,
    as_share,
    one_value,
    require_counts,
    require_range,
    simultaneous,
)
from hubbub_aggregator.tally import Counts

Ranks = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Shares (1 = everybody) of k values, never clipped: some may lie below 0 or above 1.

    Every array has shape (k,) and, unless said otherwise, dtype float64.
    """

    estimate: Floats
    """Unbiased."""
    std_error: Floats
    """Estimated standard deviation of `estimate`; positive."""
    low: Floats
    high: Floats
    """Interval for this value alone."""
    simultaneous_low: Floats
    simultaneous_high: Floats
    """Intervals that cover all values at once."""
    distinguishable: NDArray[np.bool_]
    """Whether the value is surely not absent: simultaneous_low > 0."""
    rank_low: Ranks
    rank_high: Ranks
    """Ranks the value can have, 1 = most frequent, if all simultaneous intervals cover."""
    influence: Floats
    """How far one hostile report moves `estimate`: 1/(n(p − q))."""


def estimate(
    support: Support,
    counts: Counts,
    n: int,
    *,
    target: Target = "respondents",
    level: float = 0.95,
) -> Estimate:
    """Estimate every value's share from the reports that support it.

    `counts`: in [0, n], shape (k,); `n`: reports, at least 1; `level`: probability
    in (0, 1) that an interval covers. Raises ValueError if one of them is something else.
    """
    require_range(target, level, n)
    require_counts(counts, n)
    alone = one_value(support, counts, n, target, level)
    together = simultaneous(support, counts, n, level)
    rank_low, rank_high = ranks(together)
    return Estimate(
        estimate=as_share(support, counts / n),
        std_error=np.sqrt(estimated_variance(support, counts, n, target)),
        low=alone.low,
        high=alone.high,
        simultaneous_low=together.low,
        simultaneous_high=together.high,
        distinguishable=together.low > 0,
        rank_low=rank_low,
        rank_high=rank_high,
        influence=np.full(len(counts), 1 / (n * float(support.p - support.q))),
    )


def ranks(intervals: Interval) -> tuple[Ranks, Ranks]:
    """The best and the worst rank that each value can have, 1 = largest share.

    A value ranks below those whose whole interval lies above its own, and above those whose
    whole interval lies below: int64, shape (k,), for as long as every interval covers.
    """
    k = len(intervals.low)
    above = k - np.searchsorted(np.sort(intervals.low), intervals.high, side="right")
    below = np.searchsorted(np.sort(intervals.high), intervals.low, side="left")
    return (1 + above).astype(np.int64), (k - below).astype(np.int64)


def estimated_variance(support: Support, counts: Counts, n: int, target: Target) -> Floats:
    """Estimated variance of each estimate.

    Respondents: the unbiased estimator, linear in the count; at a count of 0 it is still
    pq/(n(p − q)²). Population: f(1 − f)/n more, with the estimate, held to [0, 1], for f.
    The unbiased estimator there, s(1 − s)/((n − 1)(p − q)²) with s = count/n, is useless
    just where one looks: 0 at a count of 0, and below the respondents' for estimates below 0.
    """
    p, q = support
    observed = counts / n
    noise = float(1 - p - q) * observed + float(p * q)
    variance = noise / (n * float(p - q) ** 2)
    if target == "population":
        share = np.clip(as_share(support, observed), 0, 1)
        variance = variance + share * (1 - share) / n
    return variance
