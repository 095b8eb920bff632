"""Weighted sums: one value is as ever, a sum is that of the estimates, and intervals cover."""

from math import ceil
from typing import Any

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
)
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.estimation.intervals import Floats, Target
from hubbub_aggregator.estimation.linear import linear_estimate
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.tally import Tally
from tests.calibrated import calibrated, memoised
from tests.channels import channel, crowd_sizes, small_mechanisms, small_memoised
from tests.harness import count_law, proportion_range

MANY, FEW = 3_000, 12


def tally_of(mechanism: Mechanism, n: int) -> Tally:
    holders = np.full(mechanism.k, n // mechanism.k)
    holders[0] += n - holders.sum()
    return channel(mechanism).tally(holders, np.random.default_rng(n))


@pytest.fixture(params=["respondents", "population"])
def target(request: pytest.FixtureRequest) -> Target:
    return request.param  # type: ignore[no-any-return]


@pytest.mark.parametrize("n", [FEW, MANY])
@pytest.mark.parametrize(
    "mechanism",
    [*small_mechanisms("1"), *small_memoised()],
    ids=lambda m: f"{m.name}-{m.k}",
)
def test_a_single_value_is_estimated_as_ever(mechanism: Mechanism, n: int, target: Target) -> None:
    tally = tally_of(mechanism, n)
    counts = oracle_for(mechanism).supports(tally.cells)
    figures = estimate(mechanism.support, counts, n, target=target, level=0.9)

    for value in range(mechanism.k):
        weights = np.eye(mechanism.k)[value]
        single = linear_estimate(mechanism, tally, weights, target=target, level=0.9)

        for name in ("estimate", "std_error", "low", "high", "influence"):
            expected = getattr(figures, name)[value]
            assert getattr(single, name) == pytest.approx(expected, rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("n", [FEW, MANY])
@pytest.mark.parametrize("mechanism", small_mechanisms("2"), ids=lambda m: f"{m.name}-{m.k}")
def test_a_sum_is_that_of_the_estimates(mechanism: Mechanism, n: int, target: Target) -> None:
    tally = tally_of(mechanism, n)
    counts = oracle_for(mechanism).supports(tally.cells)
    shares = estimate(mechanism.support, counts, n, target=target).estimate

    for weights in (np.random.default_rng(1).normal(size=mechanism.k), np.ones(mechanism.k)):
        found = linear_estimate(mechanism, tally, weights, target=target)
        assert found.estimate == pytest.approx(weights @ shares, rel=1e-9, abs=1e-9)


def test_a_sum_of_few_values_is_the_sum_of_their_estimates() -> None:
    mechanism = calibrated("optimised-unary", 6, "1")
    tally = tally_of(mechanism, MANY)
    shares = estimate(mechanism.support, tally.cells, MANY).estimate

    found = linear_estimate(mechanism, tally, np.array([1.0, 0, 0, 1, 0, -2]))

    assert found.estimate == pytest.approx(shares[0] + shares[3] - 2 * shares[5])


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"weights": np.ones(3)}, "one for each of the 4 values"),
        ({"weights": np.array([1.0, np.inf, 0, 0])}, "finite"),
        ({"weights": np.array([1.0, np.nan, 0, 0])}, "finite"),
        ({"tally": Tally(0, np.zeros(4, np.int64))}, "at least one report"),
        ({"level": 1.0}, "level"),
        ({"target": "everybody"}, "respondents or population"),
    ],
    ids=str,
)
def test_arguments_out_of_range_are_refused(how: dict[str, Any], what: str) -> None:
    fine: dict[str, Any] = {"tally": Tally(9, np.full(4, 3)), "weights": np.eye(4)[0]}

    with pytest.raises(ValueError, match=what):
        linear_estimate(calibrated("optimised-unary", 4, "1"), **{**fine, **how})


# -- Coverage ---------------------------------------------------------------------------------


def covers(mechanism: Mechanism, tally: Tally, weights: Any, truth: float, target: Target) -> bool:
    found = linear_estimate(mechanism, tally, weights, target=target)
    return found.low <= truth <= found.high


@pytest.mark.parametrize("epsilon", ["1", "2"])
def test_a_sum_of_two_independent_counts_is_covered(epsilon: str) -> None:
    """Exactly: the law of both counts, and the interval that each pair of them gives."""
    mechanism = calibrated("symmetric-unary", 5, epsilon)
    p, q = map(float, mechanism.support)
    n = ceil(30 / q)
    for holders, weights in (((n // 10, n // 3), (1.0, 3.0)), ((n // 2, 0), (1.0, 1.0))):
        (one, law), (other, other_law) = (count_law(p, q, h, n - h, reach=3.5) for h in holders)
        truth = float(np.dot(weights, holders)) / n
        coverage = sum(
            law[i] * other_law[j]
            for i, count in enumerate(one)
            for j, other_count in enumerate(other)
            if covers(
                mechanism,
                Tally(n, np.array([count, other_count, 0, 0, 0])),
                np.array([*weights, 0, 0, 0]),
                truth,
                "respondents",
            )
        )
        assert 0.935 <= coverage <= 0.965


def others(epsilon: str) -> list[Mechanism]:
    """Mechanisms in which what a report supports hangs together."""
    declared = Epsilon.parse(epsilon)
    return [
        RandomisedResponse.calibrate(6, declared),
        SubsetSelection.calibrate(7, declared, 2),
        ProjectiveGeometry.calibrate(9, declared, 3, 3),
        LocalHashing.calibrate(6, declared, 4, 11),
    ]


@pytest.mark.parametrize("mechanism", others("1"), ids=lambda m: m.name)
def test_the_mean_of_numeric_answers_is_covered(mechanism: Mechanism, target: Target) -> None:
    trials = 600
    weights = np.arange(mechanism.k, dtype=np.float64)
    rng = np.random.default_rng(11)
    n = crowd_sizes(mechanism, 30)[0]
    shares = rng.dirichlet(np.ones(mechanism.k))
    made = channel(mechanism)
    holders = rng.multinomial(n, shares)

    hits = 0
    for _ in range(trials):
        if target == "population":
            holders = rng.multinomial(n, shares)
            truth = float(weights @ shares)
        else:
            truth = float(weights @ holders) / n
        hits += covers(mechanism, made.tally(holders, rng), weights, truth, target)

    assert proportion_range(0.935, trials).low <= hits <= proportion_range(0.965, trials).high


def test_with_few_reports_a_sum_is_covered_more_often_than_it_says() -> None:
    mechanism = calibrated("randomised-response", 4, "2")
    n, trials = 40, 1_000
    rng = np.random.default_rng(3)
    holders = np.array([20, 10, 10, 0])
    weights = np.array([1.0, -1, 2, 0])
    truth = float(weights @ holders) / n
    made = channel(mechanism)

    hits = sum(
        covers(mechanism, made.tally(holders, rng), weights, truth, "respondents")
        for _ in range(trials)
    )

    assert n * mechanism.support.q < 10
    assert hits >= proportion_range(0.95, trials).low


@pytest.mark.parametrize(
    ("mechanism", "weights"),
    [
        # Half of the values, on one side of a hyperplane: all the others' scores cancel.
        (calibrated("projective-geometry", 64, "1"), np.repeat([0.0, 1.0], 32)),
        # The hash that puts all values into one cell.
        (memoised("memoised-local-hashing", 15, cells=2), np.ones(15)),
        # On the upper line of a space all three values share a cell, or none do.
        (memoised("memoised-local-hashing", 4, cells=3), np.array([0.0, 1.0, 1.0, 1.0])),
    ],
    ids=["half-a-space", "everything", "a-line"],
)
def test_a_sum_that_hangs_on_few_reports_is_covered(
    mechanism: Mechanism, weights: Floats, target: Target
) -> None:
    k, trials = mechanism.k, 400
    each = crowd_sizes(mechanism, 30)[0] // k
    rng = np.random.default_rng(5)
    made = channel(mechanism)
    holders = np.full(k, each)

    hits = 0
    for _ in range(trials):
        if target == "population":
            holders = rng.multinomial(k * each, np.full(k, 1 / k))
        truth = float(weights.mean())
        hits += covers(mechanism, made.tally(holders, rng), weights, truth, target)

    assert hits >= proportion_range(0.95, trials).low
