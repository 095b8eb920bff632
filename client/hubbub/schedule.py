"""When a metric is asked: rounds, by the device's clock and by the aggregator's."""

from typing import Final, NamedTuple

from hubbub.canonical import Reader
from hubbub.errors import InvalidContract
from hubbub.limits import CLOCK_SKEW, MAX_ROUNDS, MAX_TIME
from hubbub.randomness import Source

# A joined round, as a device keeps it.
_ROUND_BYTES: Final = 4


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
    join: int = 0
    """How many of the rounds a device answers, drawn beforehand; 0: all of them."""

    def round_at(self, now: float) -> int | None:
        """The round a device answers at `now`, or None.

        The first may be answered as early as the aggregator takes it, so that a device whose
        clock is a little behind the signing machine's is not turned away.
        """
        return None if now < self.starts - CLOCK_SKEW else self.next_round(now)

    def next_round(self, now: float) -> int | None:
        """The first round that is not over at `now`, or None."""
        number = max(0, int((now - self.starts) // self.every))
        return number if number < self.rounds else None

    def closing_rounds(self, now: float) -> range:
        """The rounds that are over for devices at `now`, but not for the aggregator."""
        over = min(self.rounds, max(0, int((now - self.starts) // self.every)))
        closed = min(over, max(0, int((now - self.grace - self.starts) // self.every)))
        return range(closed, over)

    def end(self, number: int) -> int:
        """When a round in [0, rounds) is over for devices."""
        return self.starts + (number + 1) * self.every

    def window(self, number: int) -> Window:
        """When the aggregator takes the reports of a round in [0, rounds)."""
        end = self.end(number)
        return Window(end - self.every - CLOCK_SKEW, end + self.grace)

    def draw_rounds(self, first: int, source: Source) -> bytes:
        """Draw which rounds a device joins: `join` of those from `first` on, or all if fewer.

        Every set is as likely as any other (Floyd's algorithm). 4 bytes a round, big-endian,
        ascending.
        """
        joined: set[int] = set()
        size = min(self.join, self.rounds - first)
        for last in range(self.rounds - size, self.rounds):
            drawn = first + source.below(last - first + 1)
            joined.add(last if drawn in joined else drawn)
        return b"".join(number.to_bytes(_ROUND_BYTES, "big") for number in sorted(joined))


def joined_rounds(drawn: bytes) -> list[int]:
    """What `draw_rounds` drew."""
    return [
        int.from_bytes(drawn[place : place + _ROUND_BYTES], "big")
        for place in range(0, len(drawn), _ROUND_BYTES)
    ]


Schedule = Once | Periodic


def read_schedule(name: str, reader: Reader | None) -> Schedule:
    """Check the schedule of the named metric. Raises InvalidContract or NotCanonical."""
    if reader is None:
        raise InvalidContract(name, "schedule", "is missing")
    starts, once, periodic = reader.uint(1), reader.message(2), reader.message(3)
    reader.end()
    if starts > MAX_TIME:
        raise InvalidContract(name, "schedule", "starts too far in the future")
    if once is not None and periodic is None:
        return _once(name, starts, once)
    if periodic is not None and once is None:
        return _periodic(name, starts, periodic)
    raise InvalidContract(name, "schedule", "must be either once or periodic")


def _once(name: str, starts: int, reader: Reader) -> Once:
    ends = reader.uint(1)
    reader.end()
    if ends and not starts < ends <= MAX_TIME:
        raise InvalidContract(name, "schedule", "must end after it starts")
    return Once(starts, ends or None)


def _periodic(name: str, starts: int, reader: Reader) -> Periodic:
    every, rounds, grace, join = (reader.uint(number) for number in range(1, 5))
    reader.end()
    if not 1 <= rounds <= MAX_ROUNDS:
        raise InvalidContract(name, "schedule", f"must have 1 to {MAX_ROUNDS:,} rounds")
    if not every:
        raise InvalidContract(name, "schedule", "a round must last at least one second")
    if starts + every * rounds + grace > MAX_TIME:
        raise InvalidContract(name, "schedule", "ends too far in the future")
    if join > rounds:
        raise InvalidContract(
            name, "schedule", f"has {rounds:,} rounds, of which none joins {join:,}"
        )
    return Periodic(starts, every, rounds, grace, join)
