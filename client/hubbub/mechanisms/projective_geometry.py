"""Projective geometry response: a point that is likelier to be orthogonal to the value's.

Feldman, Nelson, Nguyen and Talwar (ICML 2022). Values and reports are points of the
projective space over the integers modulo a prime q: the K = (q^t − 1)/(q − 1) lines through
the origin of q^t vectors. c of them are orthogonal to a given one, and i to two. A report
is one of the c with probability p = ce^ε/(ce^ε + K − c), else one of the K − c others: nearly
as accurate as subset selection, in log2 K bits.
"""

from fractions import Fraction
from typing import NamedTuple

from hubbub.exact import Epsilon, threshold
from hubbub.limits import MAX_CELLS
from hubbub.mechanisms import big_endian, projective_space
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import SHIPPED, Coin, Resolution, coin
from hubbub.mechanisms.even import EVEN
from hubbub.mechanisms.primes import is_prime
from hubbub.mechanisms.projective_space import points
from hubbub.randomness import Source


class ProjectiveGeometry(NamedTuple):
    """Report a point orthogonal to the value's with probability within/one."""

    k: int
    within: int
    field: int
    """A prime q: coordinates are integers modulo it."""
    dimensions: int
    """t: how many coordinates a point has."""
    resolution: Resolution = SHIPPED

    @property
    def name(self) -> str:
        return "projective-geometry"

    @property
    def _coin(self) -> Coin:
        return coin(self.within, self.resolution)

    @classmethod
    def calibrate(
        cls, k: int, epsilon: Epsilon, *parameters: int, resolution: Resolution = SHIPPED
    ) -> "ProjectiveGeometry":
        """`parameters`: field, a prime, and dimensions ≥ 2, such that k points exist."""
        field, dimensions = parameters
        orthogonal = points(field, dimensions - 1)
        others = Fraction(points(field, dimensions) - orthogonal, orthogonal)
        within = threshold(epsilon, others, resolution.one)
        return cls(k, within, field, dimensions, resolution)

    @property
    def parameters(self) -> dict[str, int]:
        return {"within": self.within, "field": self.field, "dimensions": self.dimensions}

    @property
    def cells(self) -> int:
        """K: how many points there are, each of which may be reported."""
        return points(self.field, self.dimensions)

    @property
    def orthogonal(self) -> int:
        """c: how many of them are orthogonal to a given point."""
        return points(self.field, self.dimensions - 1)

    @property
    def ratio(self) -> Fraction:
        # First what makes the rest small enough to reckon with.
        if not (2 <= self.dimensions <= MAX_CELLS.bit_length() and self.field <= MAX_CELLS):
            raise ValueError(f"there are no {self.dimensions} dimensions over {self.field}")
        if not is_prime(self.field):
            raise ValueError(f"the field {self.field} is not a prime")
        cells, orthogonal, one = self.cells, self.orthogonal, self.resolution.one
        if not self.k <= cells <= MAX_CELLS:
            raise ValueError(f"{cells} points are too few for {self.k} values, or too many")
        if not one * orthogonal < self.within * cells < one * cells:
            raise ValueError(f"within = {self.within} tells nothing or everything")
        return Fraction(self.within * (cells - orthogonal), (one - self.within) * orthogonal)

    @property
    def support(self) -> Support:
        p = Fraction(self.within, self.resolution.one)
        c, i = self.orthogonal, points(self.field, self.dimensions - 2)
        return Support(p, p * i / c + (1 - p) * (c - i) / (self.cells - c))

    @property
    def payload_size(self) -> int:
        return big_endian.size(self.cells)

    def randomise(self, value: int, source: Source) -> bytes:
        field, free = self.field, self.dimensions - 1
        # What is drawn is a vector: any whose product with the value's is 0, but not the origin;
        # or any whose product is not. Either way a point has field − 1 of them, all alike: by
        # what its vector is scaled says nothing, not even beside the point. One coordinate
        # follows from the product and the others, drawn for either case.
        outside = 1 - self._coin.toss(source)
        rest = (1 + source.below(field**free - 1), source.below(field**free))[outside]
        product = outside * (1 + source.below(field - 1))
        point, leading = projective_space.coordinates(value, field, self.dimensions)
        report = projective_space.digits(rest, field, free)
        report.insert(leading, 0)
        others = projective_space.product(point, report, field)
        report[leading] = (EVEN * field + product - others) % field
        return big_endian.pack(projective_space.index(report, field), self.cells)

    def supported(self, payload: bytes) -> list[int]:
        index = big_endian.unpack(payload, self.cells)
        report, _ = projective_space.coordinates(index, self.field, self.dimensions)
        # Products with the points that have each leading place, from those with all vectors of
        # the places below it.
        products, below = list[int](), [0]
        for coordinate in report:
            products += [coordinate + product for product in below]
            if len(products) >= self.k:
                break
            below = [digit * coordinate + rest for digit in range(self.field) for rest in below]
        return [value for value in range(self.k) if products[value] % self.field == 0]
