"""Rounds by the device's clock, and when the aggregator takes their reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.limits import CLOCK_SKEW, MAX_ROUNDS, MAX_TIME
from hubbub.schedule import Once, Periodic, Schedule, Window

STARTS = 1_790_000_000
DAY = 86_400
DAILY = Periodic(STARTS, every=DAY, rounds=8, grace=DAY)


@pytest.mark.parametrize(
    ("schedule", "now", "number"),
    [
        # As early as the aggregator takes the first report.
        (Once(STARTS, None), STARTS - CLOCK_SKEW - 0.001, None),
        (Once(STARTS, None), STARTS - CLOCK_SKEW, 0),
        (Once(STARTS, None), MAX_TIME, 0),
        (Once(0, None), 0, 0),
        # The end is no longer in it.
        (Once(STARTS, STARTS + 10), STARTS + 9.999, 0),
        (Once(STARTS, STARTS + 10), STARTS + 10, None),
        (DAILY, STARTS - CLOCK_SKEW - 0.001, None),
        (DAILY, STARTS - CLOCK_SKEW, 0),
        (DAILY, STARTS, 0),
        (DAILY, STARTS + DAY - 0.001, 0),
        (DAILY, STARTS + DAY, 1),
        (DAILY, STARTS + 8 * DAY - 0.001, 7),
        # In the grace of the last round nothing new is answered.
        (DAILY, STARTS + 8 * DAY, None),
    ],
)
def test_the_round_a_device_answers(schedule: Schedule, now: float, number: int | None) -> None:
    assert schedule.round_at(now) == number


def test_when_the_aggregator_takes_reports() -> None:
    assert Once(STARTS, None).window(0) == Window(STARTS - CLOCK_SKEW, None)
    assert Once(STARTS, STARTS + 10).window(0) == Window(STARTS - CLOCK_SKEW, STARTS + 10)
    assert DAILY.window(0) == Window(STARTS - CLOCK_SKEW, STARTS + 2 * DAY)
    assert DAILY.window(7) == Window(STARTS + 7 * DAY - CLOCK_SKEW, STARTS + 9 * DAY)


def test_once_is_one_round() -> None:
    assert Once(STARTS, None).rounds == 1


schedules = st.one_of(
    st.builds(Once, st.integers(0, MAX_TIME // 2), st.none() | st.integers(MAX_TIME // 2 + 1)),
    st.builds(
        Periodic,
        starts=st.integers(0, MAX_TIME // 2),
        every=st.integers(1, 100_000),
        rounds=st.integers(1, MAX_ROUNDS),
        grace=st.integers(0, 100_000),
    ),
)


@given(schedules, st.floats(-CLOCK_SKEW, 10**6), st.integers(0, CLOCK_SKEW))
def test_what_a_device_answers_is_taken_at_once(
    schedule: Schedule, since: float, ahead: int
) -> None:
    """Even if its clock is as far ahead of the aggregator's as it may be, once it started."""
    now = schedule.starts + since
    number = schedule.round_at(now)
    if number is not None:
        window = schedule.window(number)
        assert window.opens <= max(now - ahead, schedule.starts - CLOCK_SKEW)
        assert window.closes is None or now < window.closes


@given(schedules, st.floats(0, MAX_TIME), st.floats(0, MAX_TIME))
def test_rounds_never_run_backwards(schedule: Schedule, a: float, b: float) -> None:
    earlier, later = sorted((a, b))
    first, second = schedule.round_at(earlier), schedule.round_at(later)
    if first is not None and second is not None:
        assert 0 <= first <= second < schedule.rounds
