"""The harness's promise, by enumeration: false alarms at most ALPHA, and wrong laws are seen."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.harness import (
    ALPHA,
    count_law,
    divergence,
    divergence_limit,
    mean_range,
    proportion_range,
    variance_range,
)


@pytest.mark.parametrize("n", [1, 10, 400])
@pytest.mark.parametrize("p", [0.001, 0.2, 0.5])
def test_a_mean_leaves_its_range_with_probability_at_most_alpha(n: int, p: float) -> None:
    law = stats.binom.pmf(np.arange(n + 1), n, p)
    means = np.arange(n + 1) / n
    allowed = mean_range(p, p * (1 - p), max(p, 1 - p), n)

    assert law[(means < allowed.low) | (means > allowed.high)].sum() <= ALPHA


@pytest.mark.parametrize("n", [1, 10, 400])
@pytest.mark.parametrize("p", [0.001, 0.2, 0.5])
def test_a_mean_square_leaves_its_range_with_probability_at_most_alpha(n: int, p: float) -> None:
    ones = np.arange(n + 1)
    law = stats.binom.pmf(ones, n, p)
    variance = p * (1 - p)
    fourth = variance * (1 - 3 * variance)
    squares = (ones * (1 - p) ** 2 + (n - ones) * p**2) / n
    allowed = variance_range(variance, fourth, max(p, 1 - p), n)

    assert law[(squares < allowed.low) | (squares > allowed.high)].sum() <= ALPHA


@pytest.mark.parametrize("n", [1, 10, 400])
@pytest.mark.parametrize("p", [0.001, 0.2, 0.5])
def test_a_count_leaves_its_range_with_probability_at_most_alpha(n: int, p: float) -> None:
    allowed = proportion_range(p, n)
    law = stats.binom(n, p)

    assert law.cdf(float(allowed.low) - 1) + law.sf(float(allowed.high)) <= ALPHA


@pytest.mark.parametrize("probabilities", [(0.5, 0.3, 0.2), (0.98, 0.01, 0.01)])
def test_bins_exceed_the_divergence_limit_with_probability_at_most_alpha(
    probabilities: tuple[float, float, float],
) -> None:
    n, expected = 60, np.array(probabilities)
    law = stats.multinomial(n, expected)
    splits = [(a, b, n - a - b) for a, b in product(range(n + 1), repeat=2) if a + b <= n]
    alarms = [s for s in splits if divergence(np.array(s), expected) > divergence_limit(3)]

    assert alarms
    assert sum(law.pmf(alarms)) <= ALPHA


def test_one_sighting_of_the_impossible_exceeds_every_limit() -> None:
    seen = np.array([999, 1])

    assert divergence(seen, np.array([1.0, 0.0])) > divergence_limit(2)


def test_a_wrong_mean_is_seen() -> None:
    assert not mean_range(0.5, 0.25, 0.5, 10_000).holds(0.53)


def test_one_wrong_figure_among_many_is_seen() -> None:
    allowed = mean_range(np.full(100, 0.5), 0.25, 0.5, 10_000, figures=100)
    seen = np.full(100, 0.5)
    assert allowed.holds(seen)

    seen[42] = 0.54

    assert not allowed.holds(seen)


def test_a_wrong_variance_is_seen() -> None:
    assert not variance_range(0.25, 0.0625, 0.5, 10_000).holds(0.26)


def test_a_count_law_adds_up_and_has_the_moments_of_its_two_binomials() -> None:
    counts, law = count_law(0.7, 0.2, holders=300, others=5_000)

    mean = float(counts @ law)
    assert law.sum() == pytest.approx(1, abs=1e-13)
    assert mean == pytest.approx(300 * 0.7 + 5_000 * 0.2, rel=1e-12)
    assert (counts - mean) ** 2 @ law == pytest.approx(300 * 0.21 + 5_000 * 0.16, rel=1e-11)
