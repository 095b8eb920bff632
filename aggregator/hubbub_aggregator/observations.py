"""How work goes, over all metrics: how long it takes, how much of it waits, whether it fails.

Never by metric, for the same reason as the counters.
"""

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

# Five to each factor of ten, so that a quantile is told to within 60 %. Seconds.
BUCKETS: Final = tuple(
    base * 10.0**power for power in range(-4, 2) for base in (1.0, 1.6, 2.5, 4.0, 6.3)
)

# What a rate is taken over, seconds.
_RATE_WINDOW: Final = 60.0


@dataclass(frozen=True, slots=True)
class Timings:
    """How often something took how long."""

    cumulative: tuple[int, ...]
    """How many took at most BUCKETS[i] seconds; the last, all of them."""
    seconds: float
    """What all of them took together."""

    @property
    def count(self) -> int:
        return self.cumulative[-1]

    def quantile(self, share: float) -> float | None:
        """Seconds that at least this `share` of them, in (0, 1], took at most.

        The upper bound of a bucket, infinite past the last; None if there are none.
        """
        if not self.count:
            return None
        return (*BUCKETS, float("inf"))[bisect_left(self.cumulative, share * self.count)]


class Histogram:
    """Durations by bucket; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        with self._lock:
            self._counts[bisect_left(BUCKETS, seconds)] += times
            self._seconds += times * seconds

    def timings(self) -> Timings:
        with self._lock:
            return Timings(tuple(accumulate(self._counts)), self._seconds)


class Rate(NamedTuple):
    """So many each second, over so many seconds."""

    per_second: float
    seconds: float


class Observations:
    """What the intake, the committer and the ticker note; safe to use from many threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: seconds since 1970-01-01 UTC."""
        self.opening: Final = Histogram()
        """Opening the reports of one request."""
        self.commits: Final = Histogram()
        """Until the reports of a request are durable, and if they are few, opened before that."""
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting = 0
        self._failing_since: float | None = None
        self._last_commit: float | None = None
        self._samples: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])

    @property
    def requests_waiting(self) -> int:
        """Requests that wait for a commit."""
        return self._waiting

    @property
    def failing_since(self) -> float | None:
        """When the first of the latest commits failed that all failed; None: they succeed."""
        return self._failing_since

    @property
    def last_commit(self) -> float | None:
        """When reports were last made durable."""
        return self._last_commit

    def begin_waiting(self) -> None:
        """A request waits for its commit."""
        with self._lock:
            self._waiting += 1

    def end_waiting(self) -> None:
        with self._lock:
            self._waiting -= 1

    def committed(self) -> None:
        """Reports are durable."""
        now = self._clock()
        with self._lock:
            self._failing_since, self._last_commit = None, now

    def failed(self) -> None:
        """Reports could not be made durable."""
        now = self._clock()
        with self._lock:
            if self._failing_since is None:
                self._failing_since = now

    def sample(self, counted: int) -> None:
        """Note how many reports were counted so far; once a second or so."""
        now = time.monotonic()
        with self._lock:
            self._samples.append((now, counted))
            while now - self._samples[0][0] > _RATE_WINDOW:
                self._samples.popleft()

    def rate(self) -> Rate:
        """Reports counted each second, between the samples of the last minute."""
        with self._lock:
            (first, before), (last, now) = self._samples[0], self._samples[-1]
        seconds = last - first
        return Rate((now - before) / seconds if seconds else 0.0, seconds)
