"""A real `hubbub serve`, over real TLS: every answer a device can get."""

import os
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from hubbub.bundle import Bundle
from hubbub.randomness import SYSTEM
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeProcess

TIMEOUT = 30

COUNTED = report_pb2.REPORT_STATUS_COUNTED
DUPLICATE = report_pb2.REPORT_STATUS_DUPLICATE
NOT_OPENED = report_pb2.REPORT_STATUS_NOT_OPENED
NOT_CANONICAL = report_pb2.REPORT_STATUS_NOT_CANONICAL


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(
        operator,
        make_metric("open", mechanism="optimised-unary"),
        make_metric("twin", mechanism="optimised-unary"),
        make_metric("indexed", mechanism="randomised-response"),
        make_metric("future", starts=4_000_000_000),
        make_metric("past", starts=0, ends=1_000_000_000),
        make_metric("daily", periodic=(10**9, 4, 0)),
    )


@pytest.fixture(scope="module")
def serve(
    operator: Operator, bundle: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeProcess]:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "metrics.hubbub").write_bytes(bundle.signed)
    with ServeProcess(operator, folder / "metrics.hubbub", folder / "store.sqlite3") as serve:
        yield serve
        assert serve.terminate() == 0


@pytest.fixture(scope="module")
def channel(serve: ServeProcess) -> Iterator[grpc.Channel]:
    with serve.public_channel() as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel: grpc.Channel) -> report_pb2_grpc.ReportServiceStub:
    return report_pb2_grpc.ReportServiceStub(channel)


def refused(
    stub: report_pb2_grpc.ReportServiceStub, request: report_pb2.SubmitReportsRequest
) -> tuple[grpc.StatusCode, str, Status]:
    """Code, reason and status of a request that must be refused."""
    with pytest.raises(grpc.RpcError) as raised:
        stub.SubmitReports(request, timeout=TIMEOUT)
    status = rpc_status.from_call(raised.value)
    assert status is not None, raised.value
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.domain == "hubbub"
    return raised.value.code(), info.reason, status


class TestReports:
    def test_counted_then_duplicate(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        request = make_request(bundle, "open")
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [COUNTED]
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [DUPLICATE]

    def test_sealed_again_it_is_still_the_same_report(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        metric = bundle.metrics["open"]
        report = (os.urandom(16), metric.mechanism.randomise(0, SYSTEM))
        first, again = (make_request(bundle, "open", [report]) for _ in range(2))
        assert first.sealed != again.sealed
        assert stub.SubmitReports(first, timeout=TIMEOUT).statuses == [COUNTED]
        assert stub.SubmitReports(again, timeout=TIMEOUT).statuses == [DUPLICATE]

    def test_each_report_gets_its_own_status(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        twice = os.urandom(16)
        reports = [
            (os.urandom(16), b"\x01"),
            (twice, b"\x02"),
            (os.urandom(16), b"\x10"),  # a spare bit: the domain has four values
            (os.urandom(16), b"\x0f"),
            (twice, b"\x04"),
            (os.urandom(16), b"\x00"),
        ]
        request = make_request(bundle, "open", reports)
        size = len(request.sealed) // len(reports)
        sealed = bytearray(request.sealed)
        sealed[4 * size - 1] ^= 1  # the fourth report's tag
        request.sealed = bytes(sealed)
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [
            COUNTED,
            COUNTED,
            NOT_CANONICAL,
            NOT_OPENED,
            DUPLICATE,
            COUNTED,
        ]

    def test_an_index_outside_the_domain(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        request = make_request(bundle, "indexed", [(os.urandom(16), b"\x04")])
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [NOT_CANONICAL]

    def test_sealed_for_another_metric(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        request = make_request(bundle, "twin")
        request.digest = bundle.metrics["open"].digest
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [NOT_OPENED]

    def test_sealed_for_another_round(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        request = make_request(bundle, "daily", round_number=0)
        request.round = 1
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [NOT_OPENED]

    @pytest.mark.parametrize("filler", [b"\x00", b"\x01", b"\xff"])
    def test_noise_does_not_open(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle, filler: bytes
    ) -> None:
        """All zeros is a point of low order, which X25519 must not accept."""
        request = make_request(bundle, "open")
        request.sealed = filler * len(request.sealed)
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [NOT_OPENED]

    def test_the_most_reports_a_request_may_hold(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        reports = [(os.urandom(16), b"\x01") for _ in range(1_000)]
        request = make_request(bundle, "twin", reports)
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [COUNTED] * 1_000


class TestRefusals:
    def test_unknown_digest(self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle) -> None:
        for digest in (b"", os.urandom(31), os.urandom(32)):
            request = make_request(bundle, "open")
            request.digest = digest
            code, reason, _ = refused(stub, request)
            assert code is grpc.StatusCode.NOT_FOUND
            assert reason == "REFUSAL_REASON_UNKNOWN_DIGEST"

    def test_round_not_open(self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle) -> None:
        code, reason, status = refused(stub, make_request(bundle, "future"))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert reason == "REFUSAL_REASON_ROUND_NOT_OPEN"
        assert "2096-10-02 07:01:40 UTC" in status.message

    def test_round_closed(self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle) -> None:
        code, reason, _ = refused(stub, make_request(bundle, "past"))
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert reason == "REFUSAL_REASON_ROUND_CLOSED"

    def test_no_such_round(self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle) -> None:
        code, reason, _ = refused(stub, make_request(bundle, "daily", round_number=4))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert reason == "REFUSAL_REASON_NO_SUCH_ROUND"

    def test_unknown_key(self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle) -> None:
        request = make_request(bundle, "open")
        request.key_id = os.urandom(8)
        code, reason, _ = refused(stub, request)
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert reason == "REFUSAL_REASON_UNKNOWN_KEY"

    @pytest.mark.parametrize("change", [-1, 1, None])
    def test_wrong_length(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle, change: int | None
    ) -> None:
        request = make_request(bundle, "open")
        request.sealed = b"" if change is None else os.urandom(len(request.sealed) + change)
        code, reason, _ = refused(stub, request)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert reason == "REFUSAL_REASON_WRONG_LENGTH"

    def test_too_many_reports(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        request = make_request(bundle, "open")
        request.sealed = request.sealed * 1_001
        code, reason, _ = refused(stub, request)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert reason == "REFUSAL_REASON_TOO_MANY_REPORTS"

    def test_refusals_for_good_do_not_ask_to_try_again(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        _, _, status = refused(stub, make_request(bundle, "past"))
        assert not any(detail.Is(RetryInfo.DESCRIPTOR) for detail in status.details)

    def test_a_message_above_the_limit(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        """Says what is wrong with it, and does not look like an overload."""
        request = make_request(bundle, "open")
        request.sealed = bytes(5 << 20)
        code, reason, status = refused(stub, request)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert reason == "REFUSAL_REASON_MESSAGE_TOO_LARGE"
        assert not any(detail.Is(RetryInfo.DESCRIPTOR) for detail in status.details)

    def test_a_message_that_is_not_read(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        """gRPC says so itself: its code is an overload's, but it does not ask to come again."""
        request = make_request(bundle, "open")
        request.sealed = bytes(9 << 20)
        with pytest.raises(grpc.RpcError) as raised:
            stub.SubmitReports(request, timeout=TIMEOUT)
        assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert rpc_status.from_call(raised.value) is None

    def test_a_compressed_message(
        self, stub: report_pb2_grpc.ReportServiceStub, bundle: Bundle
    ) -> None:
        """A few bytes must not unfold into megabytes."""
        request = make_request(bundle, "open")
        request.sealed = bytes(1 << 20)
        with pytest.raises(grpc.RpcError) as raised:
            stub.SubmitReports(request, timeout=TIMEOUT, compression=grpc.Compression.Gzip)
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


class TestListeners:
    def test_the_catalogue_holds_the_bundle_as_signed(
        self, channel: grpc.Channel, bundle: Bundle
    ) -> None:
        stub = report_pb2_grpc.CatalogServiceStub(channel)
        answer = stub.GetBundle(report_pb2.GetBundleRequest(), timeout=TIMEOUT)
        signed = answer.signed_bundle.SerializeToString(deterministic=True)
        assert signed == bundle.signed

    @pytest.mark.parametrize("listener", ["public_channel", "private_channel"])
    def test_health(self, serve: ServeProcess, listener: str) -> None:
        with getattr(serve, listener)() as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            for service in ("", "hubbub.v1.ReportService", "hubbub.v1.EstimateService"):
                request = health_pb2.HealthCheckRequest(service=service)
                answer = stub.Check(request, timeout=TIMEOUT)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING

    def test_devices_cannot_read_or_close(self, channel: grpc.Channel) -> None:
        estimates = estimate_pb2_grpc.EstimateServiceStub(channel)
        admin = estimate_pb2_grpc.AdminServiceStub(channel)
        for call in (
            lambda: estimates.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT),
            lambda: admin.CloseRound(estimate_pb2.CloseRoundRequest(), timeout=TIMEOUT),
        ):
            with pytest.raises(grpc.RpcError) as raised:
                call()
            assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED

    def test_reflection_is_private(self, serve: ServeProcess, channel: grpc.Channel) -> None:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        with serve.private_channel() as private:
            stub = reflection_pb2_grpc.ServerReflectionStub(private)
            answer = next(stub.ServerReflectionInfo(iter([request]), timeout=TIMEOUT))
        services = {service.name for service in answer.list_services_response.service}
        assert services >= {"hubbub.v1.EstimateService", "hubbub.v1.AdminService"}
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        with pytest.raises(grpc.RpcError) as raised:
            next(stub.ServerReflectionInfo(iter([request]), timeout=TIMEOUT))
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED

    def test_the_public_one_speaks_nothing_but_tls(self, serve: ServeProcess) -> None:
        with grpc.insecure_channel(serve.public) as channel:
            stub = report_pb2_grpc.CatalogServiceStub(channel)
            with pytest.raises(grpc.RpcError) as raised:
                stub.GetBundle(report_pb2.GetBundleRequest(), timeout=TIMEOUT)
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


def test_the_hybrid_suite_end_to_end(tmp_path: Path) -> None:
    operator = Operator.create(tmp_path / "keys", hybrid=True)
    bundle = make_bundle(operator, make_metric("open"))
    (tmp_path / "metrics.hubbub").write_bytes(bundle.signed)
    with (
        ServeProcess(operator, tmp_path / "metrics.hubbub", tmp_path / "s.sqlite3") as serve,
        serve.public_channel() as channel,
    ):
        stub = report_pb2_grpc.ReportServiceStub(channel)
        request = make_request(bundle, "open")
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [COUNTED]
        request.sealed = bytes(len(request.sealed))
        assert stub.SubmitReports(request, timeout=TIMEOUT).statuses == [NOT_OPENED]
