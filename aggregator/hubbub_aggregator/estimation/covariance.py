"""How the estimates of one crowd vary together: the second moments of every mechanism's noise.

A report that supports a set S of values adds its *score*, Σ w_v ([v ∈ S] − q)/(p − q), to n
times the estimated sum θ̂ = Σ w_v f̂_v. Over the noise, a score's mean is w_v for a device of
value v, so what is left of it is linear in the shares f: for every mechanism

    n · Cov(f̂_v, θ̂)  and  n · Var(θ̂) = constant + Σ slope_v f_v

are read off the estimates without bias. How, depends on how often a report supports two
values at once. For most mechanisms that is the same for every pair (`PairMoments`); in a
projective space it is not, and the sums are taken over its hyperplanes (`HyperplaneMoments`).

Everything here is about fixed data, "respondents"; a population adds the spread of a sample.
"""

from fractions import Fraction
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    Support,
    SymmetricUnary,
)
from hubbub_aggregator.estimation.intervals import Floats, Target, as_share
from hubbub_aggregator.oracles.hyperplanes import hyperplane_sums
from hubbub_aggregator.tally import Counts, Tally


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


class HyperplaneMoments(NamedTuple):
    """Projective geometry: which values a report supports together depends on their lines.

    Every moment is a sum of scores over the points orthogonal to one.
    """

    mechanism: ProjectiveGeometry

    def shares(self, tally: Tally) -> Floats:
        return as_share(self.mechanism.support, self._sums(tally.cells) / tally.n)

    def weights(self, weights: Floats) -> Floats:
        return np.pad(weights, (0, self.mechanism.cells - len(weights)))

    def covariance(self, shares: Floats, weights: Floats) -> Floats:
        p, q = self.mechanism.support
        # With these shares, how often each point is reported.
        near, far = self._reported
        rates = far * shares.sum() + (near - far) * self._sums(shares)
        both = self._sums(rates * self._scores(weights)) - float(q) * (weights @ shares)
        return np.asarray(both / float(p - q) - shares * weights)

    def variance(self, weights: Floats) -> Plane:
        near, far = self._reported
        squares = self._scores(weights) ** 2
        slopes = (near - far) * self._sums(squares) - weights**2
        return Plane(far * float(squares.sum()), slopes)

    def reach(self, weights: Floats) -> float:
        return float(np.ptp(self._scores(weights)))

    def rarer(self, weights: Floats) -> float:
        # Values may lie so that their scores cancel at nearly all points, and the sum hangs on
        # how often a few are reported: half of all values, on one side of a hyperplane. Squared
        # squares over fourth powers tell. Of a coin that is q if q is small, and 1 if it is fair:
        # half of it is never more than min(q, 1 − q). And of the reports K · `far` are spread
        # over all points alike, whatever the devices' values; the rest may be of one mind.
        scores = self._scores(weights)
        squares = (scores - scores.mean()) ** 2
        _, far = self._reported
        fourth = float(np.mean(squares**2))
        spread_out = self.mechanism.cells * far
        return spread_out * float(squares.mean()) ** 2 / fourth / 2 if fourth else 1.0

    def _scores(self, weights: Floats) -> Floats:
        """What a report of each point adds to n · Σ w f̂."""
        p, q = self.mechanism.support
        return np.asarray((self._sums(weights) - float(q) * weights.sum()) / float(p - q))

    @property
    def _reported(self) -> tuple[float, float]:
        """How likely one certain point is reported: orthogonal to the value's, and not."""
        p, c = self.mechanism.support.p, self.mechanism.orthogonal
        return float(p / c), float((1 - p) / (self.mechanism.cells - c))

    def _sums(self, values: NDArray[np.float64] | Counts) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = hyperplane_sums(
            values, self.mechanism.field, self.mechanism.dimensions
        )
        return sums


def moments_of(mechanism: Mechanism) -> Moments:
    """The second moments of a mechanism's estimates."""
    p, q = mechanism.support
    match mechanism:
        case SymmetricUnary() | OptimisedUnary():
            return PairMoments.of(mechanism.support, p * q, q * q)
        case RandomisedResponse():
            return _sized(mechanism, 1)
        case SubsetSelection():
            return _sized(mechanism, mechanism.size)
        case LocalHashing():
            two, three = mechanism.collision(2), mechanism.collision(3)
            apart = (1 - p) * (two - three) / (mechanism.buckets - 1)
            return PairMoments.of(mechanism.support, p * two, p * three + apart)
        case ProjectiveGeometry():
            return HyperplaneMoments(mechanism)
        case _:
            raise TypeError(f"nothing is known of how {mechanism.name} estimates vary together")


def _sized(mechanism: Mechanism, size: int) -> PairMoments:
    """Uniform sets of a fixed size, with the own value in or out."""
    p, k = mechanism.support.p, mechanism.k
    own = p * (size - 1) / (k - 1)
    pairs = p * (size - 1) * (size - 2) + (1 - p) * size * (size - 1)
    # Of two values there are no two others, and nothing hangs on how often they come together.
    others = pairs / ((k - 1) * (k - 2)) if k > 2 else mechanism.support.q**2
    return PairMoments.of(mechanism.support, own, others, size)


def covariance_matrix(mechanism: Mechanism, tally: Tally, target: Target = "respondents") -> Floats:
    """Estimated covariances of all estimated shares, float64 of shape (k, k).

    Takes O(k²), 8k² bytes; in a projective space k times some sums over its hyperplanes. For
    many values ask `spread` about the sum that is wanted.
    """
    moments, k = moments_of(mechanism), mechanism.k
    shares = moments.shares(tally)
    matrix = np.stack([moments.covariance(shares, moments.weights(row))[:k] for row in np.eye(k)])
    if target == "population":
        matrix += np.diag(shares[:k]) - np.outer(shares[:k], shares[:k])
    return matrix / tally.n


class Spread(NamedTuple):
    """How an estimated sum θ̂ = Σ w_v f̂_v varies over the noise of one crowd."""

    shares: Floats
    """The unbiased estimates f̂, shape (k,)."""
    covariance: Floats
    """Cov(f̂_v, θ̂) of every value, shape (k,)."""
    variance: float
    """Var(θ̂), ≥ 0."""
    slope: float
    """How Var(θ̂) grows with θ, if the shares change as they do when noise moves θ̂."""
    influence: float
    """How far one hostile report moves θ̂, at most."""
    greatest: float
    """What Var(θ̂) is for the crowd whose reports vary most."""
    rarer: float
    """How many reports are of the rarer kind: few, and θ̂ is not as good as normal."""


# A variance this small, beside the largest weight's own square, is what rounding left of 0: a sum
# over all values is 1 to the last report where every report supports as many.
_ROUNDING: Final = 1e-12


def spread(mechanism: Mechanism, tally: Tally, weights: Floats) -> Spread:
    """Estimate the noise of a weighted sum of shares, from at least one report.

    `weights`: float64, finite, shape (k,). The covariances are unbiased. So is the variance,
    but for tallies that next to no crowd makes, where it would fall to nothing or below.
    """
    moments, n = moments_of(mechanism), tally.n
    shares, padded = moments.shares(tally), moments.weights(weights)
    covariance, plane = moments.covariance(shares, padded), moments.variance(padded)
    variance = max(plane.at(shares), _least(mechanism, plane))
    span = float(mechanism.support.p - mechanism.support.q)
    if variance < _ROUNDING * (float(np.abs(weights).max()) / span) ** 2:
        variance = 0.0
    slope = float(plane.slopes @ covariance) / variance if variance else 0.0
    k = mechanism.k
    return Spread(
        shares=shares[:k],
        covariance=covariance[:k] / n,
        variance=variance / n,
        slope=slope / n,
        influence=moments.reach(padded) / n,
        greatest=max(0.0, plane.constant + float(plane.slopes[:k].max())) / n,
        rarer=n * moments.rarer(padded),
    )


def _least(mechanism: Mechanism, plane: Plane) -> float:
    """The least that n · Var(θ̂) is taken for, so that an interval is always to be had.

    Whatever the shares, it is no less than the lowest value of the plane. Of a single value
    estimates go below that, at a count of 0 or of n by the factor here: those stay as they are.
    """
    p, q = map(float, mechanism.support)
    lowest = plane.constant + float(plane.slopes[: mechanism.k].min())
    return max(0.0, lowest * min(p / (1 - q), (1 - q) / p))
