"""Opening reports: in their turn, in processes of their own, and when one of those dies."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hubbub.bundle import Bundle
from hubbub.limits import REPORT_ID_BYTES
from hubbub.sealing import context
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric
from hubbub_aggregator.keys import load_opening_keys
from hubbub_aggregator.observations import Histogram
from hubbub_aggregator.opening import Opening
from hubbub_aggregator.opening_pool import OpeningPool
from hubbub_aggregator.sealed import Sealed
from hubbub_aggregator.submission import NotOpened, Submission
from tests.aggregator.waiting import Waiting
from tests.bundles import Operator, make_bundle, make_metric, make_request


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(operator, make_metric("few"))


@pytest.fixture(scope="module")
def pool(operator: Operator) -> Iterator[OpeningPool]:
    with closing(OpeningPool(operator.folder, 2)) as pool:
        yield pool


def metric_of(bundle: Bundle) -> CataloguedMetric:
    return Catalogue(bundle, bundle.metrics.values()).by_name["few"]


def sealed(operator: Operator, bundle: Bundle, reports: list[bytes]) -> Sealed:
    """Reports (id ‖ payload), sealed; the third is altered."""
    parts = [(report[:REPORT_ID_BYTES], report[REPORT_ID_BYTES:]) for report in reports]
    request = make_request(bundle, "few", parts)
    size = len(request.sealed) // len(reports)
    altered = bytearray(request.sealed)
    if len(reports) > 2:
        altered[3 * size - 1] ^= 1
    key = load_opening_keys(operator.folder)[request.key_id]
    info = context(metric_of(bundle).digest, 0, key.key_id)
    return Sealed(key, info, bytes(altered), size)


def some(n: int) -> list[bytes]:
    return [os.urandom(REPORT_ID_BYTES) + b"\1" for _ in range(n)]


@pytest.mark.parametrize("with_pool", [False, True])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 200])
def test_reports_are_opened_in_their_order(
    operator: Operator, bundle: Bundle, pool: OpeningPool, n: int, with_pool: bool
) -> None:
    def commit(submissions: list[Submission]) -> None:
        for one in submissions:
            one.settle(bytes([1]) * one.n)

    reports = some(n)
    with closing(Opening(commit, Histogram(), pool if with_pool else None)) as stage:
        sent = Waiting(metric_of(bundle), 0)
        stage.open(sent, sealed(operator, bundle, reports))
        statuses = sent.wait()
    if n < 3:
        assert (sent.opened, statuses) == (b"".join(reports), bytes([1]) * n)
    else:
        assert sent.opened == b"".join(reports[:2] + reports[3:])
        assert statuses == bytes([1, 1, 3, *[1] * (n - 3)])


def test_a_process_that_is_killed_costs_no_report(operator: Operator, bundle: Bundle) -> None:
    with closing(OpeningPool(operator.folder, 2)) as pool:
        for _ in range(3):
            children = multiprocessing.active_children()
            assert children
            for child in children:
                if child.pid is not None:
                    os.kill(child.pid, signal.SIGKILL)
            for _ in range(2):
                reports = some(20)
                opened = pool.open(sealed(operator, bundle, reports))
                assert opened == [*reports[:2], None, *reports[3:]]


def test_a_fault_leaves_nobody_waiting(
    operator: Operator, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(Sealed, "open", broken)
    failed: list[Submission] = []
    with closing(Opening(failed.extend, Histogram())) as stage:
        sent = Waiting(metric_of(bundle), 0)
        stage.open(sent, sealed(operator, bundle, some(1)))
        with pytest.raises(NotOpened):
            sent.wait()
        # And the next is opened.
        monkeypatch.undo()
        stage.open(Waiting(metric_of(bundle), 0), sealed(operator, bundle, some(1)))
    assert [one.n for one in failed] == [1]


def test_who_comes_when_it_has_stopped_is_told(operator: Operator, bundle: Bundle) -> None:
    committed: list[Submission] = []
    stage = Opening(committed.extend, Histogram())
    stage.close()
    late = Waiting(metric_of(bundle), 0)
    stage.open(late, sealed(operator, bundle, some(1)))
    with pytest.raises(NotOpened):
        late.wait()
    assert not committed


_POOLED = """
import multiprocessing, sys, time
from pathlib import Path
from hubbub_aggregator.opening_pool import OpeningPool

if __name__ == "__main__":
    pool = OpeningPool(Path(sys.argv[1]), 2)
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
    time.sleep(60)
"""


def test_they_end_when_whoever_started_them_is_killed(operator: Operator, tmp_path: Path) -> None:
    program = tmp_path / "pooled.py"
    program.write_text(_POOLED)
    with subprocess.Popen(
        [sys.executable, program, operator.folder], stdout=subprocess.PIPE, text=True
    ) as pooled:
        assert pooled.stdout is not None
        children = [Path(f"/proc/{pid}") for pid in pooled.stdout.readline().split()]
        assert children
        assert all(child.exists() for child in children)
        pooled.kill()
    deadline = time.monotonic() + 30
    while any(child.exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(child.exists() for child in children)
