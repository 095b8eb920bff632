"""Covariances: exactly those of the channel where it can be listed, and of what devices send."""

import numpy as np
import pytest

from hubbub.mechanisms import MECHANISMS, MEMOISED, Mechanism, ProjectiveGeometry
from hubbub.randomness import SYSTEM
from hubbub_aggregator.estimation.covariance import covariance_matrix, moments_of, spread
from hubbub_aggregator.estimation.estimate import estimated_variance
from hubbub_aggregator.estimation.intervals import Floats
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.tally import Tally
from tests.calibrated import calibrated, memoised
from tests.channels import Channel, channel, small_mechanisms, small_memoised
from tests.harness import mean_range

SMALL = [*small_mechanisms("1"), *small_memoised()]


def named(mechanism: Mechanism) -> str:
    _, *others = mechanism.parameters.values()
    small = (number for number in others if number < 1 << 18)
    return f"{mechanism.name}-{'-'.join(map(str, (mechanism.k, *small)))}"


@pytest.fixture(params=SMALL, ids=named, scope="module")
def made(request: pytest.FixtureRequest) -> Channel:
    return channel(request.param)


def true_covariance(made: Channel, shares: Floats, weights: Floats) -> Floats:
    """n · Cov(f̂_v, Σ w f̂), summed up over every payload of every value."""
    scores, sums = made.scores, made.scores @ weights
    each = [(law * sums) @ scores - (law @ sums) * (law @ scores) for law in made.law]
    return np.asarray(shares @ np.array(each))


def some(k: int, seed: int) -> tuple[Floats, Floats]:
    """Shares and weights."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(k)), rng.normal(size=k)


def test_the_channel_is_what_the_estimator_takes_it_for(made: Channel) -> None:
    assert made.law.sum(axis=1) == pytest.approx(1)
    np.testing.assert_allclose(made.law @ made.scores, np.eye(made.mechanism.k), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_covariances_and_variances_are_exact(made: Channel, seed: int) -> None:
    mechanism = made.mechanism
    shares, weights = some(mechanism.k, seed)
    moments = moments_of(mechanism)
    plane = moments.variance(moments.weights(weights))
    covariance = moments.covariance(moments.weights(shares), moments.weights(weights))

    expected = true_covariance(made, shares, weights)

    np.testing.assert_allclose(covariance[: mechanism.k], expected, rtol=1e-10, atol=1e-12)
    assert plane.at(moments.weights(shares)) == pytest.approx(weights @ expected, rel=1e-10)


def test_no_report_reaches_further_than_said(made: Channel) -> None:
    mechanism = made.mechanism
    _, weights = some(mechanism.k, 7)
    moments = moments_of(mechanism)
    reach = moments.reach(moments.weights(weights))

    farthest = np.ptp(made.scores @ weights)

    # A hash of few values puts any of them together, one of many not.
    if mechanism.name == "local-hashing" and mechanism.k > 3:
        assert farthest <= reach
    else:
        assert farthest == pytest.approx(reach)


def test_the_estimated_spread_is_unbiased(made: Channel) -> None:
    # All figures are linear in the tally, but for the least that a variance is held to: so it
    # is enough that the expected tally gives the true ones.
    mechanism = made.mechanism
    shares, weights = some(mechanism.k, 1)
    n = 10**9
    expected = n * (shares @ made.law) @ made.cells
    found = spread(mechanism, Tally(n, np.rint(expected).astype(np.int64)), weights)

    truth = true_covariance(made, shares, weights)

    np.testing.assert_allclose(found.shares, shares, atol=1e-7)
    np.testing.assert_allclose(n * found.covariance, truth, atol=1e-6)
    assert n * found.variance == pytest.approx(weights @ truth, rel=1e-6)


def test_the_matrix_has_the_variances_on_its_diagonal(made: Channel) -> None:
    mechanism = made.mechanism
    holders = np.arange(1, mechanism.k + 1) * 50
    tally = made.tally(holders, np.random.default_rng(5))
    counts = oracle_for(mechanism).supports(tally.cells)
    noise = covariance_matrix(mechanism, tally)
    sampled = covariance_matrix(mechanism, tally, "population")
    shares = spread(mechanism, tally, np.ones(mechanism.k)).shares

    alone = estimated_variance(mechanism.support, counts, tally.n, "respondents")

    np.testing.assert_allclose(noise.diagonal(), alone, rtol=1e-9)
    np.testing.assert_allclose(noise, noise.T, atol=1e-12)
    multinomial = (np.diag(shares) - np.outer(shares, shares)) / tally.n
    np.testing.assert_allclose(sampled - noise, multinomial, atol=1e-12)


@pytest.mark.parametrize(
    "mechanism",
    [calibrated(name, 40, "1") for name in MECHANISMS]
    + [memoised(name, 13, cells=3) for name in MEMOISED],
    ids=named,
)
def test_what_devices_send_varies_as_is_said(mechanism: Mechanism) -> None:
    """The shipped samplers, at a domain whose payloads cannot be listed."""
    n, value = 4_000, 3
    moments = moments_of(mechanism)
    weights = np.zeros(mechanism.k)
    weights[[value, 5, 7, 11]] = 1, -1, 2, -2
    p, q = map(float, mechanism.support)
    sums = np.array(
        [weights[mechanism.supported(mechanism.randomise(value, SYSTEM))].sum() for _ in range(n)]
    )
    squares = ((sums - q * weights.sum()) / (p - q) - weights[value]) ** 2

    plane = moments.variance(moments.weights(weights))
    variance = plane.constant + float(plane.slopes[value])
    bound = moments.reach(moments.weights(weights)) ** 2

    # The fourth moment is at most the bound times the variance.
    assert mean_range(variance, bound * variance, bound, n).holds(float(squares.mean()))


def hostile(mechanism: Mechanism) -> Tally:
    """A thousand times the one point that is orthogonal to both of two values'."""
    cells = np.zeros(oracle_for(mechanism).cells, np.int64)
    both = [i for i in range(len(cells)) if {0, 1} <= set(mechanism.supported(bytes([i])))]
    cells[both[0]] = 1_000
    return Tally(1_000, cells)


def test_a_tally_that_no_crowd_makes_leaves_a_variance() -> None:
    mechanism = next(m for m in SMALL if isinstance(m, ProjectiveGeometry) and m.k == 9)

    found = spread(mechanism, hostile(mechanism), np.eye(9)[0] - np.eye(9)[1])

    assert found.variance > 0
    assert np.isfinite(found.slope)


def test_what_always_adds_up_to_one_has_no_noise() -> None:
    for mechanism in (
        calibrated("randomised-response", 5, "2"),
        calibrated("subset-selection", 9, "1"),
    ):
        holders = np.full(mechanism.k, 100)
        tally = channel(mechanism).tally(holders, np.random.default_rng(6))

        found = spread(mechanism, tally, np.ones(mechanism.k))

        assert found.shares.sum() == pytest.approx(1)
        assert found.covariance == pytest.approx(0, abs=1e-12)
        assert found.variance == pytest.approx(0, abs=1e-12)
