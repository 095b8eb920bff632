"""The rounds that are drawn, their gaps, and the steps between them. Pure."""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from hubbub.schedule import Periodic
from hubbub_dashboard import text
from hubbub_dashboard.few_reports import WIDEST, widest
from hubbub_dashboard.over_time.figures import Changes, Shares
from hubbub_dashboard.reading.answers import Metric, Round, RoundState, Target

# Probability that no change is marked in a series in which nothing changes.
LEVEL: Final = 0.95

# Values times rounds: a second or some of reading for a thousand values, and for 65,536.
_MAX_FIGURES: Final = 200_000


class Kind(Enum):
    """What is drawn of a round, and if nothing, why."""

    CLOSED = "closed"
    OPEN = "still open"
    TOO_FEW = "too few reports"
    WAITING = "no snapshot yet"
    EMPTY = "no reports"
    UNREAD = "not read"


class Revision(NamedTuple):
    """When a revision of the bundle came into force."""

    number: int
    since: float
    or_earlier: bool
    """It may have been before: the aggregator did not keep times yet."""


class Point(NamedTuple):
    """A round."""

    number: int
    begins: float
    """Seconds since 1970-01-01 UTC."""
    kind: Kind
    shares: Shares | None
    """None where nothing is drawn, unless they are too few."""
    revisions: tuple[Revision, ...]
    """Those that came into force while it was answered."""

    @property
    def drawn(self) -> Shares | None:
        return self.shares if self.kind in (Kind.CLOSED, Kind.OPEN) else None


class Step(NamedTuple):
    """From one closed round that is drawn to the next one."""

    before: Point
    after: Point
    changes: Changes | None
    """None: it could not be read."""


class Subject(NamedTuple):
    """What a series is of."""

    metric: str
    values: tuple[str, ...]
    target: Target
    schedule: Periodic


# By identity, as the snapshots it is made of.
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Series:
    """A metric over its rounds."""

    metric: str
    values: tuple[str, ...]
    target: Target
    schedule: Periodic
    points: tuple[Point, ...]
    """Oldest first; there is at least one."""
    steps: tuple[Step, ...]
    earlier: int
    """How many rounds before these there were."""
    revisions: tuple[Revision, ...] | None
    """All that are known; None: the aggregator does not tell."""
    places: int
    """Decimals of a percentage that the errors warrant."""

    @property
    def last(self) -> Step | None:
        """The newest step between closed rounds."""
        return self.steps[-1] if self.steps else None

    @property
    def drawn(self) -> tuple[tuple[Point, Shares], ...]:
        """The rounds that are drawn, and their figures."""
        return tuple((point, point.drawn) for point in self.points if point.drawn is not None)


def rounds_shown(metric: Metric, most: int) -> tuple[Round, ...]:
    """The newest rounds, as many as asked for; of very many values fewer, but three at least."""
    room = max(3, _MAX_FIGURES // max(1, len(metric.values)))
    return metric.rounds[-min(most, room) :]


def kind_of(round_: Round, shares: Shares | None) -> Kind:
    """What is drawn of a round. `shares`: None if it has no snapshot, or it could not be read."""
    if not round_.n:
        return Kind.EMPTY if round_.state is RoundState.CLOSED else Kind.WAITING
    if shares is None or not shares.size:
        return Kind.UNREAD
    if widest(shares.n, shares.size, shares.influence, LEVEL) > WIDEST:
        return Kind.TOO_FEW
    return Kind.CLOSED if shares.state is RoundState.CLOSED else Kind.OPEN


def steps_between(
    rounds: tuple[Round, ...], shares: tuple[Shares | None, ...]
) -> tuple[tuple[Round, Round], ...]:
    """Pairs of closed rounds to compare: each that is drawn with the one drawn before it.

    Nothing is compared with a round that is open: it would be looked at again and again.
    """
    closed = [
        round_
        for round_, known in zip(rounds, shares, strict=True)
        if kind_of(round_, known) is Kind.CLOSED
    ]
    return tuple(pairwise(closed))


def level_of_step(steps: int) -> float:
    """The level of each of so many steps, that all of them together have `LEVEL`.

    Bonferroni's: two neighbouring steps have a round in common, and are not independent.
    """
    return 1 - (1 - LEVEL) / max(1, steps)


# As many as different ones are looked at, at one time; each holds its snapshots.
@lru_cache(maxsize=8)
def series(
    subject: Subject,
    rounds: tuple[Round, ...],
    shares: tuple[Shares | None, ...],
    changes: tuple[Changes | None, ...],
    revisions: tuple[Revision, ...] | None,
) -> Series:
    """Put together what was read: a Shares for each round, a Changes for each step."""
    schedule = subject.schedule
    points = tuple(
        Point(
            round_.number,
            begins(schedule, round_.number),
            kind_of(round_, known),
            known if round_.n else None,
            _during(schedule, round_.number, revisions or ()),
        )
        for round_, known in zip(rounds, shares, strict=True)
    )
    closed = pairwise(point for point in points if point.kind is Kind.CLOSED)
    steps = tuple(
        Step(before, after, found) for (before, after), found in zip(closed, changes, strict=True)
    )
    errors = [point.drawn.std_error.min() for point in points if point.drawn is not None]
    return Series(
        *subject,
        points,
        steps,
        rounds[0].number,
        revisions,
        text.decimals(map(float, errors)),
    )


def begins(schedule: Periodic, number: int) -> float:
    """When devices begin to answer a round."""
    return schedule.end(number) - schedule.every


def _during(
    schedule: Periodic, number: int, revisions: tuple[Revision, ...]
) -> tuple[Revision, ...]:
    """Which came while a round was answered; the first that is known came after none."""
    start, end = begins(schedule, number), schedule.end(number)
    return tuple(revision for revision in revisions[1:] if start <= revision.since < end)
