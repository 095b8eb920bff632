"""Intervals: they solve their equations, at the ends of the range too."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from hubbub.mechanisms import Support
from hubbub_aggregator.estimation.intervals import (
    Target,
    as_shares,
    exact_rates,
    one_value,
    respondent_rates,
    simultaneous,
    wilson_rates,
)
from tests.calibrated import calibrated


def support_of(name: str, k: int, epsilon: str) -> Support:
    return calibrated(name, k, epsilon).support


SUPPORTS = {
    "p + q = 1": support_of("symmetric-unary", 4, "1"),
    "p = 1/2": support_of("optimised-unary", 4, "1"),
    "p + q < 1": support_of("randomised-response", 9, "1"),
    "p + q > 1": Support(Fraction(99, 100), Fraction(60, 100)),
    "p − q tiny": support_of("symmetric-unary", 2, "0.000000000001"),
}


@pytest.fixture(params=list(SUPPORTS))
def support(request: pytest.FixtureRequest) -> Support:
    return SUPPORTS[request.param]


@pytest.fixture(params=["respondents", "population"])
def target(request: pytest.FixtureRequest) -> Target:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("z", [0.5, 1.96, 4.5])
@pytest.mark.parametrize("n", [1, 40, 100_000])
def test_respondents_ends_lie_z_standard_deviations_from_the_count(
    support: Support, n: int, z: float
) -> None:
    counts = np.unique(np.linspace(0, n, 50).astype(np.int64))
    p, q = float(support.p), float(support.q)

    for rate in respondent_rates(support, counts, n, z):
        own = (rate - q) / float(support.p - support.q)
        variance = (own * p * (1 - p) + (1 - own) * q * (1 - q)) / n
        assert (variance > 0).all()
        assert np.abs(counts / n - rate) == pytest.approx(z * np.sqrt(variance), rel=1e-6)


@pytest.mark.parametrize("z", [0.5, 1.96, 4.5])
@pytest.mark.parametrize("n", [1, 40, 100_000])
def test_wilsons_ends_lie_z_standard_deviations_from_the_count(n: int, z: float) -> None:
    counts = np.unique(np.linspace(0, n, 50).astype(np.int64))

    low, high = wilson_rates(counts, n, z)

    assert np.abs(low[1:] - counts[1:] / n) == pytest.approx(
        z * np.sqrt(low[1:] * (1 - low[1:]) / n), rel=1e-6
    )
    assert np.abs(high[:-1] - counts[:-1] / n) == pytest.approx(
        z * np.sqrt(high[:-1] * (1 - high[:-1]) / n), rel=1e-6
    )
    assert (low[0], high[-1]) == pytest.approx((0, 1), abs=1e-15)


@pytest.mark.parametrize("tail", [0.1, 0.025, 4e-7])
@pytest.mark.parametrize("n", [1, 40, 100_000, 10**9])
def test_exact_ends_have_the_tails_they_should(n: int, tail: float) -> None:
    counts = np.unique(np.geomspace(1, n, 20).astype(np.int64))

    low, high = exact_rates(counts, n, tail)

    assert stats.binom.sf(counts - 1, n, low) == pytest.approx(tail, rel=1e-6)
    below = counts < n
    assert stats.binom.cdf(counts[below], n, high[below]) == pytest.approx(tail, rel=1e-6)


def test_exact_intervals_of_nothing_and_of_all_end_at_0_and_1() -> None:
    low, high = exact_rates(np.array([0, 30]), 30, 0.025)

    assert low[0] == 0
    assert high[1] == 1
    assert (high[0], low[1]) == pytest.approx((1 - 0.025 ** (1 / 30), 0.025 ** (1 / 30)))


def test_equal_counts_have_equal_intervals_in_the_order_they_came() -> None:
    counts = np.array([7, 3, 7, 0, 3])

    low, high = exact_rates(counts, 10, 0.025)

    alone = [exact_rates(np.array([count]), 10, 0.025) for count in counts]
    assert low.tolist() == [interval.low[0] for interval in alone]
    assert high.tolist() == [interval.high[0] for interval in alone]


@pytest.mark.parametrize("n", [1, 12, 300])
def test_ends_grow_with_the_count_and_hold_the_estimate(
    support: Support, target: Target, n: int
) -> None:
    counts = np.arange(n + 1)
    rates = counts / n
    estimates = (rates - float(support.q)) / float(support.p - support.q)

    for low, high in (one_value(support, counts, n, target), simultaneous(support, counts, n)):
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        assert (np.diff(low) > 0).all()
        assert (np.diff(high) > 0).all()
        # Of no reports the lowest rate possible is 0, of all the highest is 1.
        slack = 1e-9 * np.abs(estimates)
        assert (low <= estimates + slack).all()
        assert (estimates - slack <= high).all()


def test_which_interval_is_used_depends_on_n_and_never_on_the_counts(target: Target) -> None:
    support = Support(Fraction(1, 2), Fraction(1, 4))

    few = one_value(support, np.arange(40), 39, target)
    enough = one_value(support, np.arange(41), 40, target)

    exact_few = as_shares(support, exact_rates(np.arange(40), 39, 0.025))
    exact_enough = as_shares(support, exact_rates(np.arange(41), 40, 0.025))
    assert few.low == pytest.approx(exact_few.low, rel=1e-9)
    assert few.high == pytest.approx(exact_few.high, rel=1e-9)
    assert np.abs(enough.low - exact_enough.low).max() > 0.01


@pytest.mark.parametrize("k", [1, 2, 1_000, 65_536])
def test_simultaneous_intervals_miss_at_sidaks_rate(k: int) -> None:
    support = SUPPORTS["p = 1/2"]
    counts = np.full(k, 300)

    low = simultaneous(support, counts, 1_000, 0.95).low[0]

    rate = float(support.q) + low * float(support.p - support.q)
    tail = stats.binom.sf(299, 1_000, rate)
    assert (1 - 2 * tail) ** k == pytest.approx(0.95, rel=1e-6)
