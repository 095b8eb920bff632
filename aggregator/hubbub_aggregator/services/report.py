"""ReportService: the one call a device makes."""

from collections.abc import Iterable
from typing import cast

import grpc

from hubbub.v1 import report_pb2, report_pb2_grpc
from hubbub_aggregator.intake import Intake
from hubbub_aggregator.refusals import answering

# Bytes are integers to protobuf, as an enumeration's members are.
_Statuses = Iterable[report_pb2.ReportStatus.ValueType]


class ReportService(report_pb2_grpc.ReportServiceServicer):
    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    def SubmitReports(
        self, request: report_pb2.SubmitReportsRequest, context: grpc.ServicerContext
    ) -> report_pb2.SubmitReportsResponse:
        with answering(context):
            statuses = self._intake.submit(request)
        return report_pb2.SubmitReportsResponse(statuses=cast(_Statuses, statuses))
