"""How the estimates of one crowd vary together, by the second moments of its mechanism."""

from typing import Final, NamedTuple

import numpy as np

from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    MemoisedLocalHashing,
    MemoisedRandomisedResponse,
    MemoisedUnary,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub_aggregator.estimation.intervals import Floats, Target
from hubbub_aggregator.estimation.moments import Moments, PairMoments, Plane
from hubbub_aggregator.estimation.space_moments import HashMoments, HyperplaneMoments
from hubbub_aggregator.tally import Tally


def moments_of(mechanism: Mechanism) -> Moments:
    """The second moments of a mechanism's estimates."""
    p, q = mechanism.support
    match mechanism:
        case SymmetricUnary() | OptimisedUnary() | MemoisedUnary():
            return PairMoments.of(mechanism.support, p * q, q * q)
        case RandomisedResponse() | MemoisedRandomisedResponse():
            return _sized(mechanism, 1)
        case SubsetSelection():
            return _sized(mechanism, mechanism.size)
        case LocalHashing():
            two, three = mechanism.collision(2), mechanism.collision(3)
            apart = (1 - p) * (two - three) / (mechanism.buckets - 1)
            return PairMoments.of(mechanism.support, p * two, p * three + apart)
        case ProjectiveGeometry():
            return HyperplaneMoments(mechanism)
        case MemoisedLocalHashing():
            return HashMoments(mechanism)
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
