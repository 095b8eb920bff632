# ruff: noqa: S311  chance decides when to kill, not what is secret
"""Faults: killed, told to stop, out of space, not allowed to write. Nothing acknowledged is lost.

Every crafted report raises one bit that no other report raises, so afterwards each count
says how often one report was counted.
"""

import contextlib
import os
import random
import resource
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc_status import rpc_status

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from tests import namespaces
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeFailed, ServeProcess

TIMEOUT = 30
COUNTED = report_pb2.REPORT_STATUS_COUNTED
DUPLICATE = report_pb2.REPORT_STATUS_DUPLICATE

BUCKETS = 4_096
BATCH = 64


@dataclass
class Batch:
    """One request, and the buckets its reports raise."""

    metric: str
    buckets: range
    request: report_pb2.SubmitReportsRequest
    acknowledged: bool = False


@dataclass
class Crowd:
    """Senders of batches who do not give up, or do, but never send anything else."""

    operator: Operator
    batches: Sequence[Batch]
    address: str
    give_up: float = 0.0
    """Probability that a failed batch is never sent again."""
    send_twice: float = 0.0
    """Probability that an acknowledged batch is sent once more."""
    stop: threading.Event = field(default_factory=threading.Event)

    def start(self, senders: int) -> list[threading.Thread]:
        threads = [
            threading.Thread(target=self._send_all, args=(random.Random(i), i, senders))
            for i in range(senders)
        ]
        for thread in threads:
            thread.start()
        return threads

    def wait_for(self, share: float) -> None:
        """Return when this share of the batches is acknowledged, or after two seconds."""
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if sum(batch.acknowledged for batch in self.batches) >= share * len(self.batches):
                return
            time.sleep(0.001)

    def _send_all(self, chance: random.Random, first: int, senders: int) -> None:
        for batch in self.batches[first::senders]:
            while not self.stop.is_set() and not batch.acknowledged:
                batch.acknowledged = self._send(batch)
                if not batch.acknowledged and chance.random() < self.give_up:
                    break
                if batch.acknowledged and chance.random() < self.send_twice:
                    self._send(batch)

    def _send(self, batch: Batch) -> bool:
        # A channel each time: one that saw the aggregator die would wait before it looks again.
        credentials = grpc.ssl_channel_credentials((self.operator.folder / "ca.crt").read_bytes())
        with grpc.secure_channel(
            self.address, credentials, (("grpc.use_local_subchannel_pool", 1),)
        ) as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            try:
                answer = stub.SubmitReports(batch.request, timeout=5)
            except grpc.RpcError:
                self.stop.wait(0.05)
                return False
        assert set(answer.statuses) <= {COUNTED, DUPLICATE}
        return True


def crafted(bundle: Bundle, metric: str, buckets: range) -> Batch:
    """A batch of one-hot reports, each in a bucket of its own."""
    size = bundle.metrics[metric].mechanism.payload_size
    reports = [(os.urandom(16), (1 << bucket).to_bytes(size, "little")) for bucket in buckets]
    return Batch(metric, buckets, make_request(bundle, metric, reports))


def close_and_count(serve: ServeProcess, metric: str) -> list[int]:
    """Close a metric's round; how often each bucket was counted."""
    options = (("grpc.max_receive_message_length", 64 << 20),)
    with grpc.insecure_channel(serve.private, options) as channel:
        admin = estimate_pb2_grpc.AdminServiceStub(channel)
        admin.CloseRound(estimate_pb2.CloseRoundRequest(metric=metric), timeout=TIMEOUT)
        answer = estimate_pb2_grpc.EstimateServiceStub(channel).GetEstimates(
            estimate_pb2.GetEstimatesRequest(metric=metric), timeout=TIMEOUT
        )
    counts = [row.count for row in answer.estimates.values]
    assert sum(counts) == answer.estimates.n
    return counts


def assert_each_once(serve: ServeProcess, batches: Sequence[Batch]) -> None:
    """Every bucket is 0 or 1, and 1 wherever the aggregator said so."""
    for metric in {batch.metric for batch in batches}:
        counts = close_and_count(serve, metric)
        assert set(counts) <= {0, 1}
        for batch in batches:
            if batch.metric == metric and batch.acknowledged:
                assert all(counts[bucket] == 1 for bucket in batch.buckets)


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    values = [f"bucket {i}" for i in range(BUCKETS)]
    return make_bundle(
        operator,
        *(make_metric(f"m{i}", values=values, mechanism="optimised-unary") for i in range(5)),
    )


@pytest.fixture
def bundle_path(bundle: Bundle, tmp_path: Path) -> Path:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return path


def batch_after_batch(bundle: Bundle, metric: str) -> Iterator[Batch]:
    for start in range(0, BUCKETS, BATCH):
        yield crafted(bundle, metric, range(start, start + BATCH))


def all_batches(bundle: Bundle, metrics: Sequence[str]) -> list[Batch]:
    batches = [batch for metric in metrics for batch in batch_after_batch(bundle, metric)]
    random.Random(1).shuffle(batches)
    return batches


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
    crowd = Crowd(operator, batches, address, give_up=0.01, send_twice=0.05)
    threads: list[threading.Thread] = []
    under_fire = 0
    try:
        for number in range(kills):
            with ServeProcess(operator, bundle_path, tmp_path / "s", listen=address) as serve:
                threads = threads or crowd.start(senders=3)
                # By progress, not by the clock: a fast machine must not be done too soon.
                crowd.wait_for((number + chance.random()) / (kills + 1))
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
        crowd = Crowd(operator, batches, serve.public, give_up=1.0)
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


def test_a_full_disk(
    operator: Operator,
    bundle: Bundle,
    bundle_path: Path,
    tmp_path: Path,
    mounts: tuple[str, ...],
) -> None:
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
        filler.unlink()
        assert_recovers(serve, refused, counted)
        assert serve.terminate() == 0


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
