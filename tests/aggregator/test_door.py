"""The door of a real server: by gRPC's own ways, and where those are not known."""

import gc
import hashlib
import inspect
import threading
from collections.abc import Iterator
from concurrent import futures
from operator import attrgetter

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc import _server
from grpc_status import rpc_status

from hubbub.v1 import report_pb2, report_pb2_grpc
from hubbub_aggregator import arrivals
from hubbub_aggregator.backlog import SHORTEST_PUSHBACK, Backlog
from hubbub_aggregator.door import Door, GoOn, Line
from hubbub_aggregator.listeners import SUBMIT
from tests.devices import soon
from tests.flood import Stalls

TIMEOUT = 30
LARGEST = 10_000
STREAMS = 100

# How a call comes to its message and to its end in gRPC, read and found to be as arrivals.py takes
# it. Where a new version differs, read it, see that all tests of overload hold, and note it here.
READ = {
    "_RequestIterator._raise_or_start_receive_message": "38947171",
    "_abort": "a796276e",
    "_call_behavior": "9fac2c4d",
    "_handle_call": "5b649ce7",
    "_handle_stream_unary": "994f8d48",
    "_handle_with_method_handler": "56042d75",
    "_possibly_finish_call": "b76de9a9",
    "_process_event_and_continue": "f784ec5c",
    "_receive_message": "1aad7990",
    "_select_thread_pool_for_behavior": "99f0328a",
    "_unary_response_in_pool": "d2ee206d",
}


def test_this_grpc_is_one_whose_ways_are_known() -> None:
    assert arrivals.KNOWN
    found = {
        name: hashlib.sha256(inspect.getsource(attrgetter(name)(_server)).encode()).hexdigest()[:8]
        for name in READ
    }
    assert found == READ


class Service(report_pb2_grpc.ReportServiceServicer):
    """Answers when it may."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def SubmitReports(
        self, request: report_pb2.SubmitReportsRequest, context: grpc.ServicerContext
    ) -> report_pb2.SubmitReportsResponse:
        self.begun.set()
        assert self.may_end.wait(TIMEOUT)
        return report_pb2.SubmitReportsResponse(statuses=request.sealed)


class Served:
    """A server that takes one request of each kind at once."""

    def __init__(self) -> None:
        self.service = Service()
        self.backlog, self.batches = Backlog(1), Backlog(1)
        self.refused: list[str] = []
        line = Line(futures.ThreadPoolExecutor(2), self.backlog, self.batches)
        self.door = Door(lambda method: line, LARGEST)
        self.door.on_refusal = self.refused.append
        self.server = grpc.server(
            futures.ThreadPoolExecutor(1),
            interceptors=[self.door],
            options=(("grpc.max_concurrent_streams", STREAMS),),
        )
        report_pb2_grpc.add_ReportServiceServicer_to_server(self.service, self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.door.receiver.start()
        self.server.start()
        self.address = f"127.0.0.1:{port}"
        self.channel = grpc.insecure_channel(self.address)
        self.stub = report_pb2_grpc.ReportServiceStub(self.channel)

    def assert_refused(self, size: int, code: grpc.StatusCode, reason: str) -> bool:
        """A request of so many bytes; tells whether it is asked to come again."""
        with pytest.raises(grpc.RpcError) as raised:
            self.stub.SubmitReports(
                report_pb2.SubmitReportsRequest(sealed=bytes(size)), timeout=TIMEOUT
            )
        assert raised.value.code() is code
        status = rpc_status.from_call(raised.value)
        assert status is not None
        info, retry = ErrorInfo(), RetryInfo()
        assert status.details[0].Unpack(info)
        assert info.reason == "REFUSAL_REASON_" + reason
        assert self.refused.pop() == info.reason
        again = any(detail.Unpack(retry) for detail in status.details)
        if again:
            seconds = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
            assert seconds >= SHORTEST_PUSHBACK
            metadata = dict(raised.value.trailing_metadata())
            assert 0 <= int(metadata["grpc-retry-pushback-ms"]) - seconds * 1_000 < 1
        return again

    def close(self) -> None:
        self.service.may_end.set()
        self.channel.close()
        self.server.stop(None).wait()
        self.door.receiver.close()


@pytest.fixture(params=[True, False], ids=["known", "not known"])
def served(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for module in ("arrivals", "door"):
        monkeypatch.setattr(f"hubbub_aggregator.{module}.KNOWN", request.param)
    served = Served()
    yield served
    served.close()


def test_a_call_is_answered(served: Served) -> None:
    served.service.may_end.set()
    for _ in range(3):
        request = report_pb2.SubmitReportsRequest(sealed=b"\1\2")
        answer = served.stub.SubmitReports(request, timeout=TIMEOUT)
        assert list(answer.statuses) == [1, 2]
    assert not served.refused


def test_overload_is_pushed_back(served: Served) -> None:
    first = served.stub.SubmitReports.future(report_pb2.SubmitReportsRequest(), timeout=TIMEOUT)
    assert served.service.begun.wait(TIMEOUT)
    for _ in range(3):
        assert served.assert_refused(10, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    served.service.may_end.set()
    assert first.result(TIMEOUT) is not None
    # There is room again.
    served.stub.SubmitReports(report_pb2.SubmitReportsRequest(), timeout=TIMEOUT)


def test_overload_is_pushed_back_when_its_size_is_known(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served.backlog, "enter", lambda size: False)
    assert served.assert_refused(10, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")


def test_batches_keep_nobody_else_away(served: Served) -> None:
    first = served.stub.SubmitReports.future(
        report_pb2.SubmitReportsRequest(sealed=bytes(8_000)), timeout=TIMEOUT
    )
    assert served.service.begun.wait(TIMEOUT)
    assert served.assert_refused(8_000, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    served.service.may_end.set()
    assert first.result(TIMEOUT) is not None
    served.service.may_end.clear()
    # One of the other kind is let in while a batch is in hand, and counts for itself.
    batch = served.stub.SubmitReports.future(
        report_pb2.SubmitReportsRequest(sealed=bytes(8_000)), timeout=TIMEOUT
    )
    assert soon(lambda: served.batches.requests == 1)
    single = served.stub.SubmitReports.future(
        report_pb2.SubmitReportsRequest(sealed=b"\1"), timeout=TIMEOUT
    )
    assert soon(lambda: served.backlog.requests == 1)
    assert served.assert_refused(10, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    served.service.may_end.set()
    assert list(single.result(TIMEOUT).statuses) == [1]
    assert batch.result(TIMEOUT) is not None


def test_what_is_too_large_is_refused_for_good(served: Served) -> None:
    invalid = grpc.StatusCode.INVALID_ARGUMENT
    assert not served.assert_refused(LARGEST + 1, invalid, "MESSAGE_TOO_LARGE")
    served.service.may_end.set()
    served.stub.SubmitReports(report_pb2.SubmitReportsRequest(), timeout=TIMEOUT)


class Begun:
    """Calls that are begun, and go on when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[report_pb2.SubmitReportsRequest, GoOn]] = []
        self.takes = True

    def begin(self, request: report_pb2.SubmitReportsRequest, go_on: GoOn) -> bool:
        if self.takes:
            self.waiting.append((request, go_on))
        return self.takes

    def go_on(self) -> None:
        for request, go_on in self.waiting:
            go_on(lambda _, one=request: report_pb2.SubmitReportsResponse(statuses=one.sealed))
        self.waiting.clear()


@pytest.mark.parametrize("served", [True], indirect=True)
def test_calls_that_wait_hold_no_thread(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many: here there are two."""
    begun = Begun()
    served.door.begin[SUBMIT] = begun.begin
    monkeypatch.setattr(served.backlog, "_most", 1_000)
    for _ in range(3):
        calls = [
            served.stub.SubmitReports.future(
                report_pb2.SubmitReportsRequest(sealed=bytes([number])), timeout=TIMEOUT
            )
            for number in range(90)
        ]
        assert soon(lambda: len(begun.waiting) == 90)
        assert served.backlog.requests == 90
        begun.go_on()
        assert [list(call.result(TIMEOUT).statuses) for call in calls] == [[n] for n in range(90)]
        assert soon(lambda: served.backlog.requests == 0)
    # Another kind of request still gets one.
    begun.takes = False
    served.service.may_end.set()
    served.stub.SubmitReports(report_pb2.SubmitReportsRequest(), timeout=TIMEOUT)
    assert served.service.begun.is_set()


@pytest.mark.parametrize("served", [True], indirect=True)
def test_a_call_that_is_gone_when_it_goes_on_is_ended(served: Served) -> None:
    begun = Begun()
    served.door.begin[SUBMIT] = begun.begin
    call = served.stub.SubmitReports.future(report_pb2.SubmitReportsRequest(), timeout=TIMEOUT)
    assert soon(lambda: len(begun.waiting) == 1)
    call.cancel()
    # The server has heard of it when it answers another.
    begun.takes = False
    served.service.may_end.set()
    assert served.assert_refused(10, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    begun.go_on()
    assert not served.backlog.requests
    served.stub.SubmitReports(report_pb2.SubmitReportsRequest(), timeout=TIMEOUT)


@pytest.mark.parametrize("served", [True], indirect=True)
def test_calls_that_stall_are_given_up(served: Served) -> None:
    """So are those that end without a message."""
    with (
        Stalls(served.address, SUBMIT, None) as stalls,
        Stalls(served.address, SUBMIT, None) as ends,
    ):
        stalls.begin(10, b"\0\0\0\1\0")
        ends.begin(10, b"", end=True)
        assert soon(lambda: served.door.receiver.under_way == 20)
        # As when it is to stop; else it would have to be waited for ten seconds.
        served.door.receiver.hurry()
        assert soon(lambda: stalls.ended() == 10)
        assert soon(lambda: ends.ended() == 10)
    assert served.door.receiver.under_way == 0
    assert not served.backlog.requests


@pytest.mark.parametrize("served", [True], indirect=True)
@pytest.mark.parametrize("begun", [b"", b"\0\0\0\1\0"])
def test_calls_that_are_cancelled_before_their_message_is_there_make_room(
    served: Served, begun: bytes
) -> None:
    """At once, for others on their connection."""
    most = 10
    gc.disable()
    try:
        with Stalls(served.address, SUBMIT, None) as stalls:
            for _ in range(STREAMS // most + 1):
                stalls.begin(most, begun)
                assert soon(lambda: served.door.receiver.under_way == most)
                assert not stalls.ended()
                stalls.cancel()
                assert soon(lambda: served.door.receiver.under_way == 0)
    finally:
        gc.enable()
