"""ReportService: the one call a device makes."""

from collections.abc import Iterable
from functools import partial
from typing import cast

import grpc

from hubbub.v1 import report_pb2, report_pb2_grpc
from hubbub_aggregator.door import GoOn
from hubbub_aggregator.intake import Intake
from hubbub_aggregator.refusals import ReportsRefused, abort, answering
from hubbub_aggregator.submission import Submission

# Bytes are integers to protobuf, as an enumeration's members are.
_Statuses = Iterable[report_pb2.ReportStatus.ValueType]


class ReportService(report_pb2_grpc.ReportServiceServicer):
    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def SubmitReports(
        self, request: report_pb2.SubmitReportsRequest, context: grpc.ServicerContext
    ) -> report_pb2.SubmitReportsResponse:
        with answering(context):
            return _response(self._intake.submit(request))

    def begin(self, request: report_pb2.SubmitReportsRequest, go_on: GoOn) -> bool:
        """SubmitReports of few, which no thread needs to wait for; False: they are many."""
        try:
            return self._intake.begin(request, lambda settled: go_on(partial(self._end, settled)))
        except ReportsRefused as error:
            refused = error
        go_on(lambda context: abort(context, refused))
        return True

    def _end(
        self, settled: Submission, context: grpc.ServicerContext
    ) -> report_pb2.SubmitReportsResponse:
        with answering(context):
            return _response(self._intake.end(settled))


def _response(statuses: bytes) -> report_pb2.SubmitReportsResponse:
    return report_pb2.SubmitReportsResponse(statuses=cast(_Statuses, statuses))
