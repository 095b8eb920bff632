"""How often the intervals cover, computed and not sampled: every probability is summed up.

With fixed data a value's count is the sum of two binomials, Bin(nf, p) and Bin(n − nf, q);
when the devices are a sample too, it is Bin(n, q + f(p − q)). The probability of the counts
whose interval holds f is the coverage.
"""

from math import ceil, log, prod

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.mechanisms import MECHANISMS, Support
from hubbub_aggregator.estimation.intervals import Interval, Target, one_value, simultaneous
from tests.calibrated import calibrated
from tests.harness import count_law

LEVEL = 0.95
SHARES = (0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.99, 1)
# What is left out of a law, and what rounding adds, is far below this.
ROUNDING = 1e-12


def rarer(support: Support, n: int) -> float:
    """Reports of the rarer kind, x = n · min(q, 1 − p)."""
    return float(n * min(support.q, 1 - support.p))


def sizes(support: Support, x: float) -> list[int]:
    """A few n with x or little more reports of the rarer kind."""
    least = ceil(x / min(support.q, 1 - support.p))
    return [least, least + 1, least + 2, least + least // 7, least + least // 3]


def law(
    support: Support, n: int, holders: int, target: Target
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The counts of a value that `holders` of n devices have, and their probabilities."""
    p, q = float(support.p), float(support.q)
    if target == "respondents":
        return count_law(p, q, holders, n - holders)
    return count_law(q + holders / n * (p - q), 0, n, 0)


def coverages(
    support: Support, n: int, holders: list[int], target: Target, intervals: Interval
) -> list[float]:
    """Exact coverage for each number of holders; `intervals` of the counts 0 to n."""
    found: list[float] = []
    for own in holders:
        counts, probabilities = law(support, n, own, target)
        low, high = intervals.low[counts], intervals.high[counts]
        found.append(float(probabilities[(low <= own / n) & (own / n <= high)].sum()))
    return found


def some_holders(n: int) -> list[int]:
    return sorted({round(share * n) for share in SHARES} | {1, n - 1})


def one_value_coverages(support: Support, n: int, target: Target) -> list[float]:
    intervals = one_value(support, np.arange(n + 1), n, target, LEVEL)
    return coverages(support, n, some_holders(n), target, intervals)


@pytest.fixture(params=["respondents", "population"])
def target(request: pytest.FixtureRequest) -> Target:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=["0.5", "1", "2", "4"], ids="ε={}".format)
def epsilon(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(
    params=[("randomised-response", k) for k in (2, 4, 16, 128)]
    # The law of a single bit is the same for every k.
    + [("symmetric-unary", 2), ("optimised-unary", 2)],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def support(request: pytest.FixtureRequest, epsilon: str) -> Support:
    return calibrated(*request.param, epsilon).support


@pytest.mark.parametrize(
    ("x", "least", "most"), [(10, 0.92, 0.975), (30, 0.935, 0.965), (300, 0.944, 0.956)]
)
def test_a_score_interval_covers_about_as_often_as_it_says(
    support: Support, target: Target, x: int, least: float, most: float
) -> None:
    found = [c for n in sizes(support, x) for c in one_value_coverages(support, n, target)]

    assert least <= min(found)
    assert max(found) <= most


def test_with_few_reports_an_interval_covers_at_least_as_often_as_it_says(
    support: Support, target: Target
) -> None:
    switch = ceil(10 / min(support.q, 1 - support.p))
    found = [
        coverage
        for n in {1, 2, 3, 7, switch // 4 + 1, switch // 2, switch - 1}
        for coverage in one_value_coverages(support, n, target)
    ]

    assert rarer(support, switch - 1) < 10
    assert min(found) >= LEVEL - ROUNDING


def test_the_worst_score_interval_known() -> None:
    # Found by a search over ε in [0.02, 1.2], every n just above x = 30 and every share: of
    # 1.35 million cases three lie below 0.935, all with n = 67 and ε < 0.5, where a fair
    # coin's lattice is coarsest. This is the lowest.
    support = calibrated("optimised-unary", 2, "0.17").support
    intervals = one_value(support, np.arange(68), 67, "respondents", LEVEL)
    (coverage,) = coverages(support, 67, [8], "respondents", intervals)

    assert rarer(support, 67) > 30
    assert coverage == pytest.approx(0.93481, abs=1e-5)


def crowds(k: int, n: int) -> list[list[int]]:
    """How many of n devices have each of k values: one has all, all alike, ever fewer."""
    even = [n // k + (value < n % k) for value in range(k)]
    halving = [n >> (value + 1) for value in range(k)]
    halving[0] += n - sum(halving)
    return [[n] + [0] * (k - 1), even, halving]


@pytest.fixture(params=[2, 4, 16, 128], ids="k={}".format)
def k(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.parametrize("x", [0.5, 10, 30])
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_simultaneous_intervals_cover_all_values_at_once(
    name: str, k: int, epsilon: str, x: float, target: Target
) -> None:
    support = calibrated(name, k, epsilon).support
    n = sizes(support, x)[0]
    intervals = _intervals_at_sidak_level(support, n, k)

    for crowd in crowds(k, n):
        kinds = sorted(set(crowd))
        coverage = dict(zip(kinds, coverages(support, n, kinds, target, intervals), strict=True))
        each = [coverage[own] for own in crowd]
        if name.endswith("-unary") and target == "respondents":
            assert prod(each) >= LEVEL - ROUNDING  # independent bits
        else:
            assert 1 - sum(1 - c for c in each) >= 0.9487


def _intervals_at_sidak_level(support: Support, n: int, k: int) -> Interval:
    """The simultaneous intervals of each count from 0 to n, for one of k values.

    `simultaneous` takes its level from how many counts it is given: they go in k at a time.
    """
    counts = np.arange(n + 1)
    padded = np.pad(counts, (0, -len(counts) % k), mode="edge").reshape(-1, k)
    chunks = [simultaneous(support, row, n, LEVEL) for row in padded]
    low = np.concatenate([chunk.low for chunk in chunks])[: n + 1]
    high = np.concatenate([chunk.high for chunk in chunks])[: n + 1]
    return Interval(low, high)


def test_the_bound_for_dependent_counts_is_the_limit_of_sidaks_level() -> None:
    k = 65_536

    assert 0.9487 < 1 + log(LEVEL) < 1 - k * (1 - LEVEL ** (1 / k))
