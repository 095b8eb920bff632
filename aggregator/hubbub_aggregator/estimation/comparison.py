"""Two sides of comparisons: how sure each share is, and how they vary together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import Mechanism, MemoisedRandomisedResponse, Support
from hubbub_aggregator.estimation.covariance import spread
from hubbub_aggregator.estimation.estimate import estimated_variance
from hubbub_aggregator.estimation.intervals import (
    Floats,
    Target,
    Variance,
    as_share,
    rarer,
    share_variance,
)
from hubbub_aggregator.estimation.linear import along, std_error
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.tally import Counts, Tally

Indices = NDArray[np.int64]
"""Values, by their place in the domain: int64 of shape (m,)."""


class Sample(NamedTuple):
    """A snapshot's reports, of which there is at least one, and how they were made."""

    mechanism: Mechanism
    tally: Tally


class Side(NamedTuple):
    """One side of m comparisons."""

    support: Support
    counts: Counts
    """Reports that support each value, shape (m,)."""
    n: int

    @property
    def shares(self) -> Floats:
        return as_share(self.support, self.counts / self.n)

    @property
    def possible(self) -> tuple[float, float]:
        """The shares whose expected counts are 0 and n."""
        p, q = self.support
        return float(-q / (p - q)), float((1 - q) / (p - q))

    def rates(self, shares: Floats) -> Floats:
        p, q = self.support
        return np.clip(float(q) + shares * float(p - q), 0, 1)

    def spread(self, target: Target) -> Floats:
        """Estimated standard deviations of the shares."""
        return np.sqrt(estimated_variance(self.support, self.counts, self.n, target))


class Compared(NamedTuple):
    """What m differences, left less right, are judged by."""

    left: Side
    right: Side
    std_error: Floats
    variance: Variance
    """As a function of the true difference."""
    correlation: Floats
    """Of the two estimated shares."""

    @property
    def estimate(self) -> Floats:
        return self.left.shares - self.right.shares

    @property
    def rarer(self) -> float:
        """x of the side that has less."""
        return min(rarer(side.support, side.n) for side in (self.left, self.right))


def _side(sample: Sample, values: Indices) -> Side:
    counts = oracle_for(sample.mechanism).supports(sample.tally.cells)
    return Side(sample.mechanism.support, counts[values], sample.tally.n)


def compared_within(sample: Sample, values: tuple[Indices, Indices], target: Target) -> Compared:
    """One snapshot: a difference is a weighted sum, of weights 1 and −1."""
    mechanism, n = sample.mechanism, sample.tally.n
    sides = _side(sample, values[0]), _side(sample, values[1])
    errors, variances, together = [], [], []
    for u, v in zip(*values, strict=True):
        weights = np.zeros(mechanism.k)
        weights[u], weights[v] = 1, -1
        noise = spread(mechanism, sample.tally, weights)
        errors.append(std_error(noise, weights, n, target))
        variances.append(along(noise, weights, n, target))
        # Cov(f̂_u, f̂_u − f̂_v) is the variance less what is wanted; a sample adds −f_u f_v/n.
        sampled = noise.shares[u] * noise.shares[v] / n if target == "population" else 0.0
        together.append(-noise.covariance[u] - sampled)
    alone = estimated_variance(sides[0].support, sides[0].counts, n, "respondents")
    covariance = alone + np.array(together)
    return Compared(
        *sides,
        std_error=np.array(errors),
        variance=Variance(*(np.array(part) for part in zip(*variances, strict=True))),
        correlation=np.clip(
            covariance / (sides[0].spread(target) * sides[1].spread(target)), -1, 1
        ),
    )


def compared_between(
    left: Sample, right: Sample, values: tuple[Indices, Indices], target: Target
) -> Compared:
    """Two snapshots: variances add, and noise moves each share by its part of it.

    If the same devices answered both, what is the same in both comes off again, and the
    difference is surer than is said; or where that is negative, less sure, which is added.
    """
    sides = _side(left, values[0]), _side(right, values[1])
    noise = [side.spread("respondents") ** 2 for side in sides]
    part = noise[0] / (noise[0] + noise[1])
    one, other = (share_variance(side.support, side.counts, side.n, target) for side in sides)
    common = np.zeros(len(part))
    if left.mechanism == right.mechanism:
        at_most = _exclusion(left.mechanism, sides, target)
        common = np.where(values[0] != values[1], at_most, 0.0)
    spreads = [side.spread(target) for side in sides]
    return Compared(
        *sides,
        std_error=np.sqrt(spreads[0] ** 2 + spreads[1] ** 2 - 2 * common),
        variance=Variance(
            one.at + other.at - 2 * common,
            one.slope * part - other.slope * (1 - part),
            one.curvature * part**2 + other.curvature * (1 - part) ** 2,
        ),
        correlation=common / (spreads[0] * spreads[1]),
    )


def _exclusion(mechanism: Mechanism, sides: tuple[Side, Side], target: Target) -> Floats:
    """The covariance of two rounds' estimates of different values, as far as it is below 0.

    A device of a population has one value, and so not the other; and a row of memoised randomised
    response is one, and so not the other. As in `pooled`, every device in the smaller round is
    taken for one in both, whose value stays; two metrics with the same thresholds are taken for
    one.
    """
    one, other = (np.clip(side.shares, 0, 1) for side in sides)
    found = np.zeros(len(one))
    if target == "population":
        found -= one * other
    if isinstance(mechanism, MemoisedRandomisedResponse):
        p, q = map(float, mechanism.permanent.support)
        holders = np.clip(sides[0].shares + sides[1].shares, 0, 1)
        found -= (q * q + holders * (p * q - q * q)) / (p - q) ** 2
    return found / max(side.n for side in sides)
