"""Uploading: the same bytes at every try, one fate for every report, and no way to get stuck."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import DebugInfo, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status as Status_

import hubbub
from hubbub import GrpcTransport, Outcome
from hubbub.bundle import SealingSuite
from hubbub.ledger import Ledger
from hubbub.rows import Status
from hubbub.transport import Refused
from hubbub.upload import FINAL, LOCAL_PAUSE, LONGEST_PAUSE, RPC_TIMEOUT, SETTLED
from hubbub.v1 import contract_pb2, report_pb2, report_pb2_grpc
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import (
    COUNTED,
    DUPLICATE,
    HASTY,
    NOT_CANONICAL,
    NOT_OPENED,
    PATIENCE,
    Clock,
    Device,
    Opener,
    Paced,
    Receiver,
    Submission,
    departures,
    entries,
    soon,
    unreachable,
)
from tests.processes import ServeProcess
from tests.systems import needs_fork

NAME = "health.self_rated"


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return make_bundle(operator)


# The wire's numbers.


def test_the_numbers_are_those_of_the_wire() -> None:
    assert {COUNTED, DUPLICATE, NOT_OPENED, NOT_CANONICAL} == set(SETTLED)
    assert {report_pb2.ReportStatus.Name(number): status for number, status in SETTLED.items()} == {  # type: ignore[arg-type]
        "REPORT_STATUS_COUNTED": Status.COUNTED,
        "REPORT_STATUS_DUPLICATE": Status.COUNTED,
        "REPORT_STATUS_NOT_OPENED": Status.REFUSED,
        "REPORT_STATUS_NOT_CANONICAL": Status.REFUSED,
    }
    assert len(report_pb2.ReportStatus.keys()) == 1 + len(SETTLED)
    for suite in SealingSuite:
        name = contract_pb2.SealingSuite.Name(suite.value)  # type: ignore[arg-type]
        assert name == f"SEALING_SUITE_{suite.name}_HKDF_SHA256_AES128GCM"
    assert len(contract_pb2.SealingSuite.keys()) == 1 + len(SealingSuite)


def test_every_reason_to_refuse_is_final_or_is_tried_again() -> None:
    later = {"UNKNOWN_DIGEST", "ROUND_NOT_OPEN", "UNKNOWN_KEY", "STORE_UNAVAILABLE", "OVERLOADED"}
    names = {
        name.removeprefix("REFUSAL_REASON_")
        for name, number in report_pb2.RefusalReason.items()
        if number
    }
    # No device sends plain reports.
    assert names - {"PLAIN_NOT_TAKEN"} == later | set(FINAL)
    assert not later & set(FINAL)


# The same report, the same bytes.


def test_a_retry_is_byte_identical(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """Within a process, after a restart, and from another process that looked before."""
    receiver = unreachable()
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        client.flush(0.05)
    for _ in range(3):
        with Device(bundle, tmp_path, transport=receiver) as client:
            assert not client.flush(0.05)
    assert len(receiver.submissions) > 3
    assert len(set(receiver.submissions)) == 1


def test_two_processes_send_the_same_bytes(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """Both look at the outbox before either seals: the bytes of the first are sent by both."""
    with Device(bundle, tmp_path) as client:
        client.metric(NAME).record("good")
    ledgers = [Ledger.open(str(tmp_path)) for _ in range(2)]
    outboxes = [ledger.outbox()[0] for ledger in ledgers]
    sent = [
        ledger.depart(entry, b"k" * 8, sealed, "localhost:1", 1_000)
        for ledger, entry, sealed in zip(ledgers, outboxes, (b"one", b"two"), strict=True)
    ]
    assert sent == [b"one", b"one"]
    # To another key it is sealed again.
    assert ledgers[0].depart(outboxes[0], b"n" * 8, b"three", "localhost:1", 1_000) == b"three"
    ledgers[1].settle(outboxes[1], Status.COUNTED)
    assert ledgers[0].depart(outboxes[0], b"n" * 8, b"four", "localhost:1", 1_000) is None
    # An answer that comes later changes nothing any more.
    ledgers[0].settle(outboxes[0], Status.REFUSED)
    for ledger in ledgers:
        ledger.close()
    assert [entry.status for entry in entries(tmp_path)] == [Status.COUNTED]


def test_after_a_key_rotation_the_same_report_is_sealed_again(
    operator: Operator, tmp_path: Path
) -> None:
    other = Operator.create(tmp_path / "other")
    old_keys, new_keys = operator.sealing_keys, other.sealing_keys
    receiver, state = unreachable(), tmp_path / "state"
    with Device(make_bundle(operator), state, transport=receiver) as client:
        client.metric(NAME).record("good")
        client.flush(0.05)
    before = receiver.submissions[-1]
    # A newer key is listed before the old one: what is sealed already goes out as it is.
    both = make_bundle(operator, revision=2, sealing_keys=[*new_keys, *old_keys])
    with Device(both, state, transport=receiver) as client:
        client.flush(0.05)
    assert receiver.submissions[-1] == before
    # The old one is listed no longer.
    rotated = make_bundle(operator, revision=3, sealing_keys=new_keys)
    receiver.answers.clear()
    with Device(rotated, state, transport=receiver) as client:
        assert client.flush(1)
        assert client.metric(NAME).record("poor") is Outcome.ALREADY_ANSWERED
    after = receiver.submissions[-1]
    assert (before.key_id, after.key_id) == (old_keys[0].key_id, new_keys[0].key_id)
    assert before.sealed != after.sealed
    assert Opener(operator)(before) == Opener(other)(after)
    assert [entry.status for entry in entries(state)] == [Status.COUNTED]
    # Its owner sees both, byte for byte.
    assert {(departure.key_id, departure.sealed) for departure in departures(state)} == {
        (before.key_id, before.sealed),
        (after.key_id, after.sealed),
    }


def test_what_is_sent_is_what_the_ledger_shows(operator: Operator, tmp_path: Path) -> None:
    metric = make_metric(values=[f"v{n}" for n in range(100)], mechanism="optimised-unary")
    bundle, receiver = make_bundle(operator, metric), Receiver(destination="localhost:1")
    with Device(bundle, tmp_path, clock=Clock(1_234.9), transport=receiver) as client:
        client.metric(NAME).record("v3")
        assert client.flush()
    (entry,), (submission,) = entries(tmp_path), receiver.submissions
    assert entry.report == Opener(operator)(submission)
    assert submission.digest == entry.digest == bundle.metrics[NAME].digest
    assert submission.round == entry.round == 0
    assert entry.recorded_at == 1_234
    (departure,) = departures(tmp_path)
    assert departure[:3] == entry[:3]
    assert departure.sealed == submission.sealed
    assert (departure.destination, departure.left_at) == ("localhost:1", 1_234)


# Fates.


@pytest.mark.parametrize(
    ("answer", "fate"),
    [
        ([COUNTED], Status.COUNTED),
        ([DUPLICATE], Status.COUNTED),
        ([NOT_OPENED], Status.REFUSED),
        ([NOT_CANONICAL], Status.REFUSED),
        (Refused("ROUND_CLOSED"), Status.EXPIRED),
        (Refused("NO_SUCH_ROUND"), Status.REFUSED),
        (Refused("WRONG_LENGTH"), Status.REFUSED),
        (Refused("TOO_MANY_REPORTS"), Status.REFUSED),
    ],
    ids=str,
)
def test_a_final_answer_settles_a_report(
    bundle: hubbub.Bundle, tmp_path: Path, answer: Any, fate: Status
) -> None:
    receiver = Receiver(answer)
    with Device(bundle, tmp_path, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert client.flush()
        assert client.flush()
        assert client.metric(NAME).record("good") is Outcome.ALREADY_ANSWERED
    assert len(receiver.submissions) == 1
    assert [entry.status for entry in entries(tmp_path)] == [fate]


@pytest.mark.parametrize(
    "answer",
    [
        *(Refused(reason) for reason in ("UNKNOWN_DIGEST", "ROUND_NOT_OPEN", "UNKNOWN_KEY")),
        *(Refused(reason) for reason in ("STORE_UNAVAILABLE", "OVERLOADED", "UNAVAILABLE", "")),
        *([], [COUNTED, COUNTED], [0], [5], [-1], [1 << 40], None, 7, "1", [None], [[1]], [{}]),
        *(RuntimeError("no"), ValueError("no"), TypeError("no"), OSError("no"), KeyError("no")),
    ],
    ids=str,
)
def test_anything_else_is_tried_again_with_the_same_bytes(
    bundle: hubbub.Bundle, tmp_path: Path, answer: Any
) -> None:
    receiver = Receiver(answer)
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert client.flush(PATIENCE)
    assert len(receiver.submissions) == 2
    assert len(set(receiver.submissions)) == 1
    assert [entry.status for entry in entries(tmp_path)] == [Status.COUNTED]


def test_one_report_s_trouble_keeps_no_other_back(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, *(make_metric(name) for name in "abc"))

    def choosy(submission: Submission) -> list[int]:
        if submission.digest == bundle.metrics["a"].digest:
            raise RuntimeError("no")
        return [COUNTED]

    receiver = Receiver(*[choosy] * 3)
    with Device(bundle, tmp_path, transport=receiver) as client:
        for name in "abc":
            client.metric(name).record("good")
        client.flush(0.5)
        assert [waiting.metric for waiting in client.preview()] == ["a"]


# The thread.


def test_reports_leave_by_themselves(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    receiver = Receiver(Refused("UNAVAILABLE"), Refused("OVERLOADED", 0.001), [])
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert soon(lambda: not client.preview())
    assert len(receiver.submissions) == 4
    assert len(set(receiver.submissions)) == 1


def test_what_waits_leaves_after_the_next_start(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    with Device(bundle, tmp_path) as client:
        client.metric(NAME).record("good")
    receiver, later = Receiver(), Clock(1_000)
    with Device(bundle, tmp_path, clock=later, transport=receiver) as client:
        assert soon(lambda: not client.preview())
    assert len(receiver.submissions) == 1


def test_the_thread_ends_with_its_work_and_starts_anew(operator: Operator, tmp_path: Path) -> None:
    bundle, clock = make_bundle(operator, make_metric(periodic=(1_000, 20, 0))), Clock(0)
    receiver = Receiver()
    with Device(bundle, tmp_path, clock=clock, source=HASTY, transport=receiver) as client:
        for number in range(8):
            clock.now = 1_000 * number
            assert client.metric(NAME).record("good")
            assert soon(lambda: not client.preview())
            if number % 2:
                assert soon(lambda: not _threads())
    assert len(receiver.submissions) == 8
    assert not _threads()


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hubbub"]


def test_no_report_is_forgotten_between_two_looks(operator: Operator, tmp_path: Path) -> None:
    """Recorded at every moment of the thread's life, each report finds it or a new one."""
    n = 60
    bundle = make_bundle(operator, make_metric(epsilon="0.01", periodic=(1_000, n, 0)))
    clock, receiver = Clock(0), Receiver()
    with Device(bundle, tmp_path, clock=clock, source=HASTY, transport=receiver) as client:
        for number in range(n):
            clock.now = 1_000 * number
            assert client.metric(NAME).record("good")
            if number % 3:
                time.sleep(0.0005 * (number % 7))
        assert soon(lambda: not client.preview())
    assert len({submission.round for submission in receiver.submissions}) == n


def test_nothing_is_woken_when_off_or_closed(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    receiver = Receiver()
    with Device(bundle, tmp_path, transport=receiver) as client:
        client.metric(NAME).record("good")
    Device(bundle, tmp_path, enabled=False, source=HASTY, transport=receiver).close()
    assert receiver.submissions == []
    assert [entry.status for entry in entries(tmp_path)] == [Status.WITHDRAWN]


class Gate:
    """Holds a submission back until the test lets it through."""

    def __init__(self) -> None:
        self.arrived, self.let_through = threading.Event(), threading.Event()

    def __call__(self, _: Submission) -> list[int]:
        self.arrived.set()
        assert self.let_through.wait(PATIENCE)
        return [COUNTED]


def test_flushing_while_the_thread_is_sending(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    gate = Gate()
    receiver = Receiver(gate)
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert gate.arrived.wait(PATIENCE)
        assert not client.flush(0.01)
        gate.let_through.set()
        assert client.flush(PATIENCE)
    assert len(receiver.submissions) == 1


def test_recording_never_waits_for_the_network(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, make_metric("a"), make_metric("b"))
    gate = Gate()
    with Device(bundle, tmp_path, source=HASTY, transport=Receiver(gate)) as client:
        client.metric("a").record("good")
        assert gate.arrived.wait(PATIENCE)
        assert client.metric("b").record("good") is Outcome.STORED
        assert [waiting.metric for waiting in client.preview()] == ["a", "b"]
        gate.let_through.set()


def test_closing_while_the_thread_is_sending(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer comes when nobody can note it; the next start asks again and is told."""
    monkeypatch.setattr("hubbub.client._CLOSE_SECONDS", 0.01)
    gate = Gate()
    receiver = Receiver(gate)
    client = Device(bundle, tmp_path, source=HASTY, transport=receiver)
    client.metric(NAME).record("good")
    assert gate.arrived.wait(PATIENCE)
    client.close()
    gate.let_through.set()
    assert soon(lambda: not _threads())
    assert [entry.status for entry in entries(tmp_path)] == [Status.SENT]
    receiver.answers[:] = [[DUPLICATE]]
    with Device(bundle, tmp_path, transport=receiver) as client:
        assert client.flush()
    assert len(set(receiver.submissions)) == 1
    assert [entry.status for entry in entries(tmp_path)] == [Status.COUNTED]


def test_turning_off_while_a_report_is_under_way(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    gate = Gate()
    receiver = Receiver(gate)
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert gate.arrived.wait(PATIENCE)
        client.enabled = False
        gate.let_through.set()
        assert soon(lambda: not _threads())
    assert [entry.status for entry in entries(tmp_path)] == [Status.WITHDRAWN]
    assert len(receiver.submissions) == 1


def test_turning_off_stops_the_rest(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, *(make_metric(name) for name in "abc"))
    gate = Gate()
    receiver = Receiver(gate)
    with Device(bundle, tmp_path, transport=receiver) as client:
        for name in "abc":
            client.metric(name).record("good")
        flushed: list[bool] = []
        flushing = threading.Thread(target=lambda: flushed.append(client.flush(PATIENCE)))
        flushing.start()
        assert gate.arrived.wait(PATIENCE)
        client.enabled = False
        client.enabled = True
        gate.let_through.set()
        flushing.join()
    assert len(receiver.submissions) == 1


def test_a_flush_keeps_its_time(operator: Operator, tmp_path: Path) -> None:
    """No try is given more than what is left, and none begins after the end."""
    bundle = make_bundle(operator, *(make_metric(f"m{n}", epsilon="0.1") for n in range(20)))

    def slow(_: Submission) -> list[int]:
        time.sleep(0.02)
        raise Refused("DEADLINE_EXCEEDED")

    receiver = Receiver(*[slow] * 100)
    with Device(bundle, tmp_path, transport=receiver) as client:
        for n in range(20):
            client.metric(f"m{n}").record("good")
        assert not client.flush(0.1)
        assert len(receiver.submissions) <= 5
        assert all(0 < timeout <= 0.1 for timeout in receiver.timeouts)
        assert not client.flush(0)
        assert not client.flush(-1)
        assert len(receiver.submissions) <= 5


def test_a_flush_may_take_as_long_as_it_takes(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    receiver = unreachable(5)
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert client.flush(float("inf"))
    assert len(receiver.submissions) == 6


# Pauses.


class Limits(Paced):
    """Pauses of no time, with what each could have been at most, in seconds."""

    def __init__(self) -> None:
        super().__init__(long=False)
        self.seen: list[float] = []

    def below(self, n: int) -> int:
        if n > 1_000:
            self.seen.append((n - 1) / 1_000)
        return super().below(n)


def test_pauses_double_up_to_an_hour(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    limits, receiver = Limits(), unreachable(15)
    with Device(bundle, tmp_path, source=limits, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert soon(lambda: not client.preview())
    doubled = [min(2.0**n, LONGEST_PAUSE) for n in range(15)]
    assert limits.seen == doubled
    assert {*receiver.timeouts} == {RPC_TIMEOUT}


def test_the_aggregator_s_pushback_is_heeded_within_reason(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    class Signals(SimpleQueue[None]):
        """Nobody signals, and time passes at once."""

        def put(self, item: None, block: bool = True, timeout: float | None = None) -> None: ...

        def get(self, block: bool = True, timeout: float | None = None) -> None:
            if timeout is not None:
                waited.append(timeout)
                stopwatch.now += timeout
            raise Empty

    stopwatch = Clock(0)
    monkeypatch.setattr("hubbub.upload.SimpleQueue", Signals)
    monkeypatch.setattr("hubbub.upload.time", SimpleNamespace(monotonic=stopwatch))
    pushbacks = (7.5, 1e9, 1e300, float("inf"), 0.0)
    receiver = Receiver(*(Refused("OVERLOADED", pushback) for pushback in pushbacks))
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert soon(lambda: not client.preview())
    assert waited == [7.5, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE, 0.0]


def test_a_full_disk_delays_the_thread_and_does_not_end_it(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([True] * 3)
    honest = Ledger.depart

    def depart(*arguments: Any) -> bytes | None:
        if next(failures, False):
            raise hubbub.StateUnavailable("ledger.sqlite3", "database or disk is full")
        return honest(*arguments)

    monkeypatch.setattr(Ledger, "depart", depart)
    receiver = Receiver()
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        client.metric(NAME).record("good")
        assert soon(lambda: not client.preview())
    assert len(receiver.submissions) == 1


class TestAStateThatCannotBeWritten:
    """Tries go on every few seconds, where nothing leaves the device by them."""

    def test_is_tried_again_soon(
        self, bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        full = _full_disk(monkeypatch, "drop_old", 1)
        still = _full_disk(monkeypatch, "require_writable", 20)
        limits, receiver = Limits(), unreachable(2)
        with Device(bundle, tmp_path, source=limits, transport=receiver) as client:
            client.metric(NAME).record("good")
            assert soon(lambda: not client.preview())
        assert (full(), still()) == (0, 0)
        # Then the network has its turn, and is as patient as if nothing had been.
        assert limits.seen == [LOCAL_PAUSE] * 21 + [1, 2]
        assert len(receiver.submissions) == 3

    def test_does_not_trouble_the_aggregator(
        self, bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What became of a report cannot be noted: it leaves again when it can be, or seldom."""
        _full_disk(monkeypatch, "settle", 3)
        _full_disk(monkeypatch, "require_writable", 20)
        limits, receiver = Limits(), Receiver()
        with Device(bundle, tmp_path, source=limits, transport=receiver) as client:
            client.metric(NAME).record("good")
            assert soon(lambda: not client.preview())
        assert limits.seen == [1] + [LOCAL_PAUSE] * 20 + [2, 4]
        assert len(receiver.submissions) == 4


def _full_disk(monkeypatch: pytest.MonkeyPatch, what: str, times: int) -> Callable[[], int]:
    """Something of the ledger fails so often; tells how often it will still."""
    honest, left = getattr(Ledger, what), times

    def fail(*arguments: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise hubbub.StateUnavailable("ledger.sqlite3", "database or disk is full")
        return honest(*arguments)

    monkeypatch.setattr(Ledger, what, fail)
    return lambda: left


# gRPC, really.


class Service(report_pb2_grpc.ReportServiceServicer):
    """Answers as it is told, over a real TLS connection."""

    def __init__(self) -> None:
        self.answer: Callable[[grpc.ServicerContext], list[int]] = lambda _: [COUNTED]
        self.requests: list[report_pb2.SubmitReportsRequest] = []

    def SubmitReports(
        self, request: report_pb2.SubmitReportsRequest, context: grpc.ServicerContext
    ) -> report_pb2.SubmitReportsResponse:
        self.requests.append(request)
        statuses: Any = self.answer(context)
        return report_pb2.SubmitReportsResponse(statuses=statuses)


@pytest.fixture
def served(operator: Operator) -> Any:
    """A service on a port of its own, and a transport to it."""
    service, server = Service(), grpc.server(ThreadPoolExecutor(4))
    report_pb2_grpc.add_ReportServiceServicer_to_server(service, server)
    credentials = grpc.ssl_server_credentials(
        [
            (
                (operator.folder / "server.key").read_bytes(),
                (operator.folder / "server.crt").read_bytes(),
            )
        ]
    )
    port = server.add_secure_port("localhost:0", credentials)
    server.start()
    authority = (operator.folder / "ca.crt").read_bytes()
    yield service, f"localhost:{port}", authority
    server.stop(None).wait()


def abort(code: grpc.StatusCode, details: bytes | None) -> Callable[..., list[int]]:
    def answer(context: grpc.ServicerContext) -> list[int]:
        if details is not None:
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
        context.abort(code, "no")

    return answer


def rich(*details: Message) -> bytes:
    """An encoded google.rpc.Status, as grpcio-status makes it."""
    status = Status_(code=9, message="no")
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    encoded: bytes = status.SerializeToString()
    return encoded


def info(reason: str) -> ErrorInfo:
    return ErrorInfo(reason=reason, domain="hubbub")


def retry(seconds: int, nanos: int = 0) -> RetryInfo:
    return RetryInfo(retry_delay=duration_pb2.Duration(seconds=seconds, nanos=nanos))


def test_what_the_wire_carries(served: Any) -> None:
    service, endpoint, authority = served
    transport = GrpcTransport(endpoint, authority)
    assert list(transport.submit(b"d" * 32, 7, b"k" * 8, b"sealed", PATIENCE)) == [COUNTED]
    assert service.requests == [
        report_pb2.SubmitReportsRequest(
            digest=b"d" * 32, round=7, key_id=b"k" * 8, sealed=b"sealed"
        )
    ]
    transport.close()
    with pytest.raises(Refused, match="CLOSED"):
        transport.submit(b"d" * 32, 7, b"k" * 8, b"sealed", PATIENCE)


def test_a_transport_closed_before_its_first_use_opens_nothing(served: Any) -> None:
    service, endpoint, authority = served
    transport = GrpcTransport(endpoint, authority)
    transport.close()
    with pytest.raises(Refused, match="CLOSED"):
        transport.submit(b"", 0, b"", b"", PATIENCE)
    assert service.requests == []


@pytest.mark.parametrize(
    ("details", "reason", "pushback"),
    [
        (rich(info("REFUSAL_REASON_ROUND_CLOSED")), "ROUND_CLOSED", 0.0),
        (rich(info("REFUSAL_REASON_OVERLOADED"), retry(1, 500_000_000)), "OVERLOADED", 1.5),
        (rich(retry(7), ErrorInfo(reason="NEW", metadata={"a": "b"})), "NEW", 7.0),
        (rich(DebugInfo(detail="x"), retry(0)), "INTERNAL", 0.0),
        (rich(retry(-1)), "INTERNAL", float((1 << 64) - 1)),
        (rich(), "INTERNAL", 0.0),
        (None, "INTERNAL", 0.0),
        *((garbage, "INTERNAL", 0.0) for garbage in (b"", b"\xff", b"\x1a\x05\x0a\xff", b"x" * 99)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refusals(served: Any, details: bytes | None, reason: str, pushback: float) -> None:
    service, endpoint, authority = served
    service.answer = abort(grpc.StatusCode.INTERNAL, details)
    transport = GrpcTransport(endpoint, authority)
    with pytest.raises(Refused) as caught:
        transport.submit(b"", 0, b"", b"", PATIENCE)
    transport.close()
    assert (caught.value.reason, caught.value.pushback) == (reason, pushback)


def test_no_answer_in_time(served: Any) -> None:
    service, endpoint, authority = served
    gate = threading.Event()

    def hang(_: object) -> list[int]:
        gate.wait(PATIENCE)
        return []

    service.answer = hang
    transport = GrpcTransport(endpoint, authority)
    with pytest.raises(Refused, match="DEADLINE_EXCEEDED"):
        transport.submit(b"", 0, b"", b"", 0.2)
    gate.set()
    transport.close()


def test_only_the_bundle_s_authority_is_trusted(served: Any, tmp_path: Path) -> None:
    service, endpoint, _ = served
    stranger = Operator.create(tmp_path / "stranger")
    transport = GrpcTransport(endpoint, (stranger.folder / "ca.crt").read_bytes())
    with pytest.raises(Refused, match=r"UNAVAILABLE|DEADLINE"):
        transport.submit(b"", 0, b"", b"", 5.0)
    transport.close()
    assert service.requests == []


def test_closing_a_client_ends_its_call(operator: Operator, served: Any, tmp_path: Path) -> None:
    """Its own transport's call is cancelled, so that closing does not wait for a lost one."""
    service, endpoint, _ = served
    arrived, gate = threading.Event(), threading.Event()

    def hang(_: object) -> list[int]:
        arrived.set()
        gate.wait(PATIENCE)
        return []

    service.answer = hang
    bundle = make_bundle(operator, endpoint=endpoint)
    client = Device(bundle, tmp_path, source=HASTY, transport=None)
    client.metric(NAME).record("good")
    assert arrived.wait(PATIENCE)
    client.close()
    assert not _threads()
    gate.set()
    assert [entry.status for entry in entries(tmp_path)] == [Status.SENT]


FORKED = """
import os, sys
from hubbub import Client
file, key, state = sys.argv[1:]
client = Client(file, operator_key=key, state_dir=state, budgets={"health": "8"})
def send(name):
    return bool(client.metric(name).record("good")) and client.flush(20)
sent = [send("a")]
for name in "bc":
    child = os.fork()
    if child == 0:
        sent = send(name)
        client.close()
        os._exit(sent)
    sent.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sent.append(send("d"))
client.close()
print(*map(int, sent))
"""


@needs_fork
def test_children_send_over_connections_of_their_own(
    operator: Operator, served: Any, tmp_path: Path
) -> None:
    service, endpoint, _ = served
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric(name) for name in "abcd"], endpoint=endpoint))
    ran = subprocess.run(
        [sys.executable, "-c", FORKED, str(file), operator.key, str(tmp_path / "state")],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout == "1 1 1 1\n"
    assert {entry.status for entry in entries(tmp_path / "state")} == {Status.COUNTED}
    assert len({request.digest for request in service.requests}) == 4


# The aggregator, really.


def test_a_real_aggregator(operator: Operator, tmp_path: Path) -> None:
    """Counted, a duplicate, a round that is closed, a metric it does not know."""
    once = make_metric(NAME)
    over = make_metric("over", starts=0, ends=1_000)
    unknown = make_metric("unknown")
    file, state = tmp_path / "metrics.hubbub", tmp_path / "state"
    file.write_bytes(operator.sign([once, over]))
    with ServeProcess(operator, file, tmp_path / "store.sqlite3") as server:
        endpoint = f"localhost:{server.public.rpartition(':')[2]}"
        bundle = make_bundle(operator, once, over, unknown, endpoint=endpoint)
        transport = Lossy(endpoint, bundle.certificate_authority)
        with Device(bundle, state, transport=transport) as client:
            assert client.metric(NAME).record("good")
            assert not client.flush(1)
        transport.close()
        assert [entry.status for entry in entries(state)] == [Status.SENT]
        with Device(bundle, state, transport=None) as client:
            assert client.metric("over").record("good")
            assert client.metric("unknown").record("good")
            assert not client.flush(1)
    fates = {entry.metric: entry.status for entry in entries(state)}
    assert fates == {NAME: Status.COUNTED, "over": Status.EXPIRED, "unknown": Status.SENT}


class Lossy(GrpcTransport):
    """Loses the answers on their way back."""

    def submit(self, *arguments: Any, **named: Any) -> Any:
        assert list(super().submit(*arguments, **named)) == [COUNTED]
        raise Refused("UNAVAILABLE")


def test_a_look_does_not_cut_off_a_flush(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread hangs up where nothing is due, but not on who is sending at that moment."""
    hung_up: list[GrpcTransport] = []

    def disconnect(transport: GrpcTransport) -> None:
        hung_up.append(transport)

    bundle = make_bundle(operator)
    with (
        hubbub.Client(
            bundle, operator_key=bundle.operator, state_dir=tmp_path, budgets={"health": "8"}
        ) as client,
        monkeypatch.context() as patch,
    ):
        patch.setattr(GrpcTransport, "disconnect", disconnect)
        with client._uploader._sending:
            client._uploader._try_to_send()
        assert not hung_up
        client._uploader._try_to_send()
        assert len(hung_up) == 1
