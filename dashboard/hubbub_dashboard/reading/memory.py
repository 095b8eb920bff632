"""The last good answers to some calls, shared by all viewers of this process."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import grpc

K = TypeVar("K")
T = TypeVar("T")


# No slots: a generic class that is frozen and has them cannot be made under its full name.
@dataclass(frozen=True)
class Reading(Generic[T]):
    """The last good answer, and whether the aggregator still gives one."""

    value: T | None = None
    answered: float | None = None
    """When the last good answer came, seconds UTC; None: there never was one."""
    asked: float | None = None
    """When the last call ended, successfully or not: whoever waited for it does not call again."""
    failure: str | None = None
    """Why the last call failed; None: it did not."""


class Unanswered(grpc.RpcError):
    """There is no answer that could be taken; `failure` is why."""

    def __init__(self, failure: str) -> None:
        super().__init__(failure)
        self.failure = failure


class _Place(Generic[T]):
    def __init__(self) -> None:
        # Whoever wants the same answer waits for it; whoever wants another does not.
        self.lock = threading.Lock()
        self.reading: Reading[T] = Reading()
        self.weight = 0
        self.doubted = False


class Memory(Generic[K, T]):
    """Answers by what was asked, the least recently used forgotten first. Thread-safe.

    When the aggregator does not answer, the last good answer stays, with the time it is from.
    """

    def __init__(
        self,
        *,
        most: int,
        max_age: float,
        clock: Callable[[], float],
        weigh: Callable[[T], int] = lambda _: 1,
    ) -> None:
        """Keep answers that weigh `most` together; one younger than `max_age` seconds is given
        again."""
        self._most: Final = most
        self._weigh: Final = weigh
        self._max_age: Final = max_age
        self._clock: Final = clock
        self._lock: Final = threading.Lock()
        self._places: Final[dict[K, _Place[T]]] = {}

    def read(
        self, key: K, ask: Callable[[], T], is_current: Callable[[T], bool] = lambda _: False
    ) -> Reading[T]:
        """Return what is kept if it is young or `is_current`, else what `ask` returns.

        `ask` may raise grpc.RpcError.
        """
        place = self._place(key)
        with place.lock:
            kept, doubted = place.reading, place.doubted
            if kept.value is None or doubted or not is_current(kept.value):
                # Before it is asked: what comes to be doubted meanwhile may be the answer.
                place.doubted = False
                place.reading = self._refreshed(kept, ask)
                if doubted and (place.reading is kept or place.reading.failure):
                    place.doubted = True
                self._weighed(place)
            return place.reading

    def last(self, key: K) -> Reading[T]:
        """Return what is kept, of whatever age."""
        return self._place(key).reading

    def doubt(self) -> None:
        """Ask for everything anew before it is given again as current."""
        with self._lock:
            for place in self._places.values():
                place.doubted = True

    def _place(self, key: K) -> _Place[T]:
        with self._lock:
            # Taken out and put in again, so that the first is the one not used for longest.
            place: _Place[T] = self._places.pop(key) if key in self._places else _Place()
            self._places[key] = place
            return place

    def _weighed(self, place: _Place[T]) -> None:
        value = place.reading.value
        with self._lock:
            place.weight = 1 if value is None else self._weigh(value)
            total = sum(kept.weight for kept in self._places.values())
            while total > self._most and len(self._places) > 1:
                total -= self._places.pop(next(iter(self._places))).weight

    def _refreshed(self, kept: Reading[T], ask: Callable[[], T]) -> Reading[T]:
        now = self._clock()
        if kept.asked is not None and 0 <= now - kept.asked < self._max_age:
            return kept
        try:
            found = ask()
        except grpc.RpcError as error:
            return Reading(kept.value, kept.answered, self._clock(), _code(error))
        return Reading(found, answered=now, asked=self._clock())


def _code(error: grpc.RpcError) -> str:
    if isinstance(error, Unanswered):
        return error.failure
    return error.code().name if isinstance(error, grpc.Call) else type(error).__name__
