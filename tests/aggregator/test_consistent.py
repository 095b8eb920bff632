"""Shares that could be true: by what makes them the nearest, and beside a slow search."""

import numpy as np
import pytest

from hubbub_aggregator.estimation.consistent import consistent


@pytest.mark.parametrize("k", [1, 2, 3, 16, 1_024])
@pytest.mark.parametrize("spread", [0.001, 0.1, 3.0])
def test_they_are_the_nearest(k: int, spread: float) -> None:
    """By the conditions of Karush, Kuhn and Tucker, which only the nearest meet."""
    chance = np.random.default_rng(k)
    for _ in range(20):
        shares = chance.dirichlet(np.ones(k)) + chance.normal(0, spread, k)
        nearest = consistent(shares)
        assert nearest.min() >= 0
        assert nearest.sum() == pytest.approx(1, abs=1e-12)
        # All that are left gave the same, and the others would have had to give more than they had.
        left = nearest > 0
        given = (shares - nearest)[left]
        assert given == pytest.approx(given[0], abs=1e-12)
        assert (shares[~left] <= given[0] + 1e-12).all()


def test_those_that_are_consistent_stay_as_they_are() -> None:
    for shares in ([1.0], [0.25, 0.75], [0.0, 0.0, 1.0], [0.5, 0.0, 0.25, 0.25]):
        assert consistent(np.array(shares)) == pytest.approx(shares, abs=1e-15)


def test_by_hand() -> None:
    assert consistent(np.array([0.6, 0.5, -0.1])) == pytest.approx([0.55, 0.45, 0.0])
    assert consistent(np.array([-3.0, -1.0])) == pytest.approx([0.0, 1.0])
    assert consistent(np.array([0.1, 0.1])) == pytest.approx([0.5, 0.5])
