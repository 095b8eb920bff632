"""Waking those who wait for a snapshot."""

import threading


class Announcements:
    """Says that something was published; what it is, the store knows."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._ended = False

    @property
    def count(self) -> int:
        """How many announcements there were: remember it before reading the store."""
        with self._condition:
            return self._count

    @property
    def ended(self) -> bool:
        """Whether no more will come, because the process is stopping."""
        with self._condition:
            return self._ended

    def announce(self) -> None:
        with self._condition:
            self._count += 1
            self._condition.notify_all()

    def end(self) -> None:
        """Wake everybody for the last time."""
        with self._condition:
            self._ended = True
            self._condition.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Return at the first announcement after `seen`, at the end, or after `seconds`."""
        with self._condition:
            self._condition.wait_for(lambda: self._ended or self._count != seen, seconds)
