"""Differences: their intervals cover, their p-values are right, and many are judged as many."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import LocalHashing, Mechanism, ProjectiveGeometry, SubsetSelection
from hubbub_aggregator.estimation.comparison import Sample
from hubbub_aggregator.estimation.differences import Differences, between, holm, within
from hubbub_aggregator.estimation.intervals import Target
from hubbub_aggregator.estimation.linear import linear_estimate
from hubbub_aggregator.tally import Tally
from tests.calibrated import calibrated
from tests.channels import channel, crowd_sizes, pair_law, small_mechanisms
from tests.harness import count_law, proportion_range

LEVEL = 0.95
FIRST, SECOND = np.array([0]), np.array([1])


@pytest.fixture(params=["respondents", "population"])
def target(request: pytest.FixtureRequest) -> Target:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("n", [12, 3_000])
@pytest.mark.parametrize("mechanism", small_mechanisms("1"), ids=lambda m: f"{m.name}-{m.k}")
def test_within_a_snapshot_it_is_a_weighted_sum(
    mechanism: Mechanism, n: int, target: Target
) -> None:
    holders = np.full(mechanism.k, n // mechanism.k)
    holders[0] += n - holders.sum()
    tally = channel(mechanism).tally(holders, np.random.default_rng(n))
    left, right = np.array([0, 1, mechanism.k - 1]), np.array([1, 0, 0])

    found = within(Sample(mechanism, tally), left, right, target=target)

    for place, (u, v) in enumerate(zip(left, right, strict=True)):
        weights = np.eye(mechanism.k)[u] - np.eye(mechanism.k)[v]
        expected = linear_estimate(mechanism, tally, weights, target=target)
        for name in ("estimate", "std_error", "low", "high"):
            figure = getattr(found, name)[place]
            assert figure == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-12), name


def test_the_other_way_round_everything_is_reversed(target: Target) -> None:
    one = Sample(calibrated("optimised-unary", 3, "1"), Tally(400, np.array([150, 100, 90])))
    counts = np.array([300, 300, 100])
    other = Sample(calibrated("randomised-response", 3, "2"), Tally(700, counts))
    values = np.arange(3)

    forth = between(one, other, values, values, target=target)
    back = between(other, one, values, values, target=target)

    assert back.estimate == pytest.approx(-forth.estimate)
    assert back.low == pytest.approx(-forth.high)
    assert back.simultaneous_low == pytest.approx(-forth.simultaneous_high)
    assert back.p_value == pytest.approx(forth.p_value)


@pytest.mark.parametrize(("n", "counts"), [(20, [16, 3, 5]), (900, [380, 330, 240])])
def test_the_p_value_is_where_the_interval_would_reach_zero(
    n: int, counts: list[int], target: Target
) -> None:
    sample = Sample(calibrated("optimised-unary", 3, "1"), Tally(n, np.array(counts)))
    compare: list[Callable[[float], Differences]] = [
        lambda level: within(sample, FIRST, SECOND, target=target, level=level),
        lambda level: between(sample, sample, FIRST, SECOND, target=target, level=level),
    ]
    for compared in compare:
        (p,) = compared(LEVEL).p_value

        assert 1e-4 < p < 1
        assert compared(1 - p).low == pytest.approx(0, abs=1e-9)


def test_exact_p_values_are_too_small_no_more_often_than_they_say() -> None:
    mechanism = calibrated("randomised-response", 2, "1")
    n = 25
    counts = counts_of(mechanism, n, 5)
    found = every_pair(mechanism, counts, counts)
    both = np.outer(counts.law, counts.law).ravel()

    assert n * mechanism.support.q < 10
    for alpha in (0.5, 0.05, 0.01):
        assert both[found.p_value <= alpha].sum() <= alpha


def test_holms_adjustment() -> None:
    # By hand: 4 × 0.01, then 3 × 0.02, then 2 × 0.03 = 0.06 (not less), then 1 × 0.04.
    adjusted = holm(np.array([0.04, 0.01, 0.03, 0.02]))

    assert adjusted == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm(np.array([0.6, 0.7])) == pytest.approx([1, 1])


def pair(counts: list[int], target: Target, level: float) -> list[Differences]:
    """One difference within a snapshot, and one between two."""
    sample = Sample(calibrated("optimised-unary", 3, "1"), Tally(sum(counts), np.array(counts)))
    return [
        within(sample, FIRST, SECOND, target=target, level=level),
        between(sample, sample, FIRST, SECOND, target=target, level=level),
    ]


@pytest.mark.parametrize("counts", [[16, 3, 5], [380, 330, 240]], ids=["few", "many"])
def test_one_difference_is_judged_by_its_own_interval(counts: list[int], target: Target) -> None:
    for place, found in enumerate(pair(counts, target, LEVEL)):
        (p,) = found.p_value
        assert found.simultaneous_low == found.low
        assert found.simultaneous_high == found.high
        assert found.adjusted_p_value == p
        assert found.distinguishable == (p <= 1 - LEVEL)
        # On either side of the level at which the verdict changes.
        for level, expected in ((1 - 1.01 * p, True), (1 - 0.99 * p, False)):
            assert pair(counts, target, level)[place].distinguishable == expected


def test_many_are_judged_as_many() -> None:
    mechanism = calibrated("optimised-unary", 8, "2")
    sample = Sample(mechanism, Tally(2_000, np.array([700, 560, 300, 300, 300, 300, 300, 300])))
    one = within(sample, FIRST, SECOND)
    many = within(sample, np.zeros(7, np.int64), np.arange(1, 8))

    assert many.p_value[0] == one.p_value[0]
    assert many.low[0] == one.low[0]
    assert many.adjusted_p_value[0] >= one.adjusted_p_value[0] == one.p_value[0]
    assert many.simultaneous_low[0] < one.simultaneous_low[0]
    assert many.distinguishable.tolist() == (many.simultaneous_low > 0).tolist()
    assert many.distinguishable.any()


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_levels_out_of_range_are_refused(level: float) -> None:
    sample = Sample(calibrated("optimised-unary", 2, "1"), Tally(9, np.array([5, 4])))

    with pytest.raises(ValueError, match="level"):
        within(sample, FIRST, SECOND, level=level)
    with pytest.raises(ValueError, match="level"):
        between(sample, sample, FIRST, SECOND, level=level)


# -- Coverage ---------------------------------------------------------------------------------


class Counts(NamedTuple):
    """What a value's count may be, of n reports, and how likely each is."""

    n: int
    counts: NDArray[np.int64]
    law: NDArray[np.float64]


def counts_of(mechanism: Mechanism, n: int, own: int, target: Target = "respondents") -> Counts:
    """Where `own` of n devices have the value, or such a share of a population does."""
    p, q = map(float, mechanism.support)
    if target == "population":
        return Counts(n, *count_law(q + own / n * (p - q), 0, n, 0, reach=6))
    return Counts(n, *count_law(p, q, own, n - own, reach=7))


def every_pair(
    mechanism: Mechanism,
    one: Counts,
    other: Counts,
    *,
    target: Target = "respondents",
    comparisons: int = 1,
) -> Differences:
    """Every count compared with every other, judged as so many comparisons.

    All go in at once, and the level undoes what Šidák's takes from that.
    """
    left, right = map(np.ravel, np.meshgrid(one.counts, other.counts, indexing="ij"))
    values = np.arange(len(left))
    return between(
        Sample(mechanism, Tally(one.n, left)),
        Sample(mechanism, Tally(other.n, right)),
        values,
        values,
        target=target,
        level=LEVEL if comparisons == 1 else LEVEL ** (len(left) / comparisons),
    )


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
@pytest.mark.parametrize("name", ["symmetric-unary", "optimised-unary", "randomised-response"])
def test_two_rounds_are_covered(name: str, epsilon: str, target: Target) -> None:
    """Exactly: a value's counts of two rounds are independent, whatever the mechanism."""
    mechanism = calibrated(name, 4, epsilon)
    n = crowd_sizes(mechanism, 30)[0]
    other_n = n + n // 3
    for share, other_share in ((0, 0), (0.02, 0.1), (0.5, 0.25), (1, 0), (0.9, 0.9)):
        own, other_own = round(share * n), round(other_share * other_n)
        one = counts_of(mechanism, n, own, target)
        other = counts_of(mechanism, other_n, other_own, target)
        found = every_pair(mechanism, one, other, target=target)
        truth = own / n - other_own / other_n
        both = np.outer(one.law, other.law).ravel()

        coverage = both[(found.low <= truth) & (truth <= found.high)].sum()

        assert 0.935 <= coverage <= 0.965


# On either side of where half widths are put together as sides of a triangle.
@pytest.mark.parametrize(
    ("comparisons", "x"), [(3, 0.5), (3, 5), (3, 12), (30, 12), (30, 40), (300, 12), (300, 85)]
)
def test_all_differences_are_covered_at_once(comparisons: int, x: float) -> None:
    """Exactly; the worst pair is all devices on one side and none on the other."""
    mechanism = calibrated("symmetric-unary", 2, "4")
    n = crowd_sizes(mechanism, x)[0]
    for own, other_own in ((n, 0), (n // 2, n // 2), (0, 0)):
        one, other = counts_of(mechanism, n, own), counts_of(mechanism, n, other_own)
        found = every_pair(mechanism, one, other, comparisons=comparisons)
        truth = (own - other_own) / n
        low, high = found.simultaneous_low, found.simultaneous_high
        both = np.outer(one.law, other.law).ravel()

        miss = both[(truth < low) | (high < truth)].sum()

        assert 1 - comparisons * miss >= 0.9487


def dependent(epsilon: str) -> list[Mechanism]:
    """Mechanisms in which what a report supports hangs together, alike for every pair."""
    declared = Epsilon.parse(epsilon)
    return [
        calibrated("randomised-response", 4, epsilon),
        SubsetSelection.calibrate(5, declared, 2),
        LocalHashing.calibrate(4, declared, 4, 7),
    ]


@pytest.mark.parametrize("mechanism", dependent("1"), ids=lambda m: m.name)
def test_two_values_of_one_snapshot_are_covered(mechanism: Mechanism) -> None:
    """Exactly: the joint law of both counts, on which alone the difference depends."""
    made, n = channel(mechanism), crowd_sizes(mechanism, 30)[0]

    @cache
    def compared(one: int, other: int) -> tuple[Differences, Differences]:
        """By itself, and as one of two of which each covers as often as the one."""
        rest = [0] * (mechanism.k - 2)
        sample = Sample(mechanism, Tally(n, np.array([one, other, *rest])))
        both = FIRST.repeat(2), SECOND.repeat(2)
        return within(sample, FIRST, SECOND), within(sample, *both, level=LEVEL**2)

    for own, other_own in ((n // 2, n // 3), (n // 10, n // 10)):
        holders = np.array([own, other_own, n - own - other_own] + [0] * (mechanism.k - 3))
        law = pair_law(made, holders)
        truth = (own - other_own) / n
        alone = together = 0.0
        likely = np.argwhere(law > 1e-6)
        for one, other in likely:
            found, twice = compared(int(one), int(other))
            alone += law[one, other] * float(found.low[0] <= truth <= found.high[0])
            joined = twice.simultaneous_low[0] <= truth <= twice.simultaneous_high[0]
            together += law[one, other] * float(joined)

        assert law.sum() == pytest.approx(1, abs=1e-9)
        assert 0.935 <= alone <= 0.965
        assert together >= 0.9487


@pytest.mark.parametrize("values", [(0, 1), (4, 8)], ids=str)
def test_two_points_of_a_space_are_covered(values: tuple[int, int]) -> None:
    mechanism = ProjectiveGeometry.calibrate(9, Epsilon.parse("2"), 3, 3)
    trials, n = 600, crowd_sizes(mechanism, 30)[0]
    rng = np.random.default_rng(values[1])
    holders = rng.multinomial(n, rng.dirichlet(np.ones(9)))
    truth = (holders[values[0]] - holders[values[1]]) / n
    made = channel(mechanism)
    left, right = (np.array([value]) for value in values)

    hits = 0
    for _ in range(trials):
        found = within(Sample(mechanism, made.tally(holders, rng)), left, right)
        hits += int(found.low[0] <= truth <= found.high[0])

    assert proportion_range(0.935, trials).low <= hits <= proportion_range(0.965, trials).high
