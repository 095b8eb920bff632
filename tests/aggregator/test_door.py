"""The door before a real server: as it is with the gRPC that is known, and with one that is not."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from hubbub.v1 import report_pb2, report_pb2_grpc
from hubbub_aggregator import door
from hubbub_aggregator.backlog import Backlog
from hubbub_aggregator.door import Door, Line
from tests.devices import soon
from tests.flood import Stalls
from tests.overload import PATH

TIMEOUT = 30
LARGEST = 10_000
MOST = 4


class Waiting(report_pb2_grpc.ReportServiceServicer):
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_answer = threading.Event()

    def SubmitReports(
        self, request: report_pb2.SubmitReportsRequest, context: grpc.ServicerContext
    ) -> report_pb2.SubmitReportsResponse:
        self.begun.release()
        assert self.may_answer.wait(TIMEOUT)
        return report_pb2.SubmitReportsResponse(statuses=[request.round])


@pytest.fixture
def waiting() -> Waiting:
    return Waiting()


@pytest.fixture(params=[True, False], ids=["known", "unknown"])
def address(
    request: pytest.FixtureRequest, waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    monkeypatch.setattr(door, "KNOWN", request.param)
    line = Line(ThreadPoolExecutor(MOST), Backlog(MOST))
    before = Door(lambda method: line, LARGEST)
    server = grpc.server(ThreadPoolExecutor(MOST), interceptors=[before])
    report_pb2_grpc.add_ReportServiceServicer_to_server(waiting, server)
    port = server.add_insecure_port("127.0.0.1:0")
    # Otherwise ten seconds.
    before.receiver.hurry()
    before.receiver.start()
    server.start()
    yield f"127.0.0.1:{port}"
    waiting.may_answer.set()
    server.stop(0).wait()
    before.receiver.close()


@pytest.fixture
def stub(address: str) -> Iterator[report_pb2_grpc.ReportServiceStub]:
    with grpc.insecure_channel(address) as channel:
        yield report_pb2_grpc.ReportServiceStub(channel)


def reason(error: grpc.RpcError) -> str:
    status = rpc_status.from_call(error)
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    return str(info.reason)


def test_a_call_is_answered(stub: report_pb2_grpc.ReportServiceStub, waiting: Waiting) -> None:
    waiting.may_answer.set()
    for number in (1, 2):
        answer = stub.SubmitReports(report_pb2.SubmitReportsRequest(round=number), timeout=TIMEOUT)
        assert list(answer.statuses) == [number]


def test_too_large_is_told_from_too_much(
    stub: report_pb2_grpc.ReportServiceStub, waiting: Waiting
) -> None:
    request = report_pb2.SubmitReportsRequest(sealed=bytes(LARGEST + 1))
    with pytest.raises(grpc.RpcError) as raised:
        stub.SubmitReports(request, timeout=TIMEOUT)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert reason(raised.value) == "REFUSAL_REASON_MESSAGE_TOO_LARGE"


def test_too_much_is_pushed_back_and_those_within_are_answered(
    stub: report_pb2_grpc.ReportServiceStub, waiting: Waiting
) -> None:
    request = report_pb2.SubmitReportsRequest(round=1)
    within = [stub.SubmitReports.future(request, timeout=TIMEOUT) for _ in range(MOST)]
    for _ in within:
        assert waiting.begun.acquire(timeout=TIMEOUT)
    with pytest.raises(grpc.RpcError) as raised:
        stub.SubmitReports(request, timeout=TIMEOUT)
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reason(raised.value) == "REFUSAL_REASON_OVERLOADED"
    assert dict(raised.value.trailing_metadata())["grpc-retry-pushback-ms"]
    waiting.may_answer.set()
    assert [list(call.result().statuses) for call in within] == [[1]] * MOST


@pytest.mark.parametrize("address", [True], ids=["known"], indirect=True)
def test_calls_that_stall_are_given_up(address: str) -> None:
    """So are those that end without a message."""
    with Stalls(address, PATH, None) as stalls, Stalls(address, PATH, None) as ends:
        stalls.begin(10, b"\0\0\0\1\0")
        ends.begin(80, b"", end=True)
        assert soon(lambda: stalls.ended() == 10)
        assert soon(lambda: ends.ended() == 80)
