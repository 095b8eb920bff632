# ruff: noqa: S311  chance decides when it is told to stop, not what is secret
"""More than it can do, more than it takes, and less than it waits for."""

import contextlib
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.bundle import Bundle
from hubbub.v1 import report_pb2, report_pb2_grpc
from hubbub_aggregator import arrivals
from hubbub_aggregator.listeners import SUBMIT
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.crowds import BUCKETS, Batch, assert_each_once, bundle_of, crafted
from tests.devices import soon
from tests.flood import Stalls
from tests.overload import Load, Offered
from tests.processes import ServeProcess

TIMEOUT = 30
COUNTED = report_pb2.REPORT_STATUS_COUNTED
# gRPC's, of calls that it does not let wait.
CANCELLED = 1
SIZE = 100
# So many at once are fewer than are turned away, and enough to keep it busy.
AT_ONCE = 8
CONNECTIONS = 16


def batches_of(bundle: Bundle, size: int = SIZE) -> list[Batch]:
    """Every bucket of every metric once, in requests of so many reports."""
    return [
        crafted(bundle, metric, range(start, min(start + size, BUCKETS)))
        for metric in bundle.metrics
        for start in range(0, BUCKETS, size)
    ]


def overload(
    operator: Operator,
    tmp_path: Path,
    *,
    metrics: int,
    measured: float,
    seconds: float,
    size: int = SIZE,
    at_once: int = AT_ONCE,
) -> tuple[Offered, Offered]:
    """Capacity, and three times as much; every report that was acknowledged is counted once."""
    bundle = bundle_of(operator, metrics)
    (tmp_path / "metrics.hubbub").write_bytes(bundle.signed)
    authority = (operator.folder / "ca.crt").read_bytes()
    batches = batches_of(bundle, size)
    with ServeProcess(operator, tmp_path / "metrics.hubbub", tmp_path / "s") as serve:
        load = Load(serve.public, authority, serve.pid, batches, CONNECTIONS)
        first = load.closed(0.5, at_once)
        capacity = load.closed(measured, at_once)
        over = load.open(seconds, 3 * capacity.goodput)
        print(f"\ncapacity: {capacity}\nthree times as much: {over}")
        assert serve.terminate() == 0
    counted = first.counted + capacity.counted + over.counted
    with ServeProcess(operator, tmp_path / "metrics.hubbub", tmp_path / "s") as again:
        assert counted == sum(len(batch.buckets) for batch in batches if batch.acknowledged)
        assert_each_once(again, batches)
    # Nothing had another fate: so what is counted is what was acknowledged, and no more.
    assert not capacity.others
    assert set(over.others) <= {CANCELLED}
    return capacity, over


def test_three_times_as_much_as_it_can_do(operator: Operator, tmp_path: Path) -> None:
    """The short form: what does not depend on how busy this machine is."""
    capacity, over = overload(operator, tmp_path, metrics=2, measured=1, seconds=4)
    assert not over.others
    assert over.offered > 1.5 * capacity.goodput * over.seconds
    assert over.accepted
    assert len(over.pushbacks) > len(over.accepted) / 2
    assert all(pushback >= 1 for pushback in over.pushbacks)
    assert len(set(over.pushbacks)) > len(over.pushbacks) / 10
    assert over.grown < 100_000_000


@pytest.mark.soak
def test_overload_for_a_minute(operator: Operator, tmp_path: Path) -> None:
    capacity, over = overload(operator, tmp_path, metrics=24, measured=10, seconds=60)
    assert not over.others
    assert over.offered > 2.9 * capacity.goodput * over.seconds
    assert over.grown < 100_000_000
    assert over.p99 < 1
    assert over.goodput >= 0.8 * capacity.goodput
    # The later, the more were turned away before.
    tenth = len(over.pushbacks) // 10
    assert sum(over.pushbacks[-tenth:]) > 2 * sum(over.pushbacks[:tenth])


@pytest.mark.soak
def test_overload_by_single_reports_for_a_minute(operator: Operator, tmp_path: Path) -> None:
    """More calls than Python can refuse: gRPC cancels those that nobody has looked at."""
    capacity, over = overload(
        operator, tmp_path, metrics=8, measured=10, seconds=60, size=1, at_once=100
    )
    assert over.offered > 2 * capacity.goodput * over.seconds
    assert over.grown < 100_000_000
    assert over.p99 < 1
    assert over.goodput >= 0.8 * capacity.goodput


@pytest.mark.soak
def test_overload_and_sigterm_a_hundred_times(operator: Operator, tmp_path: Path) -> None:
    """Each time with more under way than it can do, at a random moment."""
    bundle = bundle_of(operator, 4)
    (tmp_path / "metrics.hubbub").write_bytes(bundle.signed)
    authority = (operator.folder / "ca.crt").read_bytes()
    batches = batches_of(bundle)
    chance = random.Random(3)
    accepted, longest = 0, 0.0
    for _ in range(100):
        with ServeProcess(operator, tmp_path / "metrics.hubbub", tmp_path / "s") as serve:
            load = Load(serve.public, authority, serve.pid, batches, 4)
            found: list[Offered] = []
            sender = threading.Thread(
                target=lambda load=load, found=found: load.open(60, 300, found)
            )
            sender.start()
            assert soon(lambda found=found: bool(found and found[0].accepted))
            time.sleep(chance.uniform(0.0, 0.5))
            began = time.monotonic()
            assert serve.terminate() == 0
            longest = max(longest, time.monotonic() - began)
            sender.join(TIMEOUT)
            assert not sender.is_alive()
            accepted += len(found[0].accepted)
    print(f"\n{accepted:,} requests accepted; it took up to {longest:.1f} s to stop")
    assert longest < 15
    assert any(batch.acknowledged for batch in batches)
    with ServeProcess(operator, tmp_path / "metrics.hubbub", tmp_path / "s") as again:
        assert_each_once(again, batches)


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(operator, make_metric("few"))


@pytest.fixture
def path(bundle: Bundle, tmp_path: Path) -> Path:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return path


@pytest.fixture
def serve(operator: Operator, path: Path, tmp_path: Path) -> Iterator[ServeProcess]:
    with ServeProcess(operator, path, tmp_path / "s") as serve:
        yield serve


def assert_counts(serve: ServeProcess, bundle: Bundle, timeout: float = TIMEOUT) -> None:
    """One report of somebody else."""
    with serve.public_channel() as channel:
        stub = report_pb2_grpc.ReportServiceStub(channel)
        answer = stub.SubmitReports(make_request(bundle, "few"), timeout=timeout)
    assert list(answer.statuses) == [COUNTED]


class TestCallsThatStall:
    """They say that they begin, and perhaps something more, and then nothing."""

    def test_hold_up_nobody(self, serve: ServeProcess, bundle: Bundle) -> None:
        authority = (serve.operator.folder / "ca.crt").read_bytes()
        with contextlib.ExitStack() as stack:
            for begun in (b"", b"\0\0", b"\0\0\0\1\0" + bytes(100)):
                stalls = stack.enter_context(Stalls(serve.public, SUBMIT, authority))
                # Each alone are more than there are threads.
                stalls.begin(90, begun)
            # Half of the time after which they are given up.
            assert_counts(serve, bundle, timeout=arrivals.PATIENCE / 2)

    @pytest.mark.soak
    def test_overload_by_calls_that_are_given_up(self, serve: ServeProcess, bundle: Bundle) -> None:
        """So are those that end without a message."""
        authority = (serve.operator.folder / "ca.crt").read_bytes()
        with (
            Stalls(serve.public, SUBMIT, authority) as stalls,
            Stalls(serve.public, SUBMIT, authority) as ends,
        ):
            stalls.begin(10, b"\0\0\0\1\0")
            ends.begin(80, b"", end=True)
            assert_counts(serve, bundle, timeout=arrivals.PATIENCE / 2)
            assert soon(lambda: stalls.ended() == 10)
            assert soon(lambda: ends.ended() == 80)

    def test_are_given_up_at_once_when_there_are_very_many(
        self, serve: ServeProcess, bundle: Bundle
    ) -> None:
        authority = (serve.operator.folder / "ca.crt").read_bytes()
        with contextlib.ExitStack() as stack:
            several = [
                stack.enter_context(Stalls(serve.public, SUBMIT, authority)) for _ in range(7)
            ]
            for stalls in several:
                stalls.begin(90, b"\0\0")
                # When this is answered, those before it have been looked at.
                assert_counts(serve, bundle, timeout=arrivals.PATIENCE / 2)
            assert soon(lambda: several[0].ended() > 0)

    def test_do_not_hold_up_the_end(self, serve: ServeProcess) -> None:
        authority = (serve.operator.folder / "ca.crt").read_bytes()
        with Stalls(serve.public, SUBMIT, authority) as stalls:
            stalls.begin(50, b"\0\0\0\1\0")
            began = time.monotonic()
            serve.send(signal.SIGTERM)
            assert soon(lambda: stalls.ended() == 50)
            assert serve.wait() == 0
        # Less than the grace for what is in hand.
        assert time.monotonic() - began < 9


def test_connections_that_say_nothing(
    operator: Operator, path: Path, tmp_path: Path, bundle: Bundle
) -> None:
    """More than there are files for: those within keep being served."""
    with silent_connections(operator, bundle, path, tmp_path):
        pass


@pytest.mark.soak
def test_overload_by_connections_that_say_nothing(
    operator: Operator, path: Path, tmp_path: Path, bundle: Bundle
) -> None:
    with silent_connections(operator, bundle, path, tmp_path) as (serve, silent):
        # A handshake that does not begin is waited for ten seconds.
        assert soon(lambda: all(map(_closed, silent)))
        assert_counts(serve, bundle)
        assert serve.terminate() == 0


@contextlib.contextmanager
def silent_connections(
    operator: Operator, bundle: Bundle, path: Path, tmp_path: Path
) -> Iterator[tuple[ServeProcess, list[socket.socket]]]:
    """An aggregator that has few files, and so many connections; one that was there is served."""
    few = ("sh", "-c", 'ulimit -n 300 && exec "$@"', "sh")
    with (
        ServeProcess(operator, path, tmp_path / "s", prefix=few) as serve,
        contextlib.ExitStack() as stack,
        serve.public_channel() as channel,
    ):
        stub = report_pb2_grpc.ReportServiceStub(channel)

        def count() -> None:
            answer = stub.SubmitReports(make_request(bundle, "few"), timeout=TIMEOUT)
            assert list(answer.statuses) == [COUNTED]

        count()
        host, port = serve.public.split(":")
        silent = [
            stack.enter_context(socket.create_connection((host, int(port)), TIMEOUT))
            for _ in range(400)
        ]
        for one in silent:
            one.setblocking(False)
        assert soon(lambda: sum(map(_closed, silent)) >= 250)
        count()
        yield serve, silent


def _closed(end: socket.socket) -> bool:
    """By the other side."""
    try:
        return end.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
