"""Backups of a store that is counted into, and what a restored one knows."""

import os
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from hubbub_aggregator.store import Store
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.devices import soon
from tests.processes import ServeProcess
from tests.typed import typed

TIMEOUT = 30
BUCKETS, BATCH, SENDERS = 8_192, 16, 3
NAME = "crafted"


@dataclass
class Batch:
    """Reports that each raise a bit of their own, and when they were sent and acknowledged."""

    buckets: range
    request: report_pb2.SubmitReportsRequest
    sent: threading.Event = field(default_factory=threading.Event)
    acknowledged: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def bundle(operator: Operator) -> Bundle:
    values = [f"bucket {i}" for i in range(BUCKETS)]
    return make_bundle(operator, make_metric(NAME, values=values, mechanism="optimised-unary"))


@pytest.fixture
def path(bundle: Bundle, tmp_path: Path) -> Path:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return path


def crafted(bundle: Bundle) -> list[Batch]:
    size = bundle.metrics[NAME].mechanism.payload_size
    batches = []
    for start in range(0, BUCKETS, BATCH):
        buckets = range(start, start + BATCH)
        reports = [(os.urandom(16), (1 << bucket).to_bytes(size, "little")) for bucket in buckets]
        batches.append(Batch(buckets, make_request(bundle, NAME, reports)))
    return batches


def send(serve: ServeProcess, batches: list[Batch], stop: threading.Event) -> None:
    with serve.public_channel() as channel:
        stub = report_pb2_grpc.ReportServiceStub(channel)
        for batch in batches:
            if stop.is_set():
                return
            batch.sent.set()
            answer = stub.SubmitReports(batch.request, timeout=TIMEOUT)
            assert set(answer.statuses) == {report_pb2.REPORT_STATUS_COUNTED}
            batch.acknowledged.set()


def counts(serve: ServeProcess) -> list[int]:
    """How often each bucket was counted, after closing the round."""
    with serve.private_channel() as channel:
        request = estimate_pb2.CloseRoundRequest(metric=NAME)
        estimate_pb2_grpc.AdminServiceStub(channel).CloseRound(request, timeout=TIMEOUT)
        answer = estimate_pb2_grpc.EstimateServiceStub(channel).GetEstimates(
            estimate_pb2.GetEstimatesRequest(metric=NAME), timeout=TIMEOUT
        )
    found = [row.count for row in answer.estimates.values]
    assert sum(found) == answer.estimates.n
    return found


def test_under_load_it_is_one_instant(
    operator: Operator, bundle: Bundle, path: Path, tmp_path: Path
) -> None:
    batches, stop = crafted(bundle), threading.Event()
    store, copy = tmp_path / "s", tmp_path / "backup" / "s"
    copy.parent.mkdir()
    with ServeProcess(operator, path, store) as serve:
        threads = [
            threading.Thread(target=send, args=(serve, batches[i::SENDERS], stop))
            for i in range(SENDERS)
        ]
        for thread in threads:
            thread.start()
        assert soon(lambda: sum(b.acknowledged.is_set() for b in batches) > 30)
        before = [batch for batch in batches if batch.acknowledged.is_set()]
        ran = typed("backup", copy, "--store", store)
        assert ran.returncode == 0, ran.stderr
        after = [batch for batch in batches if not batch.sent.is_set()]
        # It means something only if reports were under way before and after.
        assert after
        assert soon(lambda: any(b.acknowledged.is_set() for b in after))
        stop.set()
        for thread in threads:
            thread.join()
        serve.kill()
    # One file, and nothing beside it.
    assert [entry.name for entry in copy.parent.iterdir()] == ["s"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600

    for suffix in ("", "-wal", "-shm"):
        Path(f"{store}{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, store)
    with ServeProcess(operator, path, store) as restored:
        with restored.public_channel() as channel:
            stub = report_pb2_grpc.ReportServiceStub(channel)
            answer = stub.SubmitReports(before[0].request, timeout=TIMEOUT)
        assert set(answer.statuses) == {report_pb2.REPORT_STATUS_DUPLICATE}
        found = counts(restored)
    assert set(found) <= {0, 1}
    assert all(found[bucket] == 1 for batch in before for bucket in batch.buckets)
    assert all(found[bucket] == 0 for batch in after for bucket in batch.buckets)
    for batch in batches:
        assert len({found[bucket] for bucket in batch.buckets}) == 1


class TestRefusals:
    @pytest.fixture
    def store(self, bundle: Bundle, tmp_path: Path) -> Path:
        with closing(Store(str(tmp_path / "s"), writer=1, publish_step=1)) as store:
            store.adopt(bundle, now=0)
        return tmp_path / "s"

    def _refusal(self, *arguments: object) -> str:
        ran = typed("backup", *arguments)
        assert ran.returncode == 1
        assert ran.stderr.count("\n") == 1
        return ran.stderr

    def test_a_name_that_is_taken(self, store: Path, tmp_path: Path) -> None:
        (tmp_path / "b").write_text("an older one")
        assert "is there already" in self._refusal(tmp_path / "b", "--store", store)
        assert (tmp_path / "b").read_text() == "an older one"

    def test_no_store(self, tmp_path: Path) -> None:
        assert "there is no store" in self._refusal(tmp_path / "b", "--store", tmp_path / "no")
        assert not list(tmp_path.iterdir())

    def test_no_place(self, store: Path, tmp_path: Path) -> None:
        said = self._refusal(tmp_path / "no" / "b", "--store", store)
        assert "cannot be made (No such file or directory)" in said

    def test_something_else(self, tmp_path: Path) -> None:
        (tmp_path / "diary").write_text("Dear diary\n" * 1_000)
        said = self._refusal(tmp_path / "b", "--store", tmp_path / "diary")
        assert "is no SQLite database, and so no store; give --store another path" in said
        assert "is not a Hubbub store" in self._refusal(tmp_path / "b", "--store", tmp_path)
        with closing(sqlite3.connect(tmp_path / "other")) as connection:
            connection.execute("CREATE TABLE diary (day)")
        assert "is not a Hubbub" in self._refusal(tmp_path / "b", "--store", tmp_path / "other")
        assert not (tmp_path / "b").exists()

    def test_a_damaged_store(self, store: Path, tmp_path: Path) -> None:
        data = bytearray(store.read_bytes())
        data[-12_288:] = os.urandom(12_288)
        store.write_bytes(data)
        said = self._refusal(tmp_path / "b", "--store", store)
        assert "is damaged" in said or "cannot be copied" in said
        assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith((".", "b"))]

    def test_postgresql(self, tmp_path: Path) -> None:
        location = "postgresql://u:hunter2@localhost/hubbub"
        said = self._refusal(tmp_path / "b", "--store", location)
        assert "use pg_dump" in said
        assert "hunter2" not in said
