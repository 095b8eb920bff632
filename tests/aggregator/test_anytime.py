"""What may be called present while a round is open: its error, exactly and by many looks."""

from math import exp, log

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from hubbub.exact import Epsilon
from hubbub.mechanisms import Support
from hubbub_aggregator.estimation.anytime import found, log_evidence
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.planning.choice import best
from hubbub_aggregator.services.figures import figures_of

SUPPORTS = [
    pytest.param(best(name, k, Epsilon.parse(epsilon)).support, id=f"{name}-{k}-{epsilon}")
    for name, k, epsilon in (
        ("randomised-response", 2, "0.1"),
        ("randomised-response", 16, "4"),
        ("optimised-unary", 128, "1"),
        ("local-hashing", 1_024, "2"),
        ("subset-selection", 32, "3"),
    )
]


@pytest.mark.parametrize("support", SUPPORTS)
def test_the_bet_is_worth_what_it_was_whatever_comes(support: Support) -> None:
    """Its mean is 1 at every n, if nobody has the value: by the whole law of the count."""
    for n in (1, 2, 17, 200):
        counts = np.arange(n + 1, dtype=np.int64)
        law = binom.logpmf(counts, n, float(support.q))
        assert logsumexp(law + log_evidence(support, counts, n)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("support", SUPPORTS)
def test_the_bet_is_worth_what_it_was_after_each_report(support: Support) -> None:
    """And so, step by step, from any count on: that is what lets one look at any time."""
    q = float(support.q)
    for count, n in ((0, 1), (3, 10), (40, 60), (100, 1_000)):
        before, with_it, without = (
            exp(log_evidence(support, np.array([after]), m)[0])
            for after, m in ((count, n), (count + 1, n + 1), (count, n + 1))
        )
        assert q * with_it + (1 - q) * without == pytest.approx(before, rel=1e-9)


def test_a_thousand_looks_at_values_that_nobody_has() -> None:
    """With each new snapshot: at 16 values together, and at one alone beside what is drawn."""
    support = best("optimised-unary", 16, Epsilon.parse("1")).support
    chance = np.random.default_rng(11)
    crowds, looks, step, k = 40, 1_000, 100, 16
    counts = np.zeros((crowds, k), np.int64)
    together = np.zeros(crowds, np.bool_)
    alone, drawn = np.zeros((2, crowds, k), np.bool_)
    for look in range(1, looks + 1):
        counts += chance.binomial(step, float(support.q), counts.shape)
        evidence = log_evidence(support, counts.reshape(-1), look * step).reshape(crowds, k)
        together |= (evidence >= log(k / 0.05)).any(axis=1)
        alone |= evidence >= log(1 / 0.05)
        drawn |= estimate(support, counts.reshape(-1), look * step).low.reshape(crowds, k) > 0
    assert together.mean() <= 0.05
    assert alone.mean() <= 0.05
    # The interval of one value, looked at again and again, excludes zero far more often.
    assert drawn.mean() > 0.1


@pytest.mark.parametrize("support", SUPPORTS)
def test_what_is_there_is_found(support: Support) -> None:
    """Not much later than by an interval that may be looked at only once."""
    k = 16
    n = 200_000
    margin = float(support.variance / n) ** 0.5
    shares = np.zeros(k)
    shares[1], shares[2] = min(0.5, 5.5 * margin), 1.5 * margin
    rates = float(support.q) + shares * float(support.p - support.q)
    counts = np.round(n * rates).astype(np.int64)
    assert found(support, counts, n).tolist() == [False, True] + [False] * (k - 2)
    assert estimate(support, counts, n).distinguishable.tolist()[:3] == [False, True, False]


def test_more_values_are_asked_more_of() -> None:
    support = best("optimised-unary", 16, Epsilon.parse("1")).support
    n = 10_000
    counts = np.arange(int(n * support.q), n, 25, dtype=np.int64)
    evidence = log_evidence(support, counts, n)
    assert (np.diff(evidence) > 0).all()
    for k, level in ((len(counts), 0.95), (len(counts), 0.5)):
        assert (found(support, counts, n, level=level) == (evidence >= log(k / (1 - level)))).all()


@pytest.mark.parametrize(
    ("counts", "n"), [(np.array([3]), 2), (np.array([-1]), 2), (np.array([1.0]), 2)]
)
def test_counts_that_are_none_are_refused(counts: np.ndarray, n: int) -> None:  # type: ignore[type-arg]
    support = best("optimised-unary", 16, Epsilon.parse("1")).support
    with pytest.raises(ValueError, match="counts must be"):
        found(support, counts, n)


def test_it_is_asked_only_while_the_round_is_open() -> None:
    """A value whose interval excludes zero, and that a stricter rule does not call present yet."""
    support = best("optimised-unary", 4, Epsilon.parse("1")).support
    n = 100_000
    share = 3.5 * float(support.variance / n) ** 0.5
    counts = np.full(4, round(n * float(support.q)))
    counts[1] += round(n * share * float(support.p - support.q))
    for closed in (True, False):
        rows = figures_of(
            support,
            "abcd",
            counts,
            n,
            closed=closed,
            whole=True,
            target="respondents",
            level=0.95,
        )
        assert [row.distinguishable for row in rows] == [False, True, False, False]
        assert [row.found for row in rows] == [False, closed, False, False]
