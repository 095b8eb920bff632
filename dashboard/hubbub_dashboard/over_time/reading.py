"""Reads a metric's rounds and what changed between them, and tells how far it has come."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from hubbub.schedule import Periodic
from hubbub_aggregator.status_record import moment
from hubbub_dashboard.over_time.figures import Changes, Shares
from hubbub_dashboard.over_time.series import (
    Revision,
    Series,
    Subject,
    level_of_step,
    rounds_shown,
    series,
    steps_between,
)
from hubbub_dashboard.reading.answers import Metric, Target
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.reading.source import Source

Progress = Callable[[int, int], None]
"""Told how many of how many calls are done."""


class Found(NamedTuple):
    """What was read."""

    series: Series
    failed: Reading[Any] | None
    """The first that could not be read; those after it were not asked for."""


def read(
    source: Source,
    metric: Metric,
    schedule: Periodic,
    *,
    target: Target,
    most: int,
    progress: Progress,
) -> Found:
    """Read the newest rounds, at most so many; what is closed is asked for once.

    `metric` has begun a round.
    """
    rounds = rounds_shown(metric, most)
    reader = _Reader(2 * len(rounds) - 1, progress)
    shares = tuple(
        reader.read(partial(source.shares, metric, round_, target)) if round_.n else reader.skip()
        for round_ in rounds
    )
    steps = steps_between(rounds, shares)
    level = level_of_step(len(steps))
    changes: tuple[Changes | None, ...] = tuple(
        reader.read(partial(source.changes, metric, before, after, target, level))
        for before, after in steps
    )
    return Found(
        series(
            Subject(metric.name, metric.values, target, schedule),
            rounds,
            shares,
            changes,
            revisions(source),
        ),
        reader.failed,
    )


class _Reader:
    """Reads one after the other, until one cannot be read."""

    def __init__(self, calls: int, progress: Progress) -> None:
        self.failed: Reading[Any] | None = None
        self._calls, self._progress, self._done = calls, progress, 0

    def read(self, ask: Callable[[], Reading[Any]]) -> Any:
        self._progress(self._done, self._calls)
        self._done += 1
        if self.failed is not None:
            return None
        reading = ask()
        if reading.failure:
            self.failed = reading
        return reading.value

    def skip(self) -> Shares | None:
        self._done += 1
        return None


def revisions(source: Source) -> tuple[Revision, ...] | None:
    """Since when each revision has been in force; None: the aggregator does not tell."""
    status = source.last_status().value
    if status is None:
        return None
    known = status.record["bundle"]["revisions"]
    return (
        tuple(
            Revision(each["revision"], moment(each["since"]), each["or_earlier"]) for each in known
        )
        or None
    )
