"""The backlog: how much waits, how long one more would, and when whoever is turned away may return.

Whether a request is taken is decided before anything is done for it, by how fast the backlog was
worked off lately. One that would wait for long is better off elsewhere: whoever sent it gives up
after a while, and what had been done for it would be done in vain.
"""

import random
import threading
import time
from collections.abc import Callable
from typing import Final

# A request that would wait longer is turned away, seconds. So answers come within a second though
# luck be bad; and a queue that is never empty is all it takes to keep the aggregator busy.
LONGEST_WAIT: Final = 0.3

# A request waits anyway for the commit that is under way, and for its own: that is no queue, and
# others wait with it. But not for ever: whoever sent it gives up after ten seconds.
_COMMITS: Final = 2
_MOST_ANYWAY: Final = 3.0

# So many are let in whatever they take: the largest batches of a gateway that sends a few at once.
FEW: Final = 4

# What a request costs beside its bytes, in bytes: a call takes about as long as opening two or
# three small reports.
_PER_REQUEST: Final = 256

# Over how long it is measured how fast the backlog is worked off, seconds; and how much of the
# newest goes into the figure.
_WINDOW: Final = 0.25
_NEWEST: Final = 0.5

# Whoever is turned away is told to wait at least so long; and the longest, seconds.
SHORTEST_PUSHBACK: Final = 1.0
LONGEST_PUSHBACK: Final = 300.0


class Backlog:
    """What is in hand. Safe to use from many threads."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`most`: requests at once; `clock`: seconds, from anywhere on."""
        self._most = most
        self._clock = clock
        self.commit_seconds: Callable[[], float] = lambda: 0.0
        """How long a commit takes just now, seconds."""
        self._lock = threading.Lock()
        self._requests = 0
        self._weight = 0
        # How fast the backlog was worked off lately; None: there was none for long enough.
        self._weight_rate: float | None = None
        self._request_rate = 0.0
        # Since when there is one without a pause, and what was done since.
        self._since = 0.0
        self._done_weight = 0
        self._done_requests = 0
        # Those who were turned away and have not had their turn yet, if it were a queue.
        self._outside = 0.0
        self._outside_at = clock()

    @property
    def requests(self) -> int:
        """Requests that are in hand."""
        return self._requests

    def admits(self, size: int = 0) -> bool:
        """Whether one more request, of so many bytes, is worked on soon enough."""
        with self._lock:
            return self._admits(size)

    def enter(self, size: int) -> bool:
        """Take a request of so many bytes in hand; False: it would wait too long."""
        with self._lock:
            if not self._admits(size):
                return False
            if not self._requests:
                self._begin_window()
            self._requests += 1
            self._weight += size + _PER_REQUEST
            return True

    def leave(self, size: int) -> None:
        """One of so many bytes is answered."""
        with self._lock:
            self._requests -= 1
            self._weight -= size + _PER_REQUEST
            seconds = self._clock() - self._since
            if seconds >= _WINDOW:
                # This one is the first of those that share its commit: they belong to what comes.
                if self._done_requests:
                    self._measure(seconds)
                self._begin_window()
            self._done_requests += 1
            self._done_weight += size + _PER_REQUEST
            if (
                seconds < _WINDOW
                and not self._requests
                and self._weight_rate is not None
                and self._done_weight > self._weight_rate * seconds
            ):
                # It may be faster than this, since it was not busy all the time, but not slower.
                self._measure(seconds)

    def pushback(self) -> float:
        """When somebody who is turned away may come again, seconds: later, the more there are.

        As if they stood in a queue outside, and each at a place of its own, so that they do not
        come back all at once.
        """
        with self._lock:
            now = self._clock()
            served = self._request_rate * (now - self._outside_at)
            self._outside = max(0.0, self._outside - served) + 1
            self._outside_at = now
            queue = self._outside / self._request_rate if self._request_rate else 0.0
        longest = min(max(queue, SHORTEST_PUSHBACK), LONGEST_PUSHBACK - SHORTEST_PUSHBACK)
        return SHORTEST_PUSHBACK + random.uniform(0.0, longest)  # noqa: S311  guards nothing

    def _admits(self, size: int) -> bool:
        if self._requests >= self._most:
            return False
        if self._requests < FEW or self._weight_rate is None:
            return True
        wait = LONGEST_WAIT + min(_COMMITS * self.commit_seconds(), _MOST_ANYWAY)
        return self._weight + size + _PER_REQUEST <= self._weight_rate * wait

    def _begin_window(self) -> None:
        self._since = self._clock()
        self._done_weight = self._done_requests = 0

    def _measure(self, seconds: float) -> None:
        seconds = max(seconds, 1e-6)
        weight, requests = self._done_weight / seconds, self._done_requests / seconds
        if self._weight_rate is None:
            self._weight_rate, self._request_rate = weight, requests
        else:
            self._weight_rate += _NEWEST * (weight - self._weight_rate)
            self._request_rate += _NEWEST * (requests - self._request_rate)
