"""When a stored report leaves: at a moment that the device's own randomness picks.

A fleet that is asked at the same time must not answer at the same time. And when a report
leaves must not hang on what it says: of a series, where an answer that was never given is filled
in when its round is over, nothing leaves before then.
"""

from typing import Final

from hubbub.contract import Metric
from hubbub.randomness import Source
from hubbub.schedule import Once

# A single round has no period to spread over. Seconds.
ONCE_WITHIN: Final = 60


def due_at(metric: Metric, number: int, now: int, source: Source) -> int:
    """Draw when a report for a round, stored `now`, leaves. Seconds UTC.

    Uniform over a period of the metric, or less where the round would close: the second half of
    the time that is left is for what goes wrong on the way.
    """
    schedule = metric.schedule
    if isinstance(schedule, Once):
        left = ONCE_WITHIN if schedule.ends is None else (schedule.ends - now) // 2
        return now + _up_to(min(ONCE_WITHIN, left), source)
    end = schedule.end(number)
    if not metric.is_series:
        return now + _up_to(min(schedule.every, (end + schedule.grace - now) // 2), source)
    # Of a series, the same moment whenever in the round it was stored.
    return max(now, end + _up_to(min(schedule.every, schedule.grace // 2), source))


def _up_to(seconds: int, source: Source) -> int:
    return source.below(max(0, seconds) + 1)
