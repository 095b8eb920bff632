"""What is let in, by a clock the test turns."""

from dataclasses import dataclass

import pytest

from hubbub_aggregator.backlog import (
    FEW,
    LONGEST_PUSHBACK,
    LONGEST_WAIT,
    SHORTEST_PUSHBACK,
    Backlog,
)


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


class Served:
    """A backlog that is worked off at a steady pace."""

    def __init__(self, *, rate: float, most: int = 10_000, size: int = 1_000) -> None:
        """`rate`: requests of `size` bytes a second."""
        self.clock = Clock()
        self.backlog = Backlog(most, self.clock)
        self.rate = rate
        self.size = size
        self.let_in = self.turned_away = 0

    def offer(self, times: float, seconds: float) -> None:
        """So many times what it can do, for so long."""
        steps = int(seconds * self.rate)
        due = 0.0
        for _ in range(steps):
            self.clock.now += 1 / self.rate
            if self.backlog.requests:
                self.backlog.leave(self.size)
            due += times
            while due >= 1:
                due -= 1
                if self.backlog.enter(self.size):
                    self.let_in += 1
                else:
                    self.turned_away += 1


@pytest.mark.parametrize("rate", [20.0, 100.0, 5_000.0])
def test_what_is_let_in_waits_as_long_as_it_may(rate: float) -> None:
    served = Served(rate=rate)
    served.offer(3, 2)
    before = served.let_in
    served.offer(3, 4)
    # Never idle, and never with more than it can do in that time.
    assert served.let_in - before >= 0.9 * 4 * rate
    assert 0 < served.backlog.requests / rate <= 1.5 * LONGEST_WAIT
    assert served.turned_away > served.let_in


def test_nobody_is_turned_away_while_there_is_time() -> None:
    served = Served(rate=1_000)
    served.offer(0.9, 10)
    assert not served.turned_away


def test_before_anything_is_known_only_the_number_counts() -> None:
    backlog = Backlog(3)
    assert [backlog.enter(1 << 20) for _ in range(5)] == [True, True, True, False, False]
    assert not backlog.admits()
    backlog.leave(1 << 20)
    assert backlog.admits()


def test_a_few_large_ones_are_let_in_if_there_is_no_other() -> None:
    served = Served(rate=10)
    served.offer(3, 3)
    while served.backlog.requests:
        served.backlog.leave(served.size)
    assert all(served.backlog.enter(1 << 22) for _ in range(FEW))
    assert not served.backlog.enter(0)


def test_it_takes_more_again_when_what_held_it_up_is_over() -> None:
    served = Served(rate=2)
    served.offer(3, 20)
    # Now each takes a moment.
    for _ in range(20):
        taken = 0
        while taken < 100 and served.backlog.enter(served.size):
            taken += 1
        served.clock.now += 0.001 * (served.backlog.requests)
        while served.backlog.requests:
            served.backlog.leave(served.size)
    assert taken == 100


@pytest.mark.parametrize("commit", [0.06, 0.2, 0.4, 0.8])
@pytest.mark.parametrize("rate", [100, 1_000])
def test_slow_commits_are_no_queue(commit: float, rate: int) -> None:
    """Requests wait for the one under way and for their own, and all of them together."""
    clock = Clock()
    backlog = Backlog(10_000, clock)
    backlog.commit_seconds = lambda: commit
    waiting = committing = turned_away = 0
    for second in range(20):
        turned_away = 0
        for step in range(rate):
            clock.now += 1 / rate
            if backlog.enter(300):
                waiting += 1
            else:
                turned_away += 1
            if (second * rate + step) % round(commit * rate) == 0:
                for _ in range(committing):
                    backlog.leave(300)
                waiting, committing = 0, waiting
    assert not turned_away


def test_commits_that_take_for_ever_are_a_queue() -> None:
    clock = Clock()
    backlog = Backlog(100_000, clock)
    backlog.commit_seconds = lambda: 60.0
    served = Served(rate=100, most=100_000)
    served.backlog = backlog
    served.clock = clock
    served.offer(3, 20)
    # Whoever sent them gives up after ten seconds.
    assert served.backlog.requests < 5 * 100


class TestPushback:
    def test_differs_from_one_to_the_next(self) -> None:
        backlog = Backlog(1)
        seen = {backlog.pushback() for _ in range(100)}
        assert len(seen) == 100
        assert all(SHORTEST_PUSHBACK <= one <= 2 * SHORTEST_PUSHBACK for one in seen)

    def test_grows_with_those_who_are_turned_away_and_ends_with_them(self) -> None:
        served = Served(rate=100)
        served.offer(3, 2)
        few = max(served.backlog.pushback() for _ in range(100))
        many = max(served.backlog.pushback() for _ in range(5_000))
        assert few < 5
        # They would take fifty seconds; the last ones are spread over all of it.
        assert 35 < many < 60
        most = max(served.backlog.pushback() for _ in range(100_000))
        assert 0.9 * LONGEST_PUSHBACK < most <= LONGEST_PUSHBACK
        served.clock.now += 10_000
        assert served.backlog.pushback() <= 2 * SHORTEST_PUSHBACK
