"""What came to the aggregator lately, from looks that all viewers share. Pure.

Totals over all metrics, and nothing else: of one metric the aggregator does not tell what came
between two snapshots, and neither does this. Between two looks totals tell the average exactly,
however long nobody looked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from hubbub_aggregator.status_record import moment

# Seconds that the history reaches back, and that its intervals last once they are whole.
WINDOW: Final = 900.0
_STEP: Final = 30.0

# One that is shorter, since it has only begun or was cut short, would be drawn as a peak or a gap.
_SHORTEST: Final = 5.0

_NOT_REJECTED: Final = ("counted", "duplicate")


@dataclass(frozen=True, slots=True)
class Sample:
    """Totals of one look."""

    moment: float
    """Seconds since 1970-01-01 UTC, by the aggregator's clock."""
    started: float
    """When the process began that they are totals of."""
    counted: int
    """Reports."""
    rejected: int
    """Reports that cannot be counted, and requests refused as a whole."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What came each second, on average, between two looks."""

    begins: float
    ends: float
    counted: float
    rejected: float


def sample(record: Mapping[str, Any]) -> Sample:
    """Return the totals of a status."""
    now = moment(record["as_of"])
    reports, refused = record["reports"], record["requests_refused"]
    return Sample(
        moment=now,
        started=now - record["uptime_seconds"],
        counted=reports.get("counted", 0),
        rejected=sum(refused.values())
        + sum(count for name, count in reports.items() if name not in _NOT_REJECTED),
    )


def extended(history: tuple[Sample, ...], newest: Sample) -> tuple[Sample, ...]:
    """Add a look; what is older than the window is forgotten.

    So is what lies in the future, of an aggregator whose clock was set back. The last interval
    grows until it lasts long enough.
    """
    kept = [seen for seen in history if 0 < newest.moment - seen.moment <= WINDOW]
    if not kept and newest.moment - newest.started <= WINDOW:
        kept = [Sample(newest.started, newest.started, 0, 0)]
    if (
        len(kept) > 1
        and kept[-1].moment - kept[-2].moment < _STEP
        and _of_one_process(kept[-2], newest)
    ):
        del kept[-1]
    return (*kept, newest)


def intervals(history: tuple[Sample, ...]) -> tuple[Interval, ...]:
    """Return the averages between looks, oldest first.

    After a restart the first begins with the new process: what the old one did since the last
    look at it is not known.
    """
    return tuple(_intervals(history))


def _intervals(history: tuple[Sample, ...]) -> Iterator[Interval]:
    for before, after in pairwise(history):
        restarted = not _of_one_process(before, after)
        first = Sample(after.started, after.started, 0, 0) if restarted else before
        seconds = after.moment - first.moment
        if seconds >= _SHORTEST:
            yield Interval(
                first.moment,
                after.moment,
                (after.counted - first.counted) / seconds,
                (after.rejected - first.rejected) / seconds,
            )


def _of_one_process(left: Sample, right: Sample) -> bool:
    # Both moments that it is made of are rounded to a thousandth.
    return abs(left.started - right.started) < 0.5
