"""Estimates: unbiased, with the right spread, exactly; ranks; arguments refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.mechanisms import MECHANISMS, Support
from hubbub_aggregator.estimation.estimate import Estimate, estimate, ranks
from hubbub_aggregator.estimation.intervals import Interval
from tests.calibrated import calibrated
from tests.harness import count_law


def support_of(name: str, k: int, epsilon: str) -> Support:
    return calibrated(name, k, epsilon).support


WARNER = support_of("randomised-response", 2, "1")
FAIR = support_of("optimised-unary", 8, "1")


def law_of_figures(support: Support, n: int, holders: int) -> tuple[Estimate, NDArray[np.float64]]:
    """Estimates from every count that has a chance, and the counts' probabilities."""
    counts, law = count_law(float(support.p), float(support.q), holders, n - holders)
    return estimate(support, counts, n), law


@pytest.mark.parametrize("epsilon", ["0.5", "2", "4"])
@pytest.mark.parametrize("k", [2, 16, 128])
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_the_estimate_is_unbiased_and_so_is_its_variance(name: str, k: int, epsilon: str) -> None:
    n, holders = 900, 150
    figures, law = law_of_figures(support_of(name, k, epsilon), n, holders)
    spread = law @ (figures.estimate - holders / n) ** 2

    assert law @ figures.estimate == pytest.approx(holders / n, rel=1e-10)
    assert law @ figures.std_error**2 == pytest.approx(spread, rel=1e-10)


@pytest.mark.parametrize(
    ("name", "k", "epsilon", "golden"),
    [
        ("randomised-response", 16, "0.5", 0.06272),
        ("randomised-response", 16, "1", 0.02545),
        ("randomised-response", 16, "2", 0.008620),
        ("randomised-response", 16, "4", 0.002236),
        ("randomised-response", 256, "0.5", 0.2543),
        ("randomised-response", 256, "1", 0.1009),
        ("randomised-response", 256, "2", 0.03222),
        ("randomised-response", 256, "4", 0.007624),
        ("symmetric-unary", 16, "0.5", 0.03990),
        ("symmetric-unary", 16, "1", 0.01979),
        ("symmetric-unary", 16, "2", 0.009595),
        ("symmetric-unary", 16, "4", 0.004255),
        ("optimised-unary", 256, "0.5", 0.03971),
        ("optimised-unary", 256, "1", 0.01945),
        ("optimised-unary", 256, "2", 0.009078),
        ("optimised-unary", 256, "4", 0.004195),
    ],
)
def test_the_spread_of_an_estimate_is_the_literatures(
    name: str, k: int, epsilon: str, golden: float
) -> None:
    # Standard deviations from the published formulas, at 10,000 reports and a share of 0.1.
    figures, law = law_of_figures(support_of(name, k, epsilon), 10_000, 1_000)

    spread = np.sqrt(law @ (figures.estimate - 0.1) ** 2)

    assert spread == pytest.approx(golden, rel=5e-4)
    assert np.sqrt(law @ figures.std_error**2) == pytest.approx(golden, rel=5e-4)


def test_a_population_adds_the_spread_of_its_sample() -> None:
    n, share = 5_000, 0.3
    p, q = float(FAIR.p), float(FAIR.q)
    rate = q + share * (p - q)
    counts, law = count_law(rate, 0, n, 0)

    figures = estimate(FAIR, counts, n, target="population")

    spread = rate * (1 - rate) / (n * (p - q) ** 2)
    assert law @ figures.std_error**2 == pytest.approx(spread, rel=2 / n)


def test_a_population_is_never_surer_than_its_respondents() -> None:
    n = 200
    counts = np.arange(n + 1)

    respondents = estimate(FAIR, counts, n).std_error
    population = estimate(FAIR, counts, n, target="population").std_error

    assert (respondents > 0).all()
    assert (population >= respondents).all()
    assert (population > respondents).any()


def test_nothing_is_clipped() -> None:
    figures = estimate(FAIR, np.array([0, 100]), 100)

    assert figures.estimate[0] < 0
    assert figures.estimate[1] > 1
    assert figures.low[0] < figures.low[1]
    assert figures.simultaneous_low[0] < 0
    assert figures.simultaneous_high[1] > 1


def test_influence_is_how_far_one_other_report_moves_the_estimate() -> None:
    before = estimate(WARNER, np.array([40, 60]), 100)
    after = estimate(WARNER, np.array([41, 59]), 100)

    assert after.estimate - before.estimate == pytest.approx([1, -1] * before.influence)


def test_what_is_distinguishable_lies_above_zero_with_all_others() -> None:
    n = 1_000
    figures = estimate(FAIR, np.arange(200, 500), n)

    assert 0 < figures.distinguishable.sum() < 300
    assert (figures.distinguishable == (figures.simultaneous_low > 0)).all()


def test_a_difference_of_supports_below_floating_point_is_kept() -> None:
    support = support_of("symmetric-unary", 2, "0.000000000001")
    assert float(support.p) - float(support.q) != float(support.p - support.q)

    figures = estimate(support, np.array([501, 500]), 1_000)

    assert figures.estimate[0] == pytest.approx(1e-3 / float(support.p - support.q), rel=1e-9)


def test_as_many_values_as_a_metric_may_have() -> None:
    k, n = 65_536, 1_000_000
    counts = np.random.default_rng(1).integers(250_000, 252_000, k)

    figures = estimate(FAIR, counts, n)

    assert np.isfinite(figures.simultaneous_low).all()
    assert (figures.simultaneous_low < figures.low).all()
    assert (figures.high < figures.simultaneous_high).all()


def test_ranks_follow_from_comparing_all_pairs() -> None:
    random = np.random.default_rng(2)
    low = random.integers(0, 40, 300).astype(float)  # many ends coincide
    high = low + random.integers(0, 9, 300).astype(float)

    best, worst = ranks(Interval(low, high))

    assert best.tolist() == [1 + int((low > end).sum()) for end in high]
    assert worst.tolist() == [300 - int((high < end).sum()) for end in low]


def test_ranks_hold_the_truth_when_all_intervals_do() -> None:
    random = np.random.default_rng(3)
    truth = random.random(100)
    interval = Interval(truth - random.random(100) / 20, truth + random.random(100) / 20)

    best, worst = ranks(interval)

    rank = 1 + np.argsort(np.argsort(-truth))
    assert (best <= rank).all()
    assert (rank <= worst).all()
    assert (best < worst).any()


@pytest.mark.parametrize(
    ("counts", "n", "options", "message"),
    [
        ([0, 0], 0, {}, "at least one report"),
        ([0, -1], 5, {}, r"\[0, n = 5\]"),
        ([0, 6], 5, {}, r"\[0, n = 5\]"),
        ([], 5, {}, "one for each value"),
        ([[1, 2]], 5, {}, "one for each value"),
        ([0.5, 1.5], 5, {}, "int64"),
        ([1, 2], 5, {"level": 0.0}, "level"),
        ([1, 2], 5, {"level": 1.0}, "level"),
        ([1, 2], 5, {"level": float("nan")}, "level"),
        ([1, 2], 5, {"target": "everybody"}, "respondents or population"),
    ],
)
def test_arguments_out_of_range_are_refused(
    counts: list[int], n: int, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        estimate(WARNER, np.array(counts), n, **options)
