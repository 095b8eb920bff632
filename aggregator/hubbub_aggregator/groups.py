"""A thread that works on whatever waits, all of it at once.

It begins when it has ended with the last group, and there is no timer: alone, a request is worked
on at once; among many, it shares the work with all that came meanwhile.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class GroupThread(Generic[T]):
    """Does `work` with groups, one after the other."""

    def __init__(self, name: str, work: Callable[[list[T]], None]) -> None:
        """`work` never raises."""
        self._work = work
        self._condition = threading.Condition()
        self._waiting: list[T] = []
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, one: T) -> bool:
        """Let it join the next group; False: there is none any more."""
        with self._condition:
            if self._closing:
                return False
            self._waiting.append(one)
            if len(self._waiting) == 1:
                self._condition.notify()
        return True

    def put_all(self, several: list[T]) -> bool:
        """Let several join the next group; False: there is none any more."""
        with self._condition:
            if self._closing:
                return False
            self._waiting += several
            self._condition.notify()
        return True

    def close(self) -> None:
        """Work on what waits, then stop."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._closing)
                group, self._waiting = self._waiting, []
            if not group:
                return
            self._work(group)
