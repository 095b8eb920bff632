"""`hubbub serve --archive`: through a full disk, a kill in the middle, and a shared store."""

import resource
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import grpc
import pytest

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.archive import errors
from hubbub_aggregator.archive.files import path_of, places
from tests.aggregator.archives import OPEN, Counting, contract, reports_of
from tests.bundles import Operator, make_bundle, make_metric
from tests.dashboard.crowd import answer
from tests.processes import PATIENCE, ServeFailed, ServeProcess
from tests.typed import typed

KEPT = "kept"
N = 2_000


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    values = [f"value {i}" for i in range(100)]
    kept = make_metric(KEPT, values=values, mechanism="symmetric-unary", retain=True)
    return make_bundle(operator, kept, contract(OPEN))


@pytest.fixture
def file(bundle: Bundle, tmp_path: Path) -> Path:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def serve(operator: Operator, file: Path, folder: Path, bundle: Bundle) -> Iterator[ServeProcess]:
    """With a round of 2,000 reports, open."""
    with serving(operator, file, folder) as serve:
        answer(serve, bundle, KEPT, [i % 100 for i in range(N)])
        yield serve


def serving(operator: Operator, file: Path, folder: Path) -> ServeProcess:
    return ServeProcess(operator, file, file.with_name("store"), flags=["--archive", str(folder)])


def close_round(serve: ServeProcess) -> estimate_pb2.CloseRoundResponse:
    with serve.private_channel() as channel:
        stub = estimate_pb2_grpc.AdminServiceStub(channel)
        return stub.CloseRound(estimate_pb2.CloseRoundRequest(metric=KEPT), timeout=PATIENCE)


def recounted(serve: ServeProcess, folder: Path, store: Path) -> str:
    """What a recount says, held against the store and against the running aggregator."""
    ran = typed("recount", folder, "--store", store, "--aggregator", serve.private)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_a_file_that_may_not_grow_leaves_the_round_open(
    serve: ServeProcess, folder: Path, bundle: Bundle
) -> None:
    assert f"archive  {folder}" in serve.lines
    unlimited = resource.prlimit(serve.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(serve.pid, resource.RLIMIT_FSIZE, (20_000, unlimited[1]))
    with pytest.raises(grpc.RpcError, match="cannot be archived now, and stays open") as raised:
        close_round(serve)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert list(folder.rglob("*.parquet*")) == []
    resource.prlimit(serve.pid, resource.RLIMIT_FSIZE, unlimited)
    answer(serve, bundle, KEPT, [0] * 10)
    assert close_round(serve).n == N + 10
    found = recounted(serve, folder, folder.with_name("store"))
    assert "n = 2,010" in found
    assert "the same as counted live, bit for bit" in found
    assert serve.terminate() == 0
    assert any("File too large" in line for line in serve.lines)


@pytest.mark.parametrize(
    "delay",
    [pytest.param(delay, marks=pytest.mark.soak) for delay in (0.0, 0.01, 0.1)] + [0.03],
)
def test_killed_while_it_closes_nothing_is_lost(
    operator: Operator,
    serve: ServeProcess,
    file: Path,
    folder: Path,
    bundle: Bundle,
    *,
    delay: float,
) -> None:
    with serve.private_channel() as channel:
        stub = estimate_pb2_grpc.AdminServiceStub(channel)
        asked = stub.CloseRound.future(estimate_pb2.CloseRoundRequest(metric=KEPT))
        time.sleep(delay)
        serve.send(signal.SIGKILL)
        serve.kill()
        asked.cancel()
    path = path_of(folder, bundle.metrics[KEPT].digest, 0)
    before = path.read_bytes() if path.exists() else None
    with serving(operator, file, folder) as again:
        closed = close_round(again)
        assert closed.n == N
        # Closed before it was killed means: archived before.
        assert closed.closed_now or before is not None
        assert before in {None, path.read_bytes()}
        assert "bit for bit" in recounted(again, folder, file.with_name("store"))
    assert [place.path for place in places(folder)] == [path]


def test_rounds_whose_time_is_over_are_archived(
    operator: Operator, bundle: Bundle, file: Path, folder: Path
) -> None:
    """Those of 1970, when the aggregator starts."""
    with closing(Counting(bundle, str(file.with_name("store")), None)) as counting:
        counting.count(OPEN, [reports_of(bundle.metrics[OPEN], 30)], number=1)
    path = path_of(folder, bundle.metrics[OPEN].digest, 1)
    with serving(operator, file, folder) as serve:
        end = time.monotonic() + PATIENCE
        while not path.exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        drinks = file.with_name("drinks.txt")
        drinks.write_text("tea\ncoffee\n")
        ran = typed(
            *("recount", folder, "--candidates", drinks, "--round", 1),
            *("--aggregator", serve.private, "--store", file.with_name("store")),
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "bit for bit" in ran.stdout
        # Without candidates, an aggregator says of an open domain how many answered.
        ran = typed("recount", folder, "--aggregator", serve.private)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "nothing else was compared: for more, name candidates" in ran.stdout


def test_what_cannot_be_archived_is_found_at_the_start(
    operator: Operator, file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("")
    with pytest.raises(ServeFailed, match="give --archive a folder that can be written"):
        serving(operator, file, folder)
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(errors.ArchiveError, match=r"needs duckdb: pip install 'hubbub\[archive\]'"):
        errors.require_libraries()
