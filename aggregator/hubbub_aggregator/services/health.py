"""Health: whether the aggregator serves, for whoever asks; only operators may wait for a change."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2

_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING

# Each holds one of the private listener's threads; load balancers on public addresses check.
MAX_HEALTH_WATCHERS: Final = 4

# A watcher that went away without a word holds its thread no longer, seconds.
_LOOK: Final = 5.0


class Health:
    """SERVING, and from some moment on NOT_SERVING for good. Safe to use from many threads."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._leaving = False
        self._ended = False

    @property
    def leaving(self) -> bool:
        """Whether callers are asked to go elsewhere."""
        return self._leaving

    def leave(self) -> None:
        """Ask callers to go elsewhere, though whoever comes is still answered."""
        with self._condition:
            self._leaving = True
            self._condition.notify_all()

    def end(self) -> None:
        """Send those away who wait for a change: none will come."""
        with self._condition:
            self._leaving = self._ended = True
            self._condition.notify_all()

    def changes(self, context: grpc.ServicerContext) -> Iterator[bool]:
        """Whether it is leaving: now, and when that changes, until the end or the caller's."""
        context.add_callback(self._wake)
        leaving = self._leaving
        yield leaving
        with self._condition:
            while context.is_active() and not self._ended and self._leaving == leaving:
                self._condition.wait(_LOOK)
        if self._leaving != leaving:
            yield self._leaving
        with self._condition:
            while context.is_active() and not self._ended:
                self._condition.wait(_LOOK)

    def _wake(self) -> None:
        with self._condition:
            self._condition.notify_all()


class HealthService:
    """The standard service on one listener.

    Who watches never leaves by itself. Strangers could take every thread of the public listener
    that way, and hold up its end; there, health is only checked, which the standard lets clients
    make do with. Operators' watchers are few, and are sent away at the end.
    """

    def __init__(self, services: Iterable[str], health: Health, *, watched: bool) -> None:
        """`services`: full names; the empty one, the aggregator as a whole, is always known.

        `watched`: whether callers may wait for a change.
        """
        self._services = frozenset(("", *services))
        self._health = health
        self._seats = threading.Semaphore(MAX_HEALTH_WATCHERS if watched else 0)
        self._watched = watched

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._require_known(request.service, context)
        return _response(self._health.leaving)

    def List(self, request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "health is checked here, not listed")

    def Watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        if not self._watched:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "health is checked here, not watched")
        self._require_known(request.service, context)
        if not self._seats.acquire(blocking=False):
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{MAX_HEALTH_WATCHERS} watch already, which is the most; use Check",
            )
        try:
            for leaving in self._health.changes(context):
                yield _response(leaving)
        finally:
            self._seats.release()

    def _require_known(self, service: str, context: grpc.ServicerContext) -> None:
        if service not in self._services:
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")


def _response(leaving: bool) -> Any:
    return health_pb2.HealthCheckResponse(status=_NOT_SERVING if leaving else _SERVING)
