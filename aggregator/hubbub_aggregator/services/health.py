"""Health: whether the aggregator serves, for whoever asks; nobody may wait here for it."""

from collections.abc import Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2


class HealthService:
    """The standard service, of which only Check is answered.

    A watcher never leaves by itself, so strangers who watch could hold up the end of the
    process for as long as it lets calls finish.
    """

    def __init__(self, services: Iterable[str]) -> None:
        """`services`: full names; the empty one, the aggregator as a whole, is always known."""
        self._services = frozenset(("", *services))

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        if request.service not in self._services:
            context.abort(grpc.StatusCode.NOT_FOUND, "there is no such service")
        # Whoever gets an answer is served: an aggregator that stops takes no calls.
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

    def List(self, request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "health is checked here, not listed")

    def Watch(self, request: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "health is checked here, not watched")
