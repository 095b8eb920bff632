"""What is planned comes out: every figure against simulated collections or the exact law."""

from math import factorial

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.exact import CHARGE_UNIT, Epsilon
from hubbub.mechanisms import MECHANISMS, Mechanism
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.planning.choice import Aim, NothingFits, variance_at
from hubbub_aggregator.planning.memoised import Memo
from hubbub_aggregator.planning.planner import (
    Plan,
    Prospect,
    curator,
    half_width,
    plan,
    reports_needed,
)
from hubbub_aggregator.planning.series import Series
from hubbub_aggregator.planning.work import Work
from tests.harness import count_law, mean_range, proportion_range, variance_range

K, N, TRIALS = 24, 20_000, 100_000
LEVEL, POWER = 0.95, 0.8
ONE = Epsilon.parse("1")


@pytest.fixture(scope="module")
def planned() -> Plan:
    return plan(K, ONE, N)


@pytest.fixture(params=MECHANISMS)
def prospect(planned: Plan, request: pytest.FixtureRequest) -> Prospect:
    (found,) = (row for row in planned.prospects if row.mechanism.name == request.param)
    return found


def collect(prospect: Prospect, holders: int, trials: int, seed: int = 1) -> NDArray[np.int64]:
    """How many of N reports support a value that so many devices have, in many collections.

    For every pure mechanism this is the law of one value's count.
    """
    chance = np.random.default_rng(seed)
    p, q = map(float, prospect.mechanism.support)
    counts: NDArray[np.int64] = chance.binomial(holders, p, trials) + chance.binomial(
        N - holders, q, trials
    )
    return counts


def shares(prospect: Prospect, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    p, q = map(float, prospect.mechanism.support)
    return (counts / N - q) / (p - q)


def test_the_standard_error_is_that_of_collections(prospect: Prospect) -> None:
    p, q = prospect.mechanism.support
    # A collection's error is the mean of N independent ones, so its fourth moment is little
    # above a normal variable's; one report's error is q or 1 − q over p − q.
    variance, one = prospect.std_error**2, float((1 - q) / (p - q))
    fourth = 3 * variance**2 + variance * one**2 / N**2
    seen = float((shares(prospect, collect(prospect, 0, TRIALS)) ** 2).mean())
    # Farther than 12 standard deviations from 0 no collection comes in a lifetime.
    assert variance_range(variance, fourth, 12 * prospect.std_error, TRIALS).holds(seen)


def test_the_interval_of_an_absent_value_covers_as_often_as_it_says(prospect: Prospect) -> None:
    p, q = map(float, prospect.mechanism.support)
    counts, law = count_law(p, q, 0, N)
    inside = abs(counts / N - q) <= prospect.half_width * (p - q)
    coverage = float(law[inside].sum())
    assert 0.935 <= coverage <= 0.965
    seen = np.abs(shares(prospect, collect(prospect, 0, TRIALS))) <= prospect.half_width
    assert proportion_range(coverage, TRIALS).holds(int(seen.sum()))


def test_the_half_widths_are_those_of_the_estimates(prospect: Prospect) -> None:
    expected = round(N * prospect.mechanism.support.q)
    figures = estimate(prospect.mechanism.support, np.full(K, expected, np.int64), N)
    # Half a report more or less moves them by less than one part in a thousand.
    alone = (figures.high - figures.low)[0] / 2
    together = (figures.simultaneous_high - figures.simultaneous_low)[0] / 2
    assert prospect.half_width == pytest.approx(alone, rel=1e-3)
    assert prospect.simultaneous_half_width == pytest.approx(together, rel=1e-3)


def test_all_values_lie_within_the_simultaneous_half_width(planned: Plan) -> None:
    (unary,) = (row for row in planned.prospects if row.mechanism.name == "optimised-unary")
    trials = TRIALS // K
    errors = shares(unary, collect(unary, 0, trials * K)).reshape(trials, K)
    inside = int((np.abs(errors) <= unary.simultaneous_half_width).all(axis=1).sum())
    assert inside >= proportion_range(LEVEL, trials).low


def test_the_detectable_share_is_seen_in_four_of_five_collections(prospect: Prospect) -> None:
    assert prospect.detectable is not None
    holders, trials = round(N * prospect.detectable), 2_000
    counts = collect(prospect, holders, trials)
    seen = sum(
        bool(
            estimate(prospect.mechanism.support, np.full(K, count, np.int64), N).distinguishable[0]
        )
        for count in counts
    )
    assert proportion_range(POWER, trials).low <= seen
    # And hardly more often: one holder less is not enough.
    assert seen <= proportion_range(POWER + 0.01, trials).high


def test_so_many_reports_are_needed_and_one_less_is_too_few(prospect: Prospect) -> None:
    support, wanted = prospect.mechanism.support, 0.01
    n = prospect.reports_needed
    assert n is not None
    assert half_width(support, n) <= wanted < half_width(support, n - 1)
    assert reports_needed(support, 1e-12) is None


def test_a_few_reports_are_planned_with_exact_intervals() -> None:
    support = plan(K, ONE, 5).prospects[0].mechanism.support
    few = reports_needed(support, 0.9)
    assert few is not None
    assert half_width(support, few) <= 0.9 < half_width(support, few - 1)


def test_one_hostile_report_moves_an_estimate_by_the_influence(prospect: Prospect) -> None:
    support = prospect.mechanism.support
    before, after = (
        estimate(support, np.array([count]), N).estimate[0] for count in (1_000, 1_001)
    )
    assert prospect.influence == pytest.approx(after - before, rel=1e-9)


def test_the_first_is_at_the_bound_and_the_rest_follow(planned: Plan) -> None:
    first = planned.prospects[0]
    errors = [row.std_error for row in planned.prospects]
    assert errors == sorted(errors)
    assert 1 - 1e-9 <= first.to_bound <= 1.001
    for row in planned.prospects:
        assert row.to_bound / first.to_bound == pytest.approx((row.std_error / errors[0]) ** 2)
        assert row.to_bound_l2 >= 1 - 1e-9


def test_the_total_is_measured_by_the_best_size_for_it(planned: Plan) -> None:
    # Any shares will do, as long as they sum to 1.
    truth = [0.5, 0.25, *[0.25 / (K - 2)] * (K - 2)]

    def total(mechanism: Mechanism) -> float:
        return sum(variance_at(mechanism, share) for share in truth)

    kind = MECHANISMS["subset-selection"]
    least = min(total(kind.calibrate(K, ONE, size)) for size in range(1, K))
    for row in planned.prospects:
        assert row.to_bound_l2 == pytest.approx(total(row.mechanism) / least, rel=1e-9)


def test_a_curator_pays_the_laplace_mechanism(planned: Plan) -> None:
    # Replacing one answer changes two counts by 1: scale 2/ε.
    trials = 40_000
    noise = np.random.default_rng(2).laplace(scale=2, size=(trials, K)) / N
    figures, draws = planned.curator, trials * K
    scale = 2 / N
    square = variance_range(figures.std_error**2, factorial(4) * scale**4, 60 * scale, draws)
    assert square.holds(float((noise**2).mean()))
    assert mean_range(0, figures.std_error**2, 60 * scale, draws).holds(float(noise.mean()))
    alone = int((np.abs(noise) <= figures.half_width).sum())
    assert proportion_range(LEVEL, draws).holds(alone)
    together = int((np.abs(noise) <= figures.simultaneous_half_width).all(axis=1).sum())
    assert proportion_range(LEVEL, trials).holds(together)


def test_the_price_is_in_standard_errors_and_its_square_in_reports(planned: Plan) -> None:
    same = plan(K, ONE, round(N * planned.price**2)).prospects[0].std_error
    assert same == pytest.approx(planned.curator.std_error, rel=1e-6)


def test_ten_thousand_first_names_of_a_hundred_million_people() -> None:
    n = 100_000_000
    made = plan(10_000, ONE, n, level=0.99)
    assert n * made.curator.simultaneous_half_width == pytest.approx(27.6, abs=0.05)
    assert n * made.prospects[0].simultaneous_half_width == pytest.approx(93_900, rel=1e-3)
    assert curator(10_000, Epsilon.parse("2"), n, 0.99).simultaneous_half_width == pytest.approx(
        made.curator.simultaneous_half_width / 2
    )


def test_only_what_fits_is_planned_and_for_the_share_that_was_named() -> None:
    made = plan(64, Epsilon.parse("4"), N, aim=Aim(share=0.1, max_bytes=2))
    assert {row.mechanism.name for row in made.prospects} == {
        "randomised-response",
        "subset-selection",
        "projective-geometry",
    }
    errors = [row.std_error_at_share for row in made.prospects]
    assert errors == sorted(errors)
    assert made.reason.startswith("subset-selection: ")
    with pytest.raises(NothingFits):
        plan(60_000, ONE, N, aim=Aim(max_bytes=1))


def test_the_work_is_counted_in_cells(planned: Plan) -> None:
    works = {row.mechanism.name: row.work for row in planned.prospects}
    assert {work.cells for name, work in works.items() if name != "projective-geometry"} == {K}
    assert works["randomised-response"].per_report == works["projective-geometry"].per_report == 1
    assert works["optimised-unary"].per_report == works["local-hashing"].per_report == K
    geometry = works["projective-geometry"]
    assert geometry.cells >= K
    assert geometry.per_reading > geometry.cells
    # A short set lists its members, a long one is a bit vector.
    short, long = (
        next(row for row in plan(k, ONE, N).prospects if row.mechanism.name == "subset-selection")
        for k in (K, 1_000)
    )
    assert short.work.per_report == short.mechanism.parameters["size"]
    assert long.work.per_report == 1_000


def test_the_work_of_a_memo_is_that_of_its_rows_but_where_values_are_hashed() -> None:
    from_memo = plan(K, ONE, N, series=Series(30, memo=Memo(Epsilon.parse("1.2"))))
    works = {row.mechanism.name: row.work for row in from_memo.prospects}
    without = {row.mechanism.name: row.work for row in plan(K, ONE, N).prospects}
    for name in ("randomised-response", "symmetric-unary", "optimised-unary"):
        assert works[f"memoised-{name}"] == without[name]
    hashing = works["memoised-local-hashing"]
    # Three cells, 3^4 hashes; each of four coordinates adds up three products for all of them.
    assert hashing == Work(cells=243, per_report=1, per_reading=243 * 3 * 4)


@pytest.mark.parametrize(
    ("series", "reports", "charge"),
    [
        (Series(), 1_000, 1),
        (Series(40), 1_000, 40),
        (Series(40, join=8), 200, 8),
        (Series(3, join=1), 333, 1),
        (Series(10_000, join=1), 1, 1),
        (Series(40, memo=Memo(Epsilon.parse("2"))), 1_000, 8),
        (Series(40, memo=Memo(Epsilon.parse("2"), cells=3)), 1_000, 6),
    ],
)
def test_a_series_has_a_price_and_so_many_reports_a_round(
    series: Series, reports: int, charge: int
) -> None:
    made = plan(4, ONE, 1_000, series=series)
    assert made.reports == reports
    assert made.prospects[0].charge == charge * CHARGE_UNIT
    assert (made.prospects[0].memory is None) == (series.memo is None)


@pytest.mark.parametrize(
    ("rounds", "charge", "expected"),
    [(365, 8, "0.021917808219"), (4, 8, "2"), (1, 9, "8"), (100_000, 1, "0.00001")],
)
def test_what_fresh_noise_would_be_for_the_same_price(
    rounds: int, charge: int, expected: str
) -> None:
    assert Series(rounds).fresh(charge * CHARGE_UNIT).text == expected
