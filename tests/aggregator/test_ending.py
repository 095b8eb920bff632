"""The end: health says it first, what is in hand is finished, and no watcher delays it."""

import os
import pty
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.bundle import Bundle
from hubbub.v1 import report_pb2, report_pb2_grpc
from hubbub_aggregator.services.health import MAX_HEALTH_WATCHERS
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.devices import soon
from tests.processes import ServeProcess

TIMEOUT = 30
ASKED = health_pb2.HealthCheckRequest()
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@pytest.fixture
def bundle(operator: Operator) -> Bundle:
    return make_bundle(operator, make_metric())


def started(
    operator: Operator, bundle: Bundle, tmp_path: Path, lame_duck: str, *, stdin: int | None = None
) -> ServeProcess:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return ServeProcess(
        operator, path, tmp_path / "s", flags=["--lame-duck", lame_duck], stdin=stdin
    )


def check(channel: grpc.Channel) -> Any:
    return health_pb2_grpc.HealthStub(channel).Check(ASKED, timeout=TIMEOUT).status


def left(channel: grpc.Channel) -> bool:
    return soon(lambda: check(channel) == NOT_SERVING)


class TestALameDuck:
    """A long one, that only what a test does ends."""

    @pytest.fixture
    def serve(self, operator: Operator, bundle: Bundle, tmp_path: Path) -> Iterator[ServeProcess]:
        with started(operator, bundle, tmp_path, "600") as serve:
            yield serve

    def test_says_so_and_still_counts(self, serve: ServeProcess, bundle: Bundle) -> None:
        with serve.public_channel() as public, serve.private_channel() as private:
            assert (check(public), check(private)) == (SERVING, SERVING)
            serve.send(signal.SIGTERM)
            # On connections that were open before, and on new ones.
            assert left(public)
            assert left(private)
            with serve.public_channel() as late:
                assert check(late) == NOT_SERVING
                stub = report_pb2_grpc.ReportServiceStub(late)
                answer = stub.SubmitReports(
                    make_request(bundle, "health.self_rated"), timeout=TIMEOUT
                )
                assert answer.statuses == [report_pb2.REPORT_STATUS_COUNTED]
        # The second SIGTERM.
        assert serve.terminate() == 0
        assert serve.lines[-1] == "stopped; in this run: counted 1"

    def test_ctrl_c_waits_for_nothing(self, serve: ServeProcess) -> None:
        serve.send(signal.SIGINT)
        assert serve.wait() == 0

    def test_nor_does_a_terminal_that_closes(
        self, operator: Operator, bundle: Bundle, tmp_path: Path
    ) -> None:
        controlling, terminal = pty.openpty()
        try:
            with started(operator, bundle, tmp_path, "600", stdin=terminal) as serve:
                serve.send(signal.SIGHUP)
                assert serve.wait() == 0
        finally:
            os.close(controlling)
            os.close(terminal)

    def test_a_watcher_hears_it_and_is_sent_away(self, serve: ServeProcess) -> None:
        with serve.private_channel() as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(ASKED, timeout=TIMEOUT)
            assert next(watch).status == SERVING
            serve.send(signal.SIGTERM)
            assert next(watch).status == NOT_SERVING
            assert serve.terminate() == 0
            assert list(watch) == []


def test_it_ends_by_itself_after_the_time(
    operator: Operator, bundle: Bundle, tmp_path: Path
) -> None:
    with started(operator, bundle, tmp_path, "0.5") as serve:
        begun = time.monotonic()
        assert serve.terminate() == 0
        assert time.monotonic() - begun >= 0.5


class TestWatchersOfHealth:
    @pytest.fixture
    def serve(self, operator: Operator, bundle: Bundle, tmp_path: Path) -> Iterator[ServeProcess]:
        with started(operator, bundle, tmp_path, "0") as serve:
            yield serve

    def test_are_few_and_make_room(self, serve: ServeProcess) -> None:
        with serve.private_channel() as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            watches = [stub.Watch(ASKED, timeout=TIMEOUT) for _ in range(MAX_HEALTH_WATCHERS)]
            assert [next(watch).status for watch in watches] == [SERVING] * MAX_HEALTH_WATCHERS
            with pytest.raises(grpc.RpcError) as raised:
                next(stub.Watch(ASKED, timeout=TIMEOUT))
            assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            watches[0].cancel()
            assert soon(lambda: _may_watch(stub))
        assert serve.terminate() == 0

    def test_know_the_services_only(self, serve: ServeProcess) -> None:
        with serve.private_channel() as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            with pytest.raises(grpc.RpcError) as raised:
                next(stub.Watch(health_pb2.HealthCheckRequest(service="what"), timeout=TIMEOUT))
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND

    def test_never_delay_the_end(self, serve: ServeProcess) -> None:
        with serve.private_channel() as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(ASKED, timeout=TIMEOUT)
            next(watch)
            begun = time.monotonic()
            assert serve.terminate() == 0
            # The grace for calls in hand is ten seconds, and was not used up.
            assert time.monotonic() - begun < 9
            assert [answer.status for answer in watch] == [NOT_SERVING]


def _may_watch(stub: Any) -> bool:
    watch = stub.Watch(ASKED, timeout=TIMEOUT)
    try:
        next(watch)
    except grpc.RpcError:
        return False
    watch.cancel()
    return True


def test_reports_in_flight_at_the_end_are_answered(
    operator: Operator, bundle: Bundle, tmp_path: Path
) -> None:
    """Whoever sends all along hears of nothing but counted reports, until nobody listens."""
    stop = threading.Event()
    counted, refused = [0], list[grpc.StatusCode]()

    def send(serve: ServeProcess) -> None:
        with serve.public_channel() as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            while not stop.is_set():
                try:
                    stub.SubmitReports(make_request(bundle, "health.self_rated"), timeout=TIMEOUT)
                except grpc.RpcError as error:
                    refused.append(error.code())
                    return
                counted[0] += 1

    with started(operator, bundle, tmp_path, "0.3") as serve:
        sender = threading.Thread(target=send, args=(serve,))
        sender.start()
        assert soon(lambda: counted[0] > 20)
        assert serve.terminate() == 0
        stop.set()
        sender.join()
    assert serve.lines[-1] == f"stopped; in this run: counted {counted[0]:,}"
    # A call that comes between the two ends of a connection, gRPC cancels: nobody has looked at it.
    assert refused in ([], [grpc.StatusCode.UNAVAILABLE], [grpc.StatusCode.CANCELLED])
