"""Rounds that are to be closed and cannot be archived: since when, why, and what to try next."""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from hubbub_aggregator.archive.errors import NotArchived

# How long rounds whose time is over wait after one that could not be archived: a full disk is
# seldom freed sooner, and each attempt reads the round again while nothing is counted. Seconds.
_REST: Final = 60.0

Round = tuple[bytes, int]
"""A metric's digest and the round's number."""


class Failing(NamedTuple):
    """What an operator is told of them."""

    since: float
    """When the first of them failed, seconds since 1970-01-01 UTC."""
    reason: str
    """Why, in a few words; of several reasons, each."""
    overdue: int
    """Those whose time is over. The others somebody asked to close, and may ask again."""


@dataclass(frozen=True, slots=True)
class _Failure:
    since: float
    attempt: int
    """Which of all attempts its last one was; 0: it only waited for others."""
    error: NotArchived
    overdue: bool


class Unarchived:
    """Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: dict[Round, _Failure] = {}
        self._attempts = 0
        # The last that failed, and until when those whose time is over wait after it.
        self._rest: tuple[float, NotArchived] | None = None

    @property
    def failing(self) -> Failing | None:
        """None: every round that was to be archived is."""
        with self._lock:
            failures = list(self._failures.values())
        if not failures:
            return None
        return Failing(
            since=min(failure.since for failure in failures),
            reason="; ".join(dict.fromkeys(failure.error.reason for failure in failures)),
            overdue=sum(failure.overdue for failure in failures),
        )

    def failed(self, which: Round, error: NotArchived, now: float, *, overdue: bool) -> bool:
        """Note an attempt. Returns whether this is news of the round, which the log should have."""
        with self._lock:
            self._attempts += 1
            self._rest = time.monotonic() + _REST, error
            before = self._failures.get(which)
            since = now if before is None else before.since
            self._failures[which] = _Failure(since, self._attempts, error, overdue)
        return before is None or not before.attempt or before.error.reason != error.reason

    def archived(self, which: Round) -> bool:
        """Note a success, after which nothing need wait. Returns whether it had failed before."""
        with self._lock:
            self._rest = None
            before = self._failures.pop(which, None)
        return before is not None and before.attempt > 0

    def postpone(self, which: Round, now: float) -> bool:
        """Note that a round whose time is over waits for others. False: it is to be tried now."""
        with self._lock:
            if self._rest is None or time.monotonic() >= self._rest[0]:
                return False
            before = self._failures.get(which) or _Failure(now, 0, self._rest[1], overdue=True)
            self._failures[which] = _Failure(
                before.since, before.attempt, before.error, overdue=True
            )
            return True

    def attempt(self, which: Round) -> int:
        """By which to sort: what was tried longest ago comes first, before it what never was.

        Else a round that cannot be archived for a reason of its own would keep others from it.
        """
        with self._lock:
            failure = self._failures.get(which)
        return 0 if failure is None else failure.attempt

    def forget_all_but(self, rounds: Iterable[Round]) -> None:
        """Another aggregator that shares the store may have closed some."""
        with self._lock:
            self._failures = {
                which: self._failures[which] for which in rounds if which in self._failures
            }
