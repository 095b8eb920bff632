"""`hubbub serve --archive`: through a full disk, a kill in the middle, and a shared store."""

import http.client
import json
import re
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.archive import errors
from hubbub_aggregator.archive.files import path_of, places
from tests.aggregator.archives import OPEN, Counting, contract, reports_of
from tests.bundles import Operator, make_bundle, make_metric
from tests.dashboard.crowd import answer
from tests.processes import PATIENCE, ServeFailed, ServeProcess, until
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


def status(serve: ServeProcess) -> dict[str, Any]:
    """What `hubbub status` says of the archive."""
    ran = typed("status", "--aggregator", serve.private, "--format", "json")
    assert (ran.returncode, ran.stderr) == (0, "")
    found: dict[str, Any] = json.loads(ran.stdout)["archive"]
    return found


def scraped(serve: ServeProcess) -> dict[str, str]:
    """The metrics of the archive."""
    connection = http.client.HTTPConnection(serve.address("metrics"), timeout=PATIENCE)
    with closing(connection):
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    return dict(re.findall("^hubbub_archive_([a-z_]+) ([0-9.]+)$", text, re.MULTILINE))


def looked_at(serve: ServeProcess, store: Path, *flags: object) -> list[str]:
    """What `hubbub doctor` says of the archive and of the aggregator that runs."""
    ran = typed(
        *("doctor", "--keys", serve.operator.folder, "--store", store, "--format", "json"),
        *("--listen", serve.public, "--private-listen", serve.private, *flags),
    )
    assert ran.stderr == ""
    return [
        f"{row['level']}: {row['text']}"
        for row in json.loads(ran.stdout)["findings"]
        if row["subject"] in {"archive", "archive disk", "aggregator"}
    ]


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
    assert status(serve)["failing_since"] is None
    with pytest.raises(grpc.RpcError, match=r"stays open \(File too large\)") as raised:
        close_round(serve)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    failing = status(serve)
    assert failing.pop("failing_since") is not None
    # It was to be closed because somebody asked for it; its time is not over.
    assert failing == {"folder": str(folder), "reason": "File too large", "rounds_overdue": 0}
    text = typed("status", "--aggregator", serve.private).stdout
    assert "When that is mended, close the round again." in text
    assert list(folder.rglob("*.parquet*")) == []
    resource.prlimit(serve.pid, resource.RLIMIT_FSIZE, unlimited)
    answer(serve, bundle, KEPT, [0] * 10)
    assert close_round(serve).n == N + 10
    assert status(serve)["failing_since"] is None
    found = recounted(serve, folder, folder.with_name("store"))
    assert "n = 2,010" in found
    assert "the same as counted live, bit for bit" in found
    forgotten_counts_are_not_told_as_none(serve, folder)
    assert serve.terminate() == 0
    assert any("File too large" in line for line in serve.lines)


def forgotten_counts_are_not_told_as_none(serve: ServeProcess, folder: Path) -> None:
    """Of such a round nobody says that no report came: the store does not know."""
    store = folder.with_name("store")
    assert typed("forget", KEPT, "--counts", "--yes", "--store", store).returncode == 0
    asked = ("--aggregator", serve.private)
    empty = "closed with no reports, or its counts were forgotten"
    assert typed("close", KEPT, *asked).stdout == f"{KEPT}, round 0: was {empty}\n"
    assert f"no figures: the round {empty}\n" in typed("estimate", KEPT, *asked).stdout
    summed = typed("query", KEPT, "value 1=1", *asked).stdout
    assert f"no figures: round 0 of {KEPT} {empty}\n" in summed
    ran = typed("recount", folder, *asked, "--store", store)
    assert ran.returncode == 1
    for who in ("store", "aggregator"):
        assert f"the {who} has no counts of it: they were forgotten, or never there" in ran.stderr


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
        until(path.exists)
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


def test_rounds_that_wait_for_the_archive_are_told_until_it_is_mended(
    operator: Operator, bundle: Bundle, file: Path, folder: Path
) -> None:
    """Those of 1970; something else is where the metric's folder should be."""
    store, metric = file.with_name("store"), bundle.metrics[OPEN]
    with closing(Counting(bundle, str(store), None)) as counting:
        for number in (0, 1):
            counting.count(OPEN, [reports_of(metric, 30)], number=number)
    obstacle = path_of(folder, metric.digest, 0).parent.parent
    folder.mkdir()
    obstacle.touch()
    flags = ["--archive", str(folder), "--metrics-listen", "0"]
    with ServeProcess(operator, file, store, flags=flags) as serve:
        until(lambda: scraped(serve)["rounds_overdue"] == "2.0")
        assert scraped(serve)["failing"] == "1.0"
        failing = status(serve)
        assert (failing["reason"], failing["rounds_overdue"]) == ("File exists", 2)
        text = typed("status", "--aggregator", serve.private).stdout
        since = failing["failing_since"]
        assert text.startswith(f"ROUNDS CANNOT BE ARCHIVED since {since}: File exists. See to")
        assert "2 rounds wait to be closed, and are tried again every minute.\n" in text
        found = looked_at(serve, store, "--archive", folder)
        assert found[0] == f"ok: {folder} can be written"
        assert found[-1].startswith(f"problem: rounds cannot be archived since {since}")
        obstacle.unlink()
        # Whoever asks is obeyed at once, and then the rest need not wait for their minute.
        assert typed("close", OPEN, "--round", 1, "--aggregator", serve.private).returncode == 0
        until(lambda: scraped(serve) == {"failing": "0.0", "rounds_overdue": "0.0"})
        assert [place.round for place in places(folder)] == [0, 1]
        assert status(serve) == {
            "folder": str(folder),
            "failing_since": None,
            "reason": None,
            "rounds_overdue": 0,
        }
        text = typed("status", "--aggregator", serve.private).stdout
        assert text.startswith("state ")
        assert re.search(f"^archive +{re.escape(str(folder))}$", text, re.MULTILINE)
        found = looked_at(serve, store, "--archive", folder)
        assert all(line.startswith("ok: ") for line in found), found
        # It is told, too, where another folder was looked at than the one that is used.
        assert "which was not looked at; give" in looked_at(serve, store)[-1]
        elsewhere = looked_at(serve, store, "--archive", file.with_name("other"))[-1]
        assert elsewhere.startswith(f"warning: it archives rounds in {folder}, and not in ")
        assert serve.terminate() == 0
    assert any("is archived now" in line for line in serve.lines)


def test_what_cannot_be_archived_is_found_at_the_start(
    operator: Operator, file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("")
    with pytest.raises(ServeFailed, match="give --archive a folder that can be written"):
        serving(operator, file, folder)
    monkeypatch.setattr(errors, "find_spec", lambda _: None)
    with pytest.raises(errors.ArchiveError, match=r"needs duckdb: pip install 'hubbub\[archive\]'"):
        errors.require_libraries()
