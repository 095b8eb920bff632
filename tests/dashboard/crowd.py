"""A crowd of devices whose reports arrive at once, through the real public listener."""

from collections.abc import Sequence
from uuid import uuid4

from hubbub.bundle import Bundle
from hubbub.limits import MAX_REPORTS_PER_REQUEST
from hubbub.randomness import SystemSource
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from tests.bundles import seal_all
from tests.processes import PATIENCE, ServeProcess


def answer(
    serve: ServeProcess, bundle: Bundle, name: str, values: Sequence[int], *, number: int = 0
) -> None:
    """Randomise and submit one report for each value (an index of the domain)."""
    metric = bundle.metrics[name]
    source = SystemSource()
    with serve.public_channel() as channel:
        stub = report_pb2_grpc.ReportServiceStub(channel)
        for start in range(0, len(values), MAX_REPORTS_PER_REQUEST):
            reports = [
                (uuid4().bytes, metric.mechanism.randomise(value, source))
                for value in values[start : start + MAX_REPORTS_PER_REQUEST]
            ]
            request = report_pb2.SubmitReportsRequest(
                digest=metric.digest,
                round=number,
                key_id=bundle.sealing_keys[0].key_id,
                sealed=seal_all(bundle, metric, number, reports),
            )
            statuses = stub.SubmitReports(request, timeout=PATIENCE).statuses
            assert list(statuses) == [report_pb2.REPORT_STATUS_COUNTED] * len(reports)


def close_round(serve: ServeProcess, name: str, number: int | None = None) -> None:
    """Close a metric's newest round, or the one named, as `hubbub close` does."""
    with serve.private_channel() as channel:
        stub = estimate_pb2_grpc.AdminServiceStub(channel)
        stub.CloseRound(estimate_pb2.CloseRoundRequest(metric=name, round=number), timeout=PATIENCE)


def read_estimates(
    serve: ServeProcess,
    name: str,
    target: estimate_pb2.Target.ValueType = estimate_pb2.TARGET_RESPONDENTS,
) -> estimate_pb2.Estimates:
    """What the private listener answers about a metric's newest round."""
    with serve.private_channel() as channel:
        stub = estimate_pb2_grpc.EstimateServiceStub(channel)
        request = estimate_pb2.GetEstimatesRequest(metric=name, target=target)
        return stub.GetEstimates(request, timeout=PATIENCE).estimates
