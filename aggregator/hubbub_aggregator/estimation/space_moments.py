"""Second moments where values are points of a projective space, and some lie on a line.

Which values a report supports together then depends on their lines. Nothing is added up over
pairs: sums over hyperplanes know them all at once.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import MemoisedLocalHashing, ProjectiveGeometry
from hubbub_aggregator.estimation.intervals import Floats, as_share
from hubbub_aggregator.estimation.moments import PairMoments, Plane
from hubbub_aggregator.oracles.hyperplanes import hyperplane_sums
from hubbub_aggregator.oracles.memoised_hashing import over_reports, over_values
from hubbub_aggregator.tally import Counts, Tally


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
        _, far = self._reported
        return _rarer(self._scores(weights), self.mechanism.cells * far)

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


class HashMoments(NamedTuple):
    """Memoised local hashing: pairs are alike, but for two values on a line with the device's.

    Under a random vector the products with independent points are independent. A third point
    on the line through two is αu + (1 − α)v, as vectors that lead with a 1, or some other
    combination. The first falls into the cell of u and v whenever those share one, that is with
    probability 1/g; anything else shares their cell once in g² as if it were independent.
    """

    mechanism: MemoisedLocalHashing

    @property
    def _pairs(self) -> PairMoments:
        p, q = self.mechanism.support
        return PairMoments.of(self.mechanism.support, p * q, q * q)

    def shares(self, tally: Tally) -> Floats:
        counts = over_reports(self.mechanism, tally.cells)
        return as_share(self.mechanism.support, counts / tally.n)

    def weights(self, weights: Floats) -> Floats:
        return weights

    def covariance(self, shares: Floats, weights: Floats) -> Floats:
        more = self._more_on_lines * self._on_lines(shares, weights)
        return np.asarray(self._pairs.covariance(shares, weights) + more)

    def variance(self, weights: Floats) -> Plane:
        constant, slopes = self._pairs.variance(weights)
        more = self._more_on_lines * self._on_lines(weights, weights)
        return Plane(constant, slopes + more)

    def reach(self, weights: Floats) -> float:
        return float(np.ptp(self._scores(weights)))

    def rarer(self, weights: Floats) -> float:
        p, q = map(float, self.mechanism.support)
        return _rarer(self._scores(weights), (1 - p) / (1 - q))

    @property
    def _more_on_lines(self) -> float:
        """How much more a report of u supports v and w, on a line with u: (pq − q²)/(p − q)²."""
        p, q = self.mechanism.support
        return float(q / (p - q))

    def _on_lines(self, one: Floats, other: Floats) -> Floats:
        """For every value u, Σ one_v other_w over ordered pairs that are on such a line with u.

        By what the values' cells have in common. Of all vectors x, a share

            Σ one_v other_w P(⟨x, v⟩ = ⟨x, w⟩ = ⟨x, u⟩)

        is what u supports of both; to take away what it would be without lines leaves them.
        """
        q = float(self.mechanism.support.q)
        cells = over_values(self.mechanism, one) * over_values(self.mechanism, other)
        both = over_reports(self.mechanism, cells) / self.mechanism.seeds
        own = one * other
        one_rest, other_rest = one.sum() - one, other.sum() - other
        same = own.sum() - own
        independent = (
            own
            + q * (same + one * other_rest + other * one_rest)
            + q**2 * (one_rest * other_rest - same)
        )
        return np.asarray((both - independent) / (q - q**2))

    def _scores(self, weights: Floats) -> Floats:
        """What each report adds to n · Σ w f̂."""
        p, q = self.mechanism.support
        sums = over_values(self.mechanism, weights)
        return np.asarray((sums - float(q) * weights.sum()) / float(p - q))


def _rarer(scores: Floats, spread_out: float) -> float:
    """Which share of the reports is of the rarer kind, of a sum with these scores.

    `spread_out`: which share of the reports is all of them alike, whatever the devices' values;
    the rest may be of one mind. Values may lie so that their scores cancel at nearly all
    reports, and the sum hangs on how often a few come: half of all values, on one side of a
    hyperplane. Squared squares over fourth powers tell. Of a coin that is q if q is small, and 1
    if it is fair: half of it is never more than min(q, 1 − q).
    """
    squares = (scores - scores.mean()) ** 2
    fourth = float(np.mean(squares**2))
    return spread_out * float(squares.mean()) ** 2 / fourth / 2 if fourth else 1.0
