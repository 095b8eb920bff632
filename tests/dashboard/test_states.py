"""Every state of the page has its own word, and tells what it must and no more."""

from typing import Any

import pytest

from hubbub_dashboard import states
from hubbub_dashboard.reading.answers import Estimates, Metric, Round, RoundState
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.states import Status, Tone
from tests.dashboard.snapshots import make_estimates, make_value

NOW = 1_000_000_060.0
METRICS = (Metric("health", "How?", b"digest", ("well",), (Round(0, RoundState.OPEN, 0),)),)


def answered(value: Any) -> Reading[Any]:
    return Reading(value, answered=NOW - 1, asked=NOW - 1)


def failed(value: Any, *, answered: float | None) -> Reading[Any]:
    return Reading(value, answered=answered, asked=NOW, failure="UNAVAILABLE")


def status(metrics: Reading[Any], estimates: Reading[Any]) -> Status:
    return states.status("localhost:7444", metrics, estimates, NOW)


def of(**facts: Any) -> Status:
    estimates: Estimates = make_estimates(make_value("a", 0.5), **facts)
    return status(answered(METRICS), answered(estimates))


def test_not_connected() -> None:
    found = status(failed(None, answered=None), Reading())
    assert (found.tone, found.word) == (Tone.AWAY, "Not connected")
    assert "localhost:7444" in found.sentence


def test_no_metrics() -> None:
    assert status(answered(()), Reading()).word == "No metrics"


def test_waiting_says_how_many_it_waits_for() -> None:
    found = of(n=0, publish_step=1_000)
    assert (found.tone, found.word) == (Tone.WAITING, "Waiting for the first snapshot")
    assert "at least 1,000 reports" in found.sentence


def test_open() -> None:
    found = of()
    assert (found.tone, found.word) == (Tone.LIVE, "Open")
    assert "at least 100 more reports" in found.sentence


def test_not_open() -> None:
    assert of(n=0, state=RoundState.NOT_OPEN).word == "Not open yet"


@pytest.mark.parametrize(("n", "said"), [(0, "with no reports, or its counts"), (7, "final")])
def test_closed(n: int, said: str) -> None:
    found = of(n=n, state=RoundState.CLOSED)
    assert (found.tone, found.word) == (Tone.FINAL, "Closed")
    assert said in found.sentence


def test_away_says_since_when() -> None:
    found = status(failed(METRICS, answered=NOW - 30), answered(make_estimates()))
    assert (found.tone, found.word) == (Tone.AWAY, "Aggregator away")
    assert "last answered at 01:47:10 UTC (30 s ago), and does not answer now" in found.sentence


@pytest.mark.parametrize(
    ("state", "n", "said"),
    [
        (RoundState.NOT_OPEN, 0, "had not opened"),
        (RoundState.OPEN, 7, "newer figures may exist"),
        (RoundState.CLOSED, 0, "with no reports, or its counts"),
        (RoundState.CLOSED, 7, "final"),
    ],
)
def test_away_still_says_where_the_round_stood(state: RoundState, n: int, said: str) -> None:
    estimates = answered(make_estimates(state=state, n=n))
    assert said in status(failed(METRICS, answered=NOW - 30), estimates).sentence


def test_away_when_only_the_estimates_fail() -> None:
    found = status(answered(METRICS), failed(None, answered=None))
    assert found.word == "Aggregator away"
    assert "no answer about this round" in found.sentence
