"""Rounds by the device's clock, and when the aggregator takes their reports."""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.limits import CLOCK_SKEW, MAX_ROUNDS, MAX_TIME
from hubbub.randomness import SYSTEM
from hubbub.schedule import Once, Periodic, Schedule, Window, joined_rounds

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


# -- Which rounds a device joins ------------------------------------------------------------


class Scripted:
    """A source whose lots are given."""

    base = 256

    def __init__(self, lots: Iterable[int]) -> None:
        self._lots = iter(lots)
        self.asked: list[int] = []

    def digits(self, count: int) -> bytes:
        raise AssertionError(f"{count} digits were drawn")

    def below(self, n: int) -> int:
        self.asked.append(n)
        return next(self._lots)


@pytest.mark.parametrize(
    ("rounds", "join", "first"), [(5, 2, 0), (6, 3, 0), (6, 3, 2), (5, 4, 0), (4, 4, 0), (5, 1, 4)]
)
def test_every_set_of_rounds_is_as_likely_as_any_other(rounds: int, join: int, first: int) -> None:
    schedule = Periodic(STARTS, DAY, rounds, DAY, join)
    # Lots of as many sizes as rounds are joined, and each of them is drawn from all it can be.
    sizes = range(rounds - first - join + 1, rounds - first + 1)
    drawn: Counter[tuple[int, ...]] = Counter()
    for lots in product(*map(range, sizes)):
        source = Scripted(lots)
        drawn[tuple(joined_rounds(schedule.draw_rounds(first, source)))] += 1
        assert source.asked == list(sizes)
    assert set(drawn) == set(combinations(range(first, rounds), join))
    assert len(set(drawn.values())) == 1


@pytest.mark.parametrize(("first", "expected"), [(0, 3), (5, 3), (6, 2), (7, 1)])
def test_a_device_that_comes_late_joins_what_is_left(first: int, expected: int) -> None:
    schedule = Periodic(STARTS, DAY, 8, DAY, join=3)
    drawn = schedule.draw_rounds(first, SYSTEM)
    joined = joined_rounds(drawn)
    assert len(joined) == expected
    assert joined == sorted(set(joined))
    assert first <= joined[0] <= joined[-1] < 8
    assert drawn == b"".join(number.to_bytes(4, "big") for number in joined)


def test_most_of_many_rounds() -> None:
    schedule = Periodic(STARTS, 1, MAX_ROUNDS, 1, join=MAX_ROUNDS)
    assert joined_rounds(schedule.draw_rounds(0, SYSTEM)) == list(range(MAX_ROUNDS))


@pytest.mark.parametrize(
    ("now", "closing"),
    [
        (STARTS - DAY, range(0)),
        (STARTS + DAY - 1, range(0)),
        (STARTS + DAY, range(1)),
        (STARTS + 2 * DAY, range(1, 2)),
        (STARTS + 8 * DAY, range(7, 8)),
        (STARTS + 9 * DAY - 1, range(7, 8)),
        (STARTS + 9 * DAY, range(0)),
    ],
)
def test_rounds_that_are_over_but_still_take_reports(now: float, closing: range) -> None:
    assert list(DAILY.closing_rounds(now)) == list(closing)
    for number in closing:
        assert DAILY.end(number) <= now < (DAILY.window(number).closes or 0)


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
