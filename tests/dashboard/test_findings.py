"""The sentences that are read first on the page of shares."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hubbub.exact import Epsilon
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.planning.choice import best
from hubbub_aggregator.services.figures import figures_of
from hubbub_dashboard.reading.answers import RoundState, Value, estimates_of
from hubbub_dashboard.shares import findings
from hubbub_dashboard.shares.selection import Order, select
from tests.dashboard.snapshots import make_estimates, make_value

FACTS: dict[str, Any] = {
    "state": estimate_pb2.ROUND_STATE_CLOSED,
    "target": estimate_pb2.TARGET_RESPONDENTS,
    "level": 0.95,
}


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
        "4 of 5 values are really there: “a”, “b”, “c” and “d”. “poor” cannot be told from zero."
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
        "How sure: the share of a value chosen beforehand is known to ±2.0 points or better, all "
        "of them at once to ±3.0 points (95 %). Half of that takes four times as many reports: "
        "37,035 more."
    )
    closed = findings.sureness(make_estimates(*values, state=RoundState.CLOSED), 1)
    assert plain(closed).endswith("four times as many reports, 49,380 in a round.")


def test_an_open_round_does_not_ask_for_what_a_closed_one_would_have() -> None:
    # Its interval excludes 0, and the rule for open rounds does not find it yet.
    value = replace(make_value("good", 0.04), found=False)
    said = findings.more_reports(make_estimates(value, make_value("poor", 0.9)), 1)
    assert plain(said).startswith("“good” would count as present if the round closed now")
    unsure = make_value("good", 0.02)
    said = findings.more_reports(make_estimates(unsure, make_value("poor", 0.9)), 1)
    assert "reports would, once it is closed, show it, in 4 of 5 cases." in plain(said)


@pytest.mark.parametrize(
    ("mechanism", "k", "epsilon", "n", "share"),
    [
        ("optimised-unary", 16, "4", 200, 0.046),
        ("optimised-unary", 16, "1", 5_000, 0.05),
        ("optimised-unary", 1_024, "1", 400, 0.308),
        ("subset-selection", 16, "3", 30, 0.131),
        ("randomised-response", 2, "4", 100, 0.023),
        ("randomised-response", 16, "1", 200, 0.449),
    ],
)
def test_so_many_reports_show_it_in_four_of_five_rounds(
    mechanism: str, k: int, epsilon: str, n: int, share: float
) -> None:
    """By the exact law of the count, with few reports and with many."""
    support = best(mechanism, k, Epsilon.parse(epsilon)).support
    p, q = map(float, support)
    rate = q + share * (p - q)

    def snapshot(n: int, count: int) -> Value:
        counts = np.array([count, *[round(q * n)] * (k - 1)])
        labels = [str(place) for place in range(k)]
        (value, *_) = figures_of(
            support,
            labels,
            counts,
            n,
            closed=True,
            whole=True,
            target="respondents",
            level=0.95,
        )
        return estimates_of(estimate_pb2.Estimates(n=n, values=[value], **FACTS)).values[0]

    value = replace(snapshot(n, round(rate * n)), found=False, estimate=share)
    value = replace(value, count=rate * n)  # type: ignore[arg-type]
    others = [make_value(str(place), 0.0) for place in range(k - 1)]
    estimates = make_estimates(value, *others, n=n, state=RoundState.CLOSED)
    needed = findings.reports_to_find(value, estimates, value.estimate)
    assert needed is not None
    least = next(
        count for count in range(int(q * needed), needed + 1) if snapshot(needed, count).found
    )
    power = float(stats.binom.sf(least - 1, needed, rate))
    assert 0.75 <= power <= 0.96


def test_of_a_value_whose_estimate_says_nothing_a_usual_share_is_asked_for() -> None:
    below = make_value("poor", -0.01)
    said = plain(findings.more_reports(make_estimates(make_value("good", 0.9), below), 1))
    assert said.startswith("How many more: if a value has 1 %, a round of about ")
    assert said.endswith("in 4 of 5 cases. The page Plan has a field for any share.")


def test_many_values_are_named_in_part() -> None:
    values = [make_value(name, 0.1) for name in "abcdef"]
    estimates = make_estimates(*values, make_value("poor", 0.01))
    assert plain(findings.answer(estimates)).startswith(
        "6 of 7 values are really there: “a”, “b”, “c” and 3 more."
    )


def test_a_round_of_very_few_reports_is_said_to_be_one() -> None:
    values = make_value("good", 0.6), make_value("poor", 0.4)
    assert findings.few_reports(make_estimates(*values)) is None
    few = [replace(value, influence=0.04) for value in values]
    said = plain(findings.few_reports(make_estimates(*few, n=60)))
    assert said.startswith("Too few reports to say much: a share may be off by more than 25 points")


def test_a_value_that_was_searched_for_is_said_to_be_there_or_not() -> None:
    values = [make_value(f"name {number}", 0.1 * (number == 7)) for number in range(60)]
    estimates = make_estimates(*values, state=RoundState.CLOSED)

    def said(find: str) -> str:
        selection = select(estimates, Order.LARGEST, find=find)
        return plain(findings.of_match(selection, find))

    assert said("name 7") == (
        "“name 7” is really there: 10.0 % (7.0 to 13.0, with all values at once)."
    )
    assert said("name 8") == (
        "“name 8” is not distinguishable from zero. If it is there, 3.0 % have it at most (by the "
        "interval that holds for all values at once)."
    )
    assert said("name 1") == ""
    assert said("nobody") == ""
    assert said("") == ""


def test_what_cannot_be_is_not_asked_for() -> None:
    impossible = replace(make_value("good", 3.35), found=False, simultaneous_low=-0.1)
    assert findings.more_reports(make_estimates(impossible), 1) is None
