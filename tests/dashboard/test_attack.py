"""What hostile reports could do is at most what is said and drawn, and no less."""

from typing import Any

import numpy as np
import pytest

from hubbub.contract import parse_metric
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.services.figures import rows_of
from hubbub_dashboard.privacy import (
    attack,
    attack_chart,
    attack_markup,
    attack_sentences,
)
from hubbub_dashboard.reading.answers import Estimates, RoundState, Value
from tests.bundles import make_metric
from tests.dashboard.snapshots import make_estimates

SUPPORT = parse_metric(make_metric()).mechanism.support
COUNTS = np.array([480, 330, 250, 180], dtype=np.int64)


def snapshot(counts: Any = COUNTS, n: int = 1_000, *, closed: bool = True) -> Estimates:
    """Real figures of these counts."""
    shares = estimate(SUPPORT, counts, n)
    rows = rows_of(
        shares,
        label=[f"value {i}" for i in range(len(counts))],
        count=counts.tolist(),
        consistent=shares.estimate.tolist(),
        found=shares.distinguishable.tolist(),
    )
    values = [
        Value(**{key: cell for key, cell in row.items() if key != "distinguishable"})
        for row in rows
    ]
    state = RoundState.CLOSED if closed else RoundState.OPEN
    return make_estimates(*values, n=n, state=state)


def test_the_reach_is_so_many_times_the_influence() -> None:
    estimates = snapshot()
    for hostile in (1, 7, 100):
        found = attack.attack(estimates, SUPPORT, hostile)
        assert found.reach == pytest.approx(hostile * estimates.values[0].influence, rel=1e-12)


def test_no_hostile_reports_do_more_than_drawn() -> None:
    """Whatever honest counts there could have been, their figures lie within what is drawn."""
    hostile, n = 20, 1_000
    found = attack.attack(snapshot(), SUPPORT, hostile)
    chance = np.random.default_rng(1)
    for _ in range(200):
        honest = COUNTS + chance.integers(-hostile, hostile, len(COUNTS), endpoint=True)
        shares = estimate(SUPPORT, honest, n)
        for index, ((low, high), value) in enumerate(
            zip(found.ends, found.selection.values, strict=True)
        ):
            assert abs(shares.estimate[index] - value.estimate) <= found.reach * (1 + 1e-9)
            assert low <= shares.low[index]
            assert shares.high[index] <= high
            # What survives is found whatever the truth was.
            assert shares.distinguishable[index] or not value.found


def test_reports_that_were_added_do_no_more() -> None:
    n, hostile = 900, 100
    p, q = map(float, SUPPORT)
    worst = 0.0
    for honest in range(n + 1):
        for added in (0, hostile):
            moved = (honest + added) / (n + hostile) - honest / n
            worst = max(worst, abs(moved) / (p - q))
    reach = hostile * attack.influence(SUPPORT, n + hostile)
    assert worst == pytest.approx(reach)
    assert worst <= reach * (1 + 1e-9)


def test_findings_that_survive_are_named() -> None:
    # So few that all are found, and so many that none is.
    estimates = snapshot()
    assert [value.found for value in estimates.values] == [True, True, True, False]
    few = attack.attack(estimates, SUPPORT, 1)
    assert few.surviving == few.present == estimates.values[:3]
    said = attack_sentences.surviving(few, estimates.state) or ""
    assert said.endswith("would still be above zero, as without them.")
    some = attack.attack(estimates, SUPPORT, 50)
    assert set(some.surviving) < set(some.present)
    said = attack_sentences.surviving(some, estimates.state) or ""
    assert said.startswith("Even then “\u2068value 0\u2069”")
    assert said.endswith("need not be.")
    all_hostile = attack.attack(estimates, SUPPORT, 1_000)
    assert all_hostile.surviving == ()
    assert "Then no value" in (attack_sentences.surviving(all_hostile, estimates.state) or "")
    assert "●" not in attack_markup.table(all_hostile, 0.95)


def test_an_open_round_asks_for_more() -> None:
    closed = attack.attack(snapshot(), SUPPORT, 20)
    still_open = attack.attack(snapshot(closed=False), SUPPORT, 20)
    assert len(still_open.surviving) <= len(closed.surviving)
    assert still_open.ends == closed.ends


def test_so_many_do_more_than_the_noise() -> None:
    estimates = snapshot()
    found = attack.attack(estimates, SUPPORT, 1)
    narrowest = min(
        max(value.high - value.estimate, value.estimate - value.low) for value in estimates.values
    )
    assert found.overtaking is not None
    influence = estimates.values[0].influence
    assert (found.overtaking - 1) * influence <= narrowest < found.overtaking * influence
    said = attack_sentences.compared(found) or ""
    assert said.startswith(f"From {found.overtaking} hostile reports on (")


@pytest.mark.parametrize(
    ("n", "usual"),
    [(1, 1), (19, 1), (99, 7), (100, 10), (19_999, 10), (99_999, 70), (10_000_000, 10_000)],
)
def test_so_many_are_hostile_if_nobody_says_otherwise(n: int, usual: int) -> None:
    assert attack.usual(n) == usual


def test_steps_only_grow() -> None:
    before: tuple[int, ...] = ()
    for n in (1, 9, 10, 99, 100, 101, 12_345, 10_000_000):
        steps = attack.steps(n)
        assert steps[: len(before)] == before
        assert steps == tuple(sorted(steps))
        assert 1 <= steps[-1] <= max(1, n // 10)
        assert attack.usual(n) in steps
        assert attack.usual(n) <= max(10, n // 1_000)
        before = steps
    assert before[-1] == 1_000_000


def test_an_open_domain_has_a_reach_and_no_values() -> None:
    contract = parse_metric(make_metric("open", open=True))
    found = attack.attack(make_estimates(n=500), contract.mechanism.support, 50)
    assert attack_sentences.verdict(found).startswith("If 50 of these 500 reports (10")
    assert attack_sentences.surviving(found, RoundState.OPEN) is None
    assert attack_sentences.compared(found) is None


def test_the_chart_draws_both_intervals() -> None:
    found = attack.attack(snapshot(), SUPPORT, 30)
    rows, ends = attack_chart.rows(found).to_pydict(), attack_chart.domain(found)
    for low, high, least, most in zip(
        rows["low"], rows["high"], rows["least"], rows["most"], strict=True
    ):
        assert ends[0] <= least < low < high < most <= ends[1]
    layers = attack_chart.specification(4, ends, "light")["layer"]
    dashed = [layer for layer in layers if "strokeDash" in layer["mark"]]
    assert len(dashed) == 3
    spoken = attack_chart.alternative(found, 0.95)
    assert "if 30 of 1,000 reports were hostile" in spoken
    assert "value 3" in spoken


def test_a_large_domain_is_cut_and_simultaneous() -> None:
    counts = np.full(200, 175, dtype=np.int64)
    counts[150] = 600
    found = attack.attack(snapshot(counts), SUPPORT, 10)
    assert found.selection.simultaneous
    assert len(found.ends) == len(found.selection.values) == 50
    assert found.selection.values[0].label == "value 150"
    assert [value.label for value in found.surviving] == ["value 150"]
