"""The history holds totals of looks, and tells averages that they prove."""

from itertools import pairwise

from hubbub_dashboard.health.history import WINDOW, Sample, extended, intervals, sample
from tests.statuses import NOW, make_status, totals

STARTED = -10 * WINDOW


def look(moment: float, counted: int = 0, rejected: int = 0, *, started: float = STARTED) -> Sample:
    return Sample(moment, started, counted, rejected)


def seen(*looks: Sample) -> tuple[Sample, ...]:
    history: tuple[Sample, ...] = ()
    for each in looks:
        history = extended(history, each)
    return history


def test_a_sample_is_what_was_counted_and_what_was_turned_away() -> None:
    record = make_status(
        reports=totals(
            REPORT_STATUS_COUNTED=100, REPORT_STATUS_DUPLICATE=10, REPORT_STATUS_NOT_OPENED=2
        ),
        refused=totals(REFUSAL_REASON_OVERLOADED=3, REFUSAL_REASON_UNKNOWN_DIGEST=4),
    )
    assert sample(record) == Sample(NOW, NOW - 3_600, counted=100, rejected=9)


def test_averages_are_exact_however_often_one_looks() -> None:
    looks = [look(second, 5 * second, second) for second in range(0, 600, 2)]
    found = intervals(seen(*looks))
    assert found[0].begins == 0
    assert found[-1].ends == 598
    assert {(each.counted, each.rejected) for each in found} == {(5.0, 1.0)}
    # As many as half a minute warrants, and without a gap.
    assert len(found) == 20
    assert all(left.ends == right.begins for left, right in pairwise(found))


def test_what_came_while_nobody_looked_is_an_average() -> None:
    (found,) = intervals(seen(look(0, 100), look(500, 600)))
    assert (found.begins, found.ends, found.counted) == (0, 500, 1.0)


def test_what_is_older_than_the_window_is_forgotten() -> None:
    assert intervals(seen(look(0), look(100), look(WINDOW + 101))) == ()
    assert len(seen(*map(look, range(0, 10_000, 2)))) <= WINDOW / 30 + 2


def test_a_process_that_began_lately_is_known_from_its_first_moment() -> None:
    (found,) = intervals(seen(look(100, 200, started=0)))
    assert (found.begins, found.ends, found.counted) == (0, 100, 2.0)


def test_after_a_restart_counts_begin_anew_and_the_time_between_is_not_known() -> None:
    history = seen(look(0, 1_000), look(60, 1_600), look(100, 90, started=70))
    before, after = intervals(history)
    assert (before.ends, before.counted) == (60, 10.0)
    assert (after.begins, after.ends, after.counted) == (70, 100, 3.0)


def test_the_last_look_before_a_restart_is_kept() -> None:
    history = seen(look(0), look(40), look(52, 120), look(100, started=70))
    assert [each.ends for each in intervals(history)] == [40, 52, 100]


def test_a_clock_that_was_set_back_begins_the_history_anew() -> None:
    assert seen(look(1_000), look(1_060), look(500)) == (look(500),)
