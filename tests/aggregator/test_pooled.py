"""Rounds together: the estimate is that of all reports, its error the largest that is possible.

What is possible is enumerated for small mechanisms; that errors are not larger either is seen
on devices that answer every round from one memo.
"""

from fractions import Fraction
from itertools import product
from math import comb, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MEMOISED,
    Mechanism,
    MemoisedMechanism,
    MemoisedUnary,
    OptimisedUnary,
    RandomisedResponse,
)
from hubbub.randomness import SYSTEM
from hubbub_aggregator.estimation.comparison import Sample
from hubbub_aggregator.estimation.differences import between
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.estimation.intervals import Target, rarer
from hubbub_aggregator.estimation.pooled import Pool, pool, pooled_estimate, vary_together
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.tally import Tally
from tests.calibrated import calibrated, memoised
from tests.channels import channel
from tests.harness import mean_range
from tests.memoised_laws import history_law

FIGURES = ("estimate", "std_error", "low", "high", "simultaneous_low", "simultaneous_high")
OSUE = MemoisedUnary.calibrate(OptimisedUnary.calibrate(2, Epsilon.parse("2")), Epsilon.parse("1"))


def pooled(*tallies: Tally) -> Pool:
    found = pool(sorted(tallies, key=lambda tally: -tally.n))
    assert found is not None
    return found


@pytest.fixture(params=["respondents", "population"])
def target(request: pytest.FixtureRequest) -> Target:
    return request.param  # type: ignore[no-any-return]


# -- Pools --------------------------------------------------------------------------------------


def test_reports_add_and_every_two_rounds_share_the_smaller_one() -> None:
    small, middle, large = (Tally(n, np.array([n // 2, n // 3])) for n in (6, 30, 60))

    found = pooled(small, middle, large)

    assert (found.rounds, found.tally.n) == (3, 96)
    assert found.tally.cells.tolist() == [48, 32]
    # The small one with both others, the middle one with the large; in either order.
    assert found.pairs.n == 2 * (6 + 6 + 30)
    assert found.pairs.cells.tolist() == [2 * (3 + 3 + 15), 2 * (2 + 2 + 10)]


@pytest.mark.parametrize("rounds", [1, 2, 30])
def test_equal_rounds_are_as_good_a_sample_as_one_of_them(rounds: int) -> None:
    assert pooled(*[Tally(70, np.array([20]))] * rounds).devices == pytest.approx(70)


def test_no_round_is_no_pool() -> None:
    assert pool([]) is None


@pytest.mark.parametrize("sizes", [(3, 4), (5, 5, 6), (0,), (4, 0)], ids=str)
def test_another_order_is_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="from the one with the most reports"):
        pool(Tally(n, np.zeros(2, np.int64)) for n in sizes)


# -- Where nothing varies together --------------------------------------------------------------


def crowd(mechanism: Mechanism, n: int, seed: int) -> Tally:
    holders = np.random.default_rng(seed).multinomial(n, np.full(mechanism.k, 1 / mechanism.k))
    return channel(mechanism).tally(holders, np.random.default_rng(seed + 1))


def assert_same(found: Any, expected: Any) -> None:
    for name in (*FIGURES, "distinguishable", "rank_low", "rank_high", "influence"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.parametrize("name", [*MEMOISED, "optimised-unary", "projective-geometry"])
def test_one_round_is_as_ever(name: str, target: Target) -> None:
    mechanism = memoised(name, 3) if name in MEMOISED else calibrated(name, 3, "1")
    tally = crowd(mechanism, 400, 1)
    counts = oracle_for(mechanism).supports(tally.cells)

    found = pooled_estimate(mechanism, pooled(tally), target=target, level=0.9)

    assert_same(found, estimate(mechanism.support, counts, 400, target=target, level=0.9))
    assert not vary_together(mechanism, pooled(tally), target)


def test_respondents_without_a_memo_are_one_large_round() -> None:
    mechanism = calibrated("projective-geometry", 7, "1")
    tallies = [crowd(mechanism, n, n) for n in (50, 300, 20)]
    total = tallies[0] + tallies[1] + tallies[2]
    counts = oracle_for(mechanism).supports(total.cells)

    found = pooled_estimate(mechanism, pooled(*tallies))

    assert_same(found, estimate(mechanism.support, counts, 370))
    assert not vary_together(mechanism, pooled(*tallies), "respondents")


def test_of_a_population_the_same_devices_are_one_sample() -> None:
    """Noise averages, and f(1 − f) does not: over 30 rounds it is there once, not a 30th of it."""
    mechanism = calibrated("optimised-unary", 2, "8")
    n, share = 1_000, 0.3
    p, q = map(float, mechanism.support)
    counts = np.rint(n * np.array([q + share * (p - q), q + (1 - share) * (p - q)]))
    found = pooled(*[Tally(n, counts.astype(np.int64))] * 30)

    noise = pooled_estimate(mechanism, found).std_error[0]
    both = pooled_estimate(mechanism, found, target="population").std_error[0]

    assert vary_together(mechanism, found, "population")
    assert both**2 - noise**2 == pytest.approx(share * (1 - share) / n, rel=0.01)


@pytest.mark.parametrize("how", [{"level": 1.0}, {"target": "everybody"}], ids=str)
def test_arguments_out_of_range_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"level|target"):
        pooled_estimate(OSUE, pooled(Tally(9, np.array([3, 3]))), **how)


# -- What is possible ---------------------------------------------------------------------------


def covariance(mechanism: MemoisedMechanism, history: tuple[int, int], value: int) -> Fraction:
    """Of a device's two reports, that each supports a value; over every pair of payloads."""
    supported = {
        payload: value in mechanism.supported(payload)
        for told in history_law(mechanism, history)
        for payload in told
    }
    chances = [Fraction(0)] * 3
    for (one, other), p in history_law(mechanism, history).items():
        chances[0] += p * supported[one]
        chances[1] += p * supported[other]
        chances[2] += p * (supported[one] and supported[other])
    return chances[2] - chances[0] * chances[1]


@pytest.mark.parametrize(
    "mechanism",
    [
        memoised("memoised-symmetric-unary", 3),
        memoised("memoised-optimised-unary", 3),
        memoised("memoised-randomised-response", 4, permanent="1", epsilon="0.5"),
        memoised("memoised-local-hashing", 3, cells=2),
        memoised("memoised-local-hashing", 6, cells=2),
        # With a line of three values, and across.
        memoised("memoised-local-hashing", 4, cells=3),
    ],
    ids=lambda mechanism: f"{mechanism.name}-{mechanism.k}",
)
def test_a_value_that_changes_makes_two_reports_vary_together_less(
    mechanism: MemoisedMechanism,
) -> None:
    """Exactly, for all pairs of values: than κ of the one that was, and than κ of the other."""
    value = 0
    kappas = [
        both - single**2 for both, single in zip(mechanism.carried, mechanism.support, strict=True)
    ]
    assert min(kappas) > 0
    for one, other in product(range(mechanism.k), repeat=2):
        found = covariance(mechanism, (one, other), value)
        if one == other:
            assert found == kappas[one != value]
        else:
            assert found <= min(kappas[one != value], kappas[other != value])


def variance(mechanism: MemoisedMechanism, found: Pool) -> NDArray[np.float64]:
    return pooled_estimate(mechanism, found).std_error ** 2


def expected_tally(mechanism: MemoisedMechanism, n: int, share: float) -> Tally:
    """What devices report on average that have the first or else the second of two values."""
    p, q = map(float, mechanism.support)
    rates = q + np.array([share, 1 - share]) * (p - q)
    return Tally(n, np.rint(n * rates).astype(np.int64))


def test_the_chained_variance_is_the_papers() -> None:
    """L-OSUE, ε∞ = 2, ε₁ = 1, share 1/2: 4.183/n of respondents, 4.433/n of a population."""
    n = 10**9
    found = pooled(expected_tally(OSUE, n, 0.5))
    respondents = pooled_estimate(OSUE, found).std_error[0]
    population = pooled_estimate(OSUE, found, target="population").std_error[0]
    assert n * respondents**2 == pytest.approx(4.183, abs=5e-4)
    assert n * population**2 == pytest.approx(4.433, abs=5e-4)


def test_the_naive_error_of_thirty_rounds_is_three_times_too_small() -> None:
    n = 10**6
    found = pooled(*[expected_tally(OSUE, n, 0.5)] * 30)

    naive = estimate(OSUE.support, found.tally.cells, found.tally.n).std_error

    assert pooled_estimate(OSUE, found).std_error / naive == pytest.approx([3.1, 3.1], abs=0.05)


def test_rounds_of_different_sizes_share_no_more_than_the_smaller_has() -> None:
    """By the definition: every pair of rounds, each with its own share."""
    sizes, shares = (5_000, 80_000, 200_000), (0.9, 0.2, 0.4)
    tallies = [expected_tally(OSUE, n, f) for n, f in zip(sizes, shares, strict=True)]
    p, q = map(float, OSUE.support)
    both = [float(x) for x in OSUE.carried]
    own, other = both[0] - p * p, both[1] - q * q
    total = sum(
        n * (f * p * (1 - p) + (1 - f) * q * (1 - q)) for n, f in zip(sizes, shares, strict=True)
    )
    for i, j in product(range(3), repeat=2):
        if i != j:
            f = shares[min(i, j)]  # of the smaller one
            total += min(sizes[i], sizes[j]) * (f * own + (1 - f) * other)

    found = variance(OSUE, pooled(*tallies))[0]

    assert found == pytest.approx(total / (sum(sizes) * (p - q)) ** 2, rel=1e-4)


# -- Devices ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MEMOISED)
@pytest.mark.parametrize("own", [True, False], ids=["own", "other"])
def test_a_devices_rounds_vary_together_as_is_said(name: str, own: bool) -> None:
    """The shipped samplers: how often the reports of one memo support a value, in all rounds."""
    devices, rounds, k = 1_500, 8, 3
    mechanism = memoised(name, k)
    p, q = mechanism.support
    kappa = float(mechanism.carried[not own] - mechanism.support[not own] ** 2)
    rate = float(p if own else q)
    true = rounds * rate * (1 - rate) + rounds * (rounds - 1) * kappa
    counts = np.zeros(devices)
    for device in range(devices):
        memo = mechanism.memorise(SYSTEM)
        for _ in range(rounds):
            report = mechanism.respond(memo, 0 if own else 1, SYSTEM)
            counts[device] += 0 in mechanism.supported(report)

    squares = (counts - rounds * rate) ** 2

    assert mean_range(true, rounds**2 * true, rounds**2, devices).holds(float(squares.mean()))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_errors_over_thirty_rounds_are_those_of_many_crowds(share: float) -> None:
    """Simulated: 4,000 crowds of 200 devices, each of which answers all rounds from one memo."""
    crowds, n, rounds = 4_000, 200, 30
    p, q = map(float, OSUE.support)
    rng = np.random.default_rng(11)
    rises = np.where(np.arange(n) < share * n, *map(float, OSUE.permanent.support))
    flips = OSUE.flip / 2**64
    ones = rng.random((crowds, n)) < rises
    counts = rng.binomial(rounds, np.where(ones, 1 - flips, flips)).sum(axis=1)
    errors = (counts / (n * rounds) - q) / (p - q) - share

    said = variance(OSUE, pooled(*[expected_tally(OSUE, n, share)] * rounds))[0]

    # As good as normal: the fourth moment is three times the square of the second.
    bound = 8 * sqrt(said)
    assert mean_range(said, 3 * said**2, bound**2, crowds).holds(float(np.mean(errors**2)))
    assert (
        np.sqrt(np.mean(errors**2))
        > 2.5 * estimate(OSUE.support, np.array([int(counts[0])]), n * rounds).std_error
    )


# -- Differences between rounds -------------------------------------------------------------------


def across(mechanism: MemoisedMechanism, history: tuple[int, int], pair: tuple[int, int]) -> float:
    """The covariance of one value in a device's first report and another in its second."""
    one, other = (
        np.array([value in mechanism.supported(told[place]) for told in law])
        for law in [history_law(mechanism, history)]
        for place, value in enumerate(pair)
    )
    chances = np.array([float(p) for p in history_law(mechanism, history).values()])
    return float(chances @ (one & other) - (chances @ one) * (chances @ other))


@pytest.mark.parametrize(
    "mechanism",
    [
        memoised("memoised-optimised-unary", 3),
        memoised("memoised-randomised-response", 4),
        memoised("memoised-local-hashing", 4, cells=3),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_rounds_have_only_one_thing_in_common_that_makes_them_differ(
    mechanism: MemoisedMechanism,
) -> None:
    """Two values of memoised randomised response; all else is positive, and left out."""
    pairs = list(product(range(mechanism.k), range(mechanism.k)))
    for history, pair in product(pairs, pairs):
        told_apart = history[0] == history[1] and pair[0] != pair[1]
        found = across(mechanism, history, pair)
        if told_apart and mechanism.name == "memoised-randomised-response":
            assert found < -1e-3
        else:
            assert found > -1e-12


def test_a_difference_between_rounds_of_the_same_devices_is_as_unsure_as_is_said() -> None:
    n, holders = 10**9, np.array([0.5, 0.3, 0.2, 0.0])
    mechanism = memoised("memoised-randomised-response", 4)
    p, q = map(float, mechanism.support)
    rates = q + holders * (p - q)
    tally = Tally(n, np.rint(n * rates).astype(np.int64))
    sample = Sample(mechanism, tally)
    true = sum(
        share
        * (
            float(mechanism.support[own != 0]) * (1 - float(mechanism.support[own != 0]))
            + float(mechanism.support[own != 1]) * (1 - float(mechanism.support[own != 1]))
            - 2 * across(mechanism, (own, own), (0, 1))
        )
        for own, share in enumerate(holders)
    )

    found = between(sample, sample, np.array([0]), np.array([1]))

    assert n * found.std_error**2 == pytest.approx(true / (p - q) ** 2, rel=1e-6)
    assert found.high - found.low == pytest.approx(2 * 1.96 * found.std_error, rel=1e-3)


@pytest.mark.parametrize("target", ["respondents", "population"])
def test_a_device_that_has_one_value_has_not_the_other(target: Target) -> None:
    """Two values in two rounds, each device's the same in both: 2 f g / n for a population."""
    n, holders = 10**9, np.array([0.45, 0.35, 0.2])
    mechanism = RandomisedResponse.calibrate(3, Epsilon.parse("2"))
    p, q = map(float, mechanism.support)
    sample = Sample(mechanism, Tally(n, np.rint(n * (q + holders * (p - q))).astype(np.int64)))

    found = between(sample, sample, np.array([0]), np.array([1]), target=target)

    one, other = (
        estimate(mechanism.support, sample.tally.cells, n, target=target).std_error[place] ** 2
        for place in (0, 1)
    )
    shared = 2 * holders[0] * holders[1] / n if target == "population" else 0.0
    assert found.std_error**2 == pytest.approx(one + other + shared, rel=1e-6)


def test_an_interval_is_held_where_rows_are_rarer_than_reports() -> None:
    """Of 490 devices over so many rounds that only the rows are left to chance; at share 0."""
    mechanism = memoised("memoised-optimised-unary", 4, permanent="8", epsilon="2")
    assert isinstance(mechanism, MemoisedUnary)
    n, rounds, rare = 490, 100_000, float(mechanism.permanent.support.q)
    assert rarer(mechanism.support, n) > 30 > rarer(mechanism.permanent.support, n)
    flip = mechanism.flip / 2**64
    held = 0.0
    for raised in range(8):
        count = round(rounds * (raised * (1 - flip) + (n - raised) * flip))
        tally = Tally(n * rounds, np.full(4, count))
        pairs = Tally(tally.n * (rounds - 1), tally.cells * (rounds - 1))
        found = pooled_estimate(mechanism, Pool(rounds, tally, pairs))
        chance = comb(n, raised) * rare**raised * (1 - rare) ** (n - raised)
        held += chance * bool(found.low[0] <= 0 <= found.high[0])
    assert held > 0.935
