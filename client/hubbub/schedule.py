"""When a metric is asked: rounds, by the device's clock and by the aggregator's."""

from typing import NamedTuple

from hubbub.limits import CLOCK_SKEW


class Window(NamedTuple):
    """When the aggregator takes a round's reports: opens ≤ now < closes, seconds UTC."""

    opens: int
    closes: int | None
    """None: until the operator closes it."""


class Once(NamedTuple):
    """One round, number 0, from `starts` until `ends` or until it is closed."""

    starts: int
    ends: int | None

    @property
    def rounds(self) -> int:
        return 1

    def round_at(self, now: float) -> int | None:
        """The round a device answers at `now`, or None."""
        if now < self.starts - CLOCK_SKEW or (self.ends is not None and now >= self.ends):
            return None
        return 0

    def window(self, number: int) -> Window:
        """When the aggregator takes the reports of a round in [0, rounds)."""
        return Window(self.starts - CLOCK_SKEW, self.ends)


class Periodic(NamedTuple):
    """`rounds` rounds of `every` seconds, each open for reports `grace` seconds longer."""

    starts: int
    every: int
    rounds: int
    grace: int

    def round_at(self, now: float) -> int | None:
        """The round a device answers at `now`, or None.

        The first may be answered as early as the aggregator takes it, so that a device whose
        clock is a little behind the signing machine's is not turned away.
        """
        if now < self.starts - CLOCK_SKEW:
            return None
        number = max(0, int((now - self.starts) // self.every))
        return number if number < self.rounds else None

    def window(self, number: int) -> Window:
        """When the aggregator takes the reports of a round in [0, rounds)."""
        begins = self.starts + number * self.every
        return Window(begins - CLOCK_SKEW, begins + self.every + self.grace)


Schedule = Once | Periodic
