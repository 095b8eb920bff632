# ruff: noqa: S311  chance decides when to kill, not what is secret
"""Killed, told to stop, out of space, not allowed to write: nothing acknowledged is lost."""

import contextlib
import random
import resource
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc_status import rpc_status

from hubbub.bundle import Bundle
from hubbub.v1 import report_pb2_grpc
from tests import namespaces
from tests.bundles import Operator
from tests.crowds import (
    COUNTED,
    TIMEOUT,
    Batch,
    Crowd,
    all_batches,
    assert_each_once,
    batch_after_batch,
    bundle_of,
)
from tests.processes import ServeFailed, ServeProcess

# How soon after there is space again reports are counted, at most. Seconds.
RECOVERY = 5.0


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return bundle_of(operator, 5)


@pytest.fixture
def bundle_path(bundle: Bundle, tmp_path: Path) -> Path:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return path


def test_killed_twenty_times(
    operator: Operator, bundle: Bundle, bundle_path: Path, tmp_path: Path
) -> None:
    """20,480 reports under twenty SIGKILLs at random moments, with retries and repeats."""
    kills = 20
    batches = all_batches(bundle, list(bundle.metrics))
    assert sum(len(batch.buckets) for batch in batches) >= 20_000
    chance = random.Random(2)
    with ServeProcess(operator, bundle_path, tmp_path / "s") as serve:
        address = serve.public
    crowd = Crowd(operator, batches, [address], give_up=0.01, send_twice=0.05)
    threads: list[threading.Thread] = []
    under_fire = 0
    try:
        for number in range(kills):
            with ServeProcess(operator, bundle_path, tmp_path / "s", listen=address) as serve:
                threads = threads or crowd.start(senders=3)
                # By progress, not by the clock: a fast machine must not be done too soon.
                crowd.wait_for((number + chance.random()) / (kills + 4))
                threads[0].join(chance.uniform(0.0, 0.02))
                under_fire += any(thread.is_alive() for thread in threads)
                serve.kill()
        with ServeProcess(operator, bundle_path, tmp_path / "s", listen=address) as serve:
            for thread in threads:
                thread.join(120)
            assert not any(thread.is_alive() for thread in threads)
            assert_each_once(serve, batches)
    finally:
        crowd.stop.set()
    # The test means something only if reports were under way when it struck.
    assert under_fire == kills
    assert sum(batch.acknowledged for batch in batches) > 0.8 * len(batches)


def test_sigterm_under_load_loses_nothing(
    operator: Operator, bundle: Bundle, bundle_path: Path, tmp_path: Path
) -> None:
    batches = all_batches(bundle, ["m0", "m1"])
    with ServeProcess(operator, bundle_path, tmp_path / "s") as serve:
        crowd = Crowd(operator, batches, [serve.public], give_up=1.0)
        threads = crowd.start(senders=3)
        while sum(batch.acknowledged for batch in batches) < 10:
            threads[0].join(0.01)
        status = serve.terminate()
        crowd.stop.set()
        for thread in threads:
            thread.join()
    assert status == 0
    assert serve.lines[-1].startswith("stopped; in this run: counted ")
    assert 10 <= sum(batch.acknowledged for batch in batches) < len(batches)
    with ServeProcess(operator, bundle_path, tmp_path / "s") as again:
        assert_each_once(again, batches)


def assert_store_unavailable(error: grpc.RpcError) -> None:
    """Nothing was counted, and the sender is told when to try again."""
    assert error.code() is grpc.StatusCode.UNAVAILABLE, error
    status = rpc_status.from_call(error)
    assert status is not None
    info, retry = ErrorInfo(), RetryInfo()
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(retry)
    assert info.reason == "REFUSAL_REASON_STORE_UNAVAILABLE"
    assert retry.retry_delay.seconds > 0


def submit_until_refused(
    stub: report_pb2_grpc.ReportServiceStub, batches: Iterator[Batch]
) -> tuple[Batch, list[Batch]]:
    """Send until the store cannot hold more: the refused batch, and those before it."""
    counted: list[Batch] = []
    for batch in batches:
        try:
            answer = stub.SubmitReports(batch.request, timeout=TIMEOUT)
        except grpc.RpcError as error:
            assert_store_unavailable(error)
            return batch, counted
        assert set(answer.statuses) == {COUNTED}
        batch.acknowledged = True
        counted.append(batch)
    pytest.fail("the store never ran out of space")


def assert_recovers(serve: ServeProcess, refused: Batch, counted: list[Batch]) -> None:
    """With space again, the same bytes are counted, and so is everything before."""
    with serve.public_channel() as channel:
        stub = report_pb2_grpc.ReportServiceStub(channel)
        answer = stub.SubmitReports(refused.request, timeout=TIMEOUT)
    assert set(answer.statuses) == {COUNTED}
    refused.acknowledged = True
    assert_each_once(serve, [*counted, refused])


def test_a_write_limit(
    operator: Operator, bundle: Bundle, bundle_path: Path, tmp_path: Path
) -> None:
    """The system refuses to let a file grow, then allows it again."""
    batches = batch_after_batch(bundle, "m0")
    with ServeProcess(operator, bundle_path, tmp_path / "s") as serve:
        unlimited = resource.prlimit(serve.pid, resource.RLIMIT_FSIZE)
        grown = (tmp_path / "s-wal").stat().st_size
        resource.prlimit(serve.pid, resource.RLIMIT_FSIZE, (grown + 50_000, unlimited[1]))
        with serve.public_channel() as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            refused, counted = submit_until_refused(stub, batches)
        resource.prlimit(serve.pid, resource.RLIMIT_FSIZE, unlimited)
        assert_recovers(serve, refused, counted)


@pytest.fixture
def mounts() -> tuple[str, ...]:
    """The command prefix for mounts of its own."""
    namespaces.require(namespaces.MOUNTS)
    return namespaces.MOUNTS


def test_a_full_disk(full_disk: Callable[[], float]) -> None:
    """The first request after there is space again is counted."""
    full_disk()


@pytest.mark.soak
def test_disk_full_and_recovery_within_five_seconds(full_disk: Callable[[], float]) -> None:
    seconds = full_disk()
    print(f"\nit took {seconds:.1f} s")
    assert seconds < RECOVERY


@pytest.fixture
def full_disk(
    operator: Operator,
    bundle: Bundle,
    bundle_path: Path,
    tmp_path: Path,
    mounts: tuple[str, ...],
) -> Callable[[], float]:
    """Fills it and makes room again; tells what recover_from_a_full_disk does."""
    return partial(recover_from_a_full_disk, operator, bundle, bundle_path, tmp_path, mounts)


def recover_from_a_full_disk(
    operator: Operator,
    bundle: Bundle,
    bundle_path: Path,
    tmp_path: Path,
    mounts: tuple[str, ...],
) -> float:
    """How long it takes until reports are counted and every one before them is, seconds."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=2m none "{disk}" && exec "$@"'
    prefix = (*mounts, "sh", "-c", mount, "sh")
    batches = batch_after_batch(bundle, "m0")
    with ServeProcess(operator, bundle_path, disk / "s", prefix=prefix) as serve:
        # The disk as the aggregator sees it; there is no other way to it from here.
        inside = Path(f"/proc/{serve.pid}/root{disk}")
        filler = inside / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4_096))
        with serve.public_channel() as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            refused, counted = submit_until_refused(stub, batches)
            # Nor does it get better by itself.
            for _ in range(3):
                with pytest.raises(grpc.RpcError) as raised:
                    stub.SubmitReports(refused.request, timeout=TIMEOUT)
                assert_store_unavailable(raised.value)
        filler.unlink()
        freed = time.monotonic()
        assert_recovers(serve, refused, counted)
        seconds = time.monotonic() - freed
        # Inside, before the disk goes with the process.
        with closing(sqlite3.connect(inside / "s")) as store:
            assert store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert serve.terminate() == 0
    return seconds


@pytest.mark.parametrize("existing", [True, False], ids=["existing", "new"])
def test_a_read_only_folder(
    operator: Operator,
    bundle_path: Path,
    tmp_path: Path,
    mounts: tuple[str, ...],
    *,
    existing: bool,
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if existing:
        with ServeProcess(operator, bundle_path, disk / "s") as serve:
            assert serve.terminate() == 0
    mount = f'mount --bind "{disk}" "{disk}" && mount -o remount,bind,ro "{disk}" && exec "$@"'
    with pytest.raises(ServeFailed, match=r"hubbub: store .*(may this process write|Read-only)"):
        ServeProcess(
            operator,
            bundle_path,
            disk / "s",
            prefix=(*mounts, "sh", "-c", mount, "sh"),
        )
