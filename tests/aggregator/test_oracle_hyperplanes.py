"""The dynamic program against the definition: every point, and every point orthogonal to it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import ProjectiveGeometry
from hubbub.mechanisms.projective_space import coordinates, digits, points
from hubbub_aggregator.oracles.hyperplanes import hyperplane_sums, point_numbers, product_sums

SPACES = [
    *((2, dimensions) for dimensions in range(1, 11)),
    *((3, dimensions) for dimensions in range(1, 7)),
    *((5, dimensions) for dimensions in range(1, 5)),
    *((7, dimensions) for dimensions in range(1, 5)),
    (11, 3),
    (29, 3),
    (31, 3),
    (2, 1),
    (997, 2),
]


def incidence(field: int, dimensions: int) -> NDArray[np.bool_]:
    """Which points are orthogonal to which: shape (K, K)."""
    # In order of their numbers, the vectors that begin with a 1 are the points.
    vectors = np.array(
        [
            [number // field**place % field for place in range(dimensions)]
            for leading in range(dimensions)
            for number in range(field**leading, 2 * field**leading)
        ]
    )
    return vectors @ vectors.T % field == 0


@pytest.mark.parametrize(("field", "dimensions"), SPACES)
def test_integers_add_up_to_exactly_what_is_orthogonal(field: int, dimensions: int) -> None:
    # So large that a double does not hold their sums.
    values = np.random.default_rng(field).integers(0, 2**52, points(field, dimensions))
    sums = hyperplane_sums(values, field, dimensions)
    assert sums.dtype == np.int64
    np.testing.assert_array_equal(sums, incidence(field, dimensions) @ values)


@pytest.mark.parametrize(("field", "dimensions"), SPACES)
def test_doubles_add_up_too(field: int, dimensions: int) -> None:
    """Multiples of 2^-20, so that every sum is exact whatever the order."""
    values = np.random.default_rng(field).integers(0, 2**20, points(field, dimensions)) / 2**20
    sums = hyperplane_sums(values, field, dimensions)
    assert sums.dtype == np.float64
    np.testing.assert_array_equal(sums, incidence(field, dimensions) @ values)


def test_points_are_numbered_as_the_mechanism_numbers_them() -> None:
    mechanism = ProjectiveGeometry.calibrate(57, Epsilon.parse("1"), 7, 3)
    orthogonal = incidence(7, 3)
    for index in range(mechanism.cells):
        payload = index.to_bytes(mechanism.payload_size, "big")
        assert mechanism.supported(payload) == np.flatnonzero(orthogonal[index]).tolist()


def test_the_values_stay_as_they_were() -> None:
    values = np.arange(points(3, 4))
    hyperplane_sums(values, 3, 4)
    np.testing.assert_array_equal(values, np.arange(40))


@pytest.mark.parametrize(("field", "dimensions"), [(2, 17), (61, 4), (401, 3), (65_537, 2)])
def test_a_single_point_is_in_its_hyperplanes_only(field: int, dimensions: int) -> None:
    """In large spaces: the sums of one point's 1 are its own hyperplane, c points."""
    orthogonal = points(field, dimensions - 1)
    for index in (1, points(field, dimensions) - 1):
        values = np.zeros(points(field, dimensions), np.int64)
        values[index] = 1
        hyperplane = hyperplane_sums(values, field, dimensions)
        assert set(hyperplane.tolist()) == {0, 1}
        assert hyperplane.sum() == orthogonal
        # Orthogonality is mutual.
        assert (hyperplane_sums(hyperplane, field, dimensions)[index]) == orthogonal


@pytest.mark.parametrize(("field", "dimensions"), [(2, 1), (2, 4), (3, 1), (3, 3), (5, 2), (7, 2)])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_sums_by_product_are_over_the_vectors_that_leave_it(
    field: int, dimensions: int, kind: type
) -> None:
    size = field**dimensions
    values = np.random.default_rng(field).integers(0, 2**40, (field, size)).astype(kind)
    before = values.copy()
    places = field ** np.arange(dimensions)
    vectors = np.arange(size)[:, None] // places % field
    products = vectors @ vectors.T % field
    expected = [
        [values[(s - products[:, u]) % field, np.arange(size)].sum() for u in range(size)]
        for s in range(field)
    ]

    sums = product_sums(values, field, dimensions)

    assert sums.dtype == kind
    np.testing.assert_array_equal(sums, expected)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize(("field", "dimensions"), [(2, 5), (3, 3), (7, 2), (5, 1)])
def test_the_numbers_of_points_are_those_of_their_coordinates(field: int, dimensions: int) -> None:
    numbers = point_numbers(field, dimensions)
    assert len(numbers) == points(field, dimensions)
    for index, number in enumerate(numbers.tolist()):
        vector, _ = coordinates(index, field, dimensions)
        assert vector == digits(number, field, dimensions)
