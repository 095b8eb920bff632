"""The sentences that are read first on the page of shares."""

import pytest

from hubbub_aggregator.estimation.intervals import normal_quantile
from hubbub_dashboard.reading.answers import RoundState
from hubbub_dashboard.shares import findings
from tests.dashboard.snapshots import make_estimates, make_value


def plain(said: str | None) -> str:
    return (said or "").replace("\u2068", "").replace("\u2069", "").replace("\u202f", " ")


def test_all_are_there() -> None:
    estimates = make_estimates(make_value("good", 0.6), make_value("poor", 0.4))
    assert plain(findings.answer(estimates)) == (
        "All 2 values are really there: “good” and “poor”."
    )
    assert findings.more_reports(estimates, 1) is None


def test_some_are_there_and_the_others_are_named_if_they_are_few() -> None:
    values = [make_value(name, 0.3) for name in ("a", "b", "c", "d")]
    estimates = make_estimates(*values, make_value("poor", 0.01), state=RoundState.CLOSED)
    assert plain(findings.answer(estimates)) == (
        "4 of 5 values are really there: “a”, “b”, “c” and 1 more. “poor” cannot be told from zero."
    )


def test_an_open_round_says_yet_and_many_others_are_not_named() -> None:
    doubtful = [make_value(str(i), 0.001 * i) for i in range(9)]
    estimates = make_estimates(make_value("good", 0.6), *doubtful)
    assert plain(findings.answer(estimates)) == (
        "1 of 10 values is really there: “good”. The others cannot be told from zero yet."
    )
    assert plain(findings.more_reports(estimates, 1)).startswith("How many more: if “8” really has")


def test_none_is_there() -> None:
    estimates = make_estimates(make_value("good", 0.001), make_value("poor", -0.001))
    assert plain(findings.answer(estimates)) == (
        "No value can be told from zero yet: all of it may be noise."
    )


def test_how_sure_and_what_half_of_that_takes() -> None:
    values = make_value("good", 0.6), make_value("poor", 0.4)
    still_open = findings.sureness(make_estimates(*values), 1)
    assert plain(still_open) == (
        "How sure: each share is known to about ±2.0 points (95 %). Half of that takes four times "
        "as many reports: 37,035 more."
    )
    closed = findings.sureness(make_estimates(*values, state=RoundState.CLOSED), 1)
    assert plain(closed).endswith("four times as many reports, 49,380 in a round.")


def test_reports_to_show_have_the_power_that_is_promised() -> None:
    z, error, estimate = normal_quantile(0.95), 0.01, 0.015
    needed = findings.reports_to_show(estimate, z * error, error, 1_000)
    assert needed is not None
    # Rounded up to two digits, of (1.96 + 0.84)² · (0.01/0.015)² thousand.
    assert needed == 3_500
    then = error * (1_000 / 3_490) ** 0.5
    assert (estimate - z * then) / then == pytest.approx(0.8416, abs=0.01)
    assert findings.reports_to_show(0.0, z * error, error, 1_000) is None
    assert findings.reports_to_show(1e-9, z * error, error, 1_000) is None
