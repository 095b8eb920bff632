"""AdminService: what an operator may do to a running collection, and see of it."""

from collections.abc import Callable

import grpc

from hubbub.contract import Metric
from hubbub.schedule import Periodic
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.archive.errors import NotArchived
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric
from hubbub_aggregator.closing import Closer
from hubbub_aggregator.refusals import Refused, answering
from hubbub_aggregator.services.lookup import find_metric, require_round
from hubbub_aggregator.services.status import StatusBoard
from hubbub_aggregator.store import Closed


class AdminService(estimate_pb2_grpc.AdminServiceServicer):
    def __init__(
        self,
        catalogue: Catalogue,
        closer: Closer,
        clock: Callable[[], float],
        board: StatusBoard,
    ) -> None:
        self._catalogue = catalogue
        self._closer = closer
        self._clock = clock
        self._board = board

    def GetStatus(
        self, request: estimate_pb2.GetStatusRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.GetStatusResponse:
        with answering(context):
            return self._board.status()

    def CloseRound(
        self, request: estimate_pb2.CloseRoundRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.CloseRoundResponse:
        with answering(context):
            return self._close_round(request)

    def _close_round(
        self, request: estimate_pb2.CloseRoundRequest
    ) -> estimate_pb2.CloseRoundResponse:
        metric = find_metric(self._catalogue, request.metric)
        now = self._clock()
        newest = metric.newest_begun(now)
        number = request.round if request.HasField("round") else newest
        if number is not None and not request.HasField("round"):
            _require_over(metric.metric, number, now)
        if number is None:
            raise Refused(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"no round of metric {request.metric!r} has begun yet",
            )
        # Reports may come before, from devices whose clocks are fast; that is no reason to
        # end a round which for everybody else is still to come.
        if now < metric.begins(require_round(metric, number)):
            raise Refused(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"round {number} of metric {request.metric!r} has not begun yet",
            )
        closed = self._close(metric, number, now)
        return estimate_pb2.CloseRoundResponse(
            round=number, n=closed.n, closed_now=closed.closed_now
        )

    def _close(self, metric: CataloguedMetric, number: int, now: float) -> Closed:
        try:
            return self._closer.close(metric, number, now)
        except NotArchived as error:
            # The whole sentence names paths, and is the log's.
            raise Refused(
                grpc.StatusCode.UNAVAILABLE,
                f"round {number} of metric {metric.metric.name!r} cannot be archived now, and "
                f"stays open ({error.reason}); the aggregator's log says more",
            ) from None


def _require_over(metric: Metric, number: int, now: float) -> None:
    """Refuse to close, unless it was named, a round that devices are answering still."""
    schedule = metric.schedule
    if isinstance(schedule, Periodic) and now < schedule.end(number):
        before = f", or round {number - 1}, the newest that is over" if number else ""
        raise Refused(
            grpc.StatusCode.FAILED_PRECONDITION,
            f"round {number} of metric {metric.name!r} is being answered, and what has not arrived "
            f"yet would be lost; name it with --round to close it all the same{before}",
        )
