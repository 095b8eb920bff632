"""Sums over the hyperplanes of a projective space, over all of them at once.

A point's hyperplane is the points orthogonal to it. One after the other, K sums of about K/q
points each would be K²/q additions. Dynamic programming shares what they have in common, as
Feldman, Nelson, Nguyen and Talwar (ICML 2022) do, and leaves about K q t: a coordinate at a
time, what has been added up so far is kept for every value that the product may have so far.

Points are numbered as in `hubbub.mechanisms.projective_geometry`: by the place of their leading
1, then by the coordinates below it. So a space of t dimensions is one of t − 1, whose points
have 0 as their last coordinate, followed by the q^(t − 1) points that have 1 there, one for
each vector of the other coordinates. All sums are split along that line, for the point asked
about and for the points summed over.
"""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Values = NDArray[Any]


def hyperplane_sums(values: Values, field: int, dimensions: int) -> Values:
    """For every point, the sum of `values` over the points orthogonal to it.

    `values`: one for each of the K points of a space of `dimensions` ≥ 1 over the integers
    modulo `field`, a prime; of a dtype that holds their sum, int64 or float64. Returns the
    same shape and dtype; integers are added exactly.
    """
    if dimensions == 1:
        # The only point is not orthogonal to itself.
        return np.zeros_like(values)
    size = field ** (dimensions - 1)
    lower, upper = values[:-size], values[-size:]
    lower_sums = hyperplane_sums(lower, field, dimensions - 1)
    upper_sums = _sums_by_product(upper, field, dimensions - 1)
    sums = np.empty_like(values)
    # Asked about a point with 0 at the end: the last coordinates add nothing to the product.
    sums[:-size] = lower_sums + upper_sums[:, 0]
    # Asked about one with 1 at the end, after the vector x: a lower point y must be orthogonal
    # to x, and an upper one have ⟨y, x⟩ = −1. Everything is orthogonal to the origin, nothing
    # has −1 with it; any other x is λ times a lower point u, and then ⟨y, u⟩ = −1/λ.
    vectors = sums[-size:]
    vectors[0] = lower.sum()
    multiples = range(1, field)
    products = [-pow(multiple, -1, field) % field for multiple in multiples]
    vectors[_multiples(field, dimensions - 1)] = lower_sums + upper_sums.T[products]
    return sums


def product_sums(values: Values, field: int, dimensions: int) -> Values:
    """For every product s and vector u, the sum of values[s − ⟨x, u⟩, x] over all vectors x.

    `values`: of shape (field, field^dimensions), vectors by their numbers to the base `field`.
    Returns the same shape and dtype; integers are added exactly.
    """
    table = values
    for _ in range(dimensions):
        table = _multiplied(table.reshape(field, field, -1))
    return table


def point_numbers(field: int, dimensions: int) -> NDArray[np.int64]:
    """The number of each point's vector, in the points' order."""
    return np.concatenate(
        [np.arange(field**place, 2 * field**place) for place in range(dimensions)]
    )


def _sums_by_product(values: Values, field: int, dimensions: int) -> Values:
    """For every point u and every product s, the sum of values over the vectors x, ⟨x, u⟩ = s.

    `values`: one for each vector, by its number to the base q; shape (q^dimensions,). Returns
    shape (points, q).
    """
    if dimensions == 1:
        # u is 1, and the product x itself.
        return values.reshape(1, field)
    # Where u ends in 0, x's last coordinate does not matter; where it ends in 1, the product
    # begins with it. The axes are the product and x's other coordinates, highest first.
    table = values.reshape(field, -1)
    lower = _sums_by_product(table.sum(axis=0), field, dimensions - 1)
    return np.concatenate([lower, product_sums(table, field, dimensions - 1).T])


def _multiplied(table: Values) -> Values:
    """Add a coordinate y of x, times each that u may have there, to the product.

    `table`: by the product so far, y, and the rest. Returns shape (q, rest · q): y is summed
    over, and u's coordinate comes last. After all of them, u's stand as x's stood.
    """
    field, _, rest = table.shape
    # Adding y·f to the product is a rotation. With the products twice in a row, every rotation
    # is a slice that begins at another place.
    twice = np.concatenate([table, table]).swapaxes(0, 1).reshape(field, -1)
    rotations = sliding_window_view(twice, field * rest, axis=1)[:, ::rest]
    sums = np.zeros((field, field * rest), table.dtype)
    factors = np.arange(field)
    for y in range(field):
        sums += rotations[y, -y * factors % field]
    return np.moveaxis(sums.reshape(field, field, rest), 0, -1).reshape(field, -1)


def _multiples(field: int, dimensions: int) -> NDArray[np.int64]:
    """The number of the vector λu, for λ in [1, field) and every point u: (field − 1, points)."""
    points = point_numbers(field, dimensions)
    multiples = np.arange(1, field)[:, None]
    scaled = np.zeros((field - 1, len(points)), np.int64)
    for place in range(dimensions):
        scaled += points // field**place % field * multiples % field * field**place
    return scaled
