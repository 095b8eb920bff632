"""The second moments of a mechanism's noise: what they are asked, and those that are the same
for every pair of values.

A report that supports a set S of values adds its *score*, Σ w_v ([v ∈ S] − q)/(p − q), to n
times the estimated sum θ̂ = Σ w_v f̂_v. Over the noise, a score's mean is w_v for a device of
value v, so what is left of it is linear in the shares f: for every mechanism

    n · Cov(f̂_v, θ̂)  and  n · Var(θ̂) = constant + Σ slope_v f_v

are read off the estimates without bias. How, depends on how often a report supports two
values at once. For most mechanisms that is the same for every pair.

Everything here is about fixed data, "respondents"; a population adds the spread of a sample.
"""

from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np

from hubbub.mechanisms import Support
from hubbub_aggregator.estimation.intervals import Floats, as_share
from hubbub_aggregator.tally import Tally


class Plane(NamedTuple):
    """A linear function of the shares f: constant + Σ slopes_v f_v."""

    constant: float
    slopes: Floats
    """The same shape as the shares."""

    def at(self, shares: Floats) -> float:
        return self.constant + float(self.slopes @ shares)


class Moments(Protocol):
    """The second moments of a mechanism's estimates, with n multiplied out.

    Shares, weights and slopes are float64, one for each value; in a projective space one for
    each point, of which those that are no value's have weight 0, and share 0 but for noise.
    """

    def shares(self, tally: Tally) -> Floats:
        """The unbiased estimates."""
        ...

    def weights(self, weights: Floats) -> Floats:
        """Weights of k values as these functions take them."""
        ...

    def covariance(self, shares: Floats, weights: Floats) -> Floats:
        """n · Cov(f̂_v, Σ w f̂) of every v, where these are the shares."""
        ...

    def variance(self, weights: Floats) -> Plane:
        """n · Var(Σ w f̂), as a function of the shares."""
        ...

    def reach(self, weights: Floats) -> float:
        """How far one hostile report moves n · Σ w f̂, at most."""
        ...

    def rarer(self, weights: Floats) -> float:
        """Which share of the reports is of the rarer kind, whatever the devices' values.

        What makes a sum as good as normal: the more, the fewer reports do. Of a single value
        it is min(q, 1 − p) or near it.
        """
        ...


class PairMoments(NamedTuple):
    """Of a mechanism that treats every pair of values alike.

    Variances and covariances of what one report supports, each divided by (p − q)².
    """

    support: Support
    alone: float
    """Variance of one other value: q(1 − q)."""
    more_alone: float
    """How much more it is for the device's own: p(1 − p) − q(1 − q)."""
    pair: float
    """Covariance of two other values: r − q², with r the probability of supporting both."""
    more_pair: float
    """How much more it is for the own and another: (s − pq) − (r − q²), with s as r."""
    size: int | None
    """How many values every report supports; None: any number."""

    @classmethod
    def of(
        cls, support: Support, own: Fraction, others: Fraction, size: int | None = None
    ) -> "PairMoments":
        """From s and r. Only fractions tell them apart from pq and q², if anything does."""
        p, q = support
        scale = (p - q) ** 2
        pair = others - q * q
        return cls(
            support,
            alone=float(q * (1 - q) / scale),
            more_alone=float((p * (1 - p) - q * (1 - q)) / scale),
            pair=float(pair / scale),
            more_pair=float((own - p * q - pair) / scale),
            size=size,
        )

    def shares(self, tally: Tally) -> Floats:
        return as_share(self.support, tally.cells / tally.n)

    def weights(self, weights: Floats) -> Floats:
        return weights

    def covariance(self, shares: Floats, weights: Floats) -> Floats:
        rest = weights.sum() - weights
        rest_of_sum = weights @ shares - weights * shares
        variances = self.alone + self.more_alone * shares
        pairs = self.pair * rest + self.more_pair * (shares * rest + rest_of_sum)
        return np.asarray(weights * variances + pairs)

    def variance(self, weights: Floats) -> Plane:
        squares, total = float(weights @ weights), float(weights.sum())
        constant = self.alone * squares + self.pair * (total**2 - squares)
        pairs = 2 * self.more_pair * weights * (total - weights)
        return Plane(constant, self.more_alone * weights**2 + pairs)

    def reach(self, weights: Floats) -> float:
        if self.size is None:
            # A report may support all that weigh up, and none that weigh down.
            span = np.abs(weights).sum()
        else:
            ascending = np.sort(weights)
            span = ascending[-self.size :].sum() - ascending[: self.size].sum()
        return float(span) / float(self.support.p - self.support.q)

    def rarer(self, weights: Floats) -> float:
        # Sums of several values are closer to normal than each of them.
        return float(min(self.support.q, 1 - self.support.p))
