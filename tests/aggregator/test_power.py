"""The smallest share that is seen: against the estimates of every count, summed up."""

from itertools import pairwise

import numpy as np
import pytest

from hubbub.mechanisms import MECHANISMS, Support
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.planning.power import critical_count, detectable, power, reports_to_detect
from tests.calibrated import calibrated
from tests.harness import count_law, proportion_range

K = 20
# How sure a share is to be seen.
POWER = 0.8


def support_of(name: str, epsilon: str) -> Support:
    return calibrated(name, K, epsilon).support


def chance_to_be_seen(support: Support, holders: int, n: int) -> float:
    """How probable it is that the estimate of a value is distinguishable; every count is tried."""
    counts, law = count_law(float(support.p), float(support.q), holders, n - holders)
    # One estimate of K values for each count: intervals widen with the number of values.
    seen = [
        estimate(support, np.full(K, count, np.int64), n).distinguishable[0] for count in counts
    ]
    return float(law @ np.array(seen))


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_one_holder_less_is_not_seen_often_enough(name: str, epsilon: str) -> None:
    support, n = support_of(name, epsilon), 400
    share = detectable(support, n, K)
    if share is None:
        assert chance_to_be_seen(support, n, n) < POWER
        return
    holders = round(share * n)
    assert share == holders / n
    assert (
        chance_to_be_seen(support, holders, n) >= POWER > chance_to_be_seen(support, holders - 1, n)
    )


def test_the_critical_count_is_the_first_that_estimates_call_distinguishable() -> None:
    support, n = support_of("optimised-unary", "1"), 500
    count = critical_count(support, n, K, 0.9)
    for tried, expected in ((count - 1, False), (count, True)):
        counts = np.full(K, tried, np.int64)
        assert estimate(support, counts, n, level=0.9).distinguishable[0] == expected
    assert critical_count(support, 1, K) == 2


@pytest.mark.parametrize("holders", [0, 1, 250, 499, 500])
def test_the_power_is_the_tail_of_the_exact_law(holders: int) -> None:
    support, n = support_of("subset-selection", "1"), 500
    counts, law = count_law(float(support.p), float(support.q), holders, n - holders)
    for count in (0, int(counts @ law), int(counts @ law) + 20, n, n + 1):
        assert power(support, holders, n, count) == pytest.approx(
            law[counts >= count].sum(), abs=1e-12
        )


def test_a_large_crowd_is_as_exact() -> None:
    support, n = support_of("optimised-unary", "1"), 1_000_000_000
    share = detectable(support, n, K)
    assert share is not None
    count, holders = critical_count(support, n, K), round(share * n)
    powers = [power(support, own, n, count) for own in (holders - 1, holders, holders + 1)]
    assert powers[0] < POWER <= powers[1]
    assert all(one < next_one for one, next_one in pairwise(powers))
    # Against numpy's own binomials.
    trials, chance = 20_000, np.random.default_rng(1)
    p, q = float(support.p), float(support.q)
    counts = chance.binomial(holders, p, trials) + chance.binomial(n - holders, q, trials)
    assert proportion_range(powers[1], trials).holds(int((counts >= count).sum()))


@pytest.mark.parametrize(("share", "level"), [(1.0, 0.95), (0.25, 0.9), (0.02, 0.95)])
def test_fewer_reports_than_are_needed_do_not_detect_a_share(share: float, level: float) -> None:
    support = support_of("optimised-unary", "1")
    needed = reports_to_detect(support, share, K, level)
    assert needed is not None
    # The next smaller number of three digits.
    fewer = needed - 10 ** max(0, len(str(needed)) - 3)
    for n, seen in ((needed, True), (fewer, False)):
        least = detectable(support, n, K, level)
        assert (least is not None and least <= share) == seen


def test_a_share_that_no_number_of_reports_shows() -> None:
    assert reports_to_detect(support_of("optimised-unary", "0.5"), 1e-6, K) is None
