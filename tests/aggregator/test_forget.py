"""`hubbub forget`: what was kept is gone, and what must stay is there."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import grpc
import pytest

from hubbub.bundle import Bundle
from hubbub_aggregator.archive.files import path_of
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services.candidates import Decoder
from hubbub_aggregator.store import ReportsForgotten, Store
from tests.aggregator.archives import OPEN, Counting, Report, contract, reports_of
from tests.aggregator.stores import run
from tests.bundles import Operator, make_bundle, make_metric
from tests.typed import Ran, typed

OTHER = "symmetric-unary"
COUNTED = "counted"


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(
        operator, contract(OPEN), contract(OTHER), make_metric(COUNTED, source=COUNTED)
    )


@pytest.fixture
def reports(bundle: Bundle) -> list[Report]:
    return reports_of(bundle.metrics[OPEN], 60)


@pytest.fixture
def counting(
    bundle: Bundle, location: str, tmp_path: Path, reports: list[Report]
) -> Iterator[Counting]:
    """A closed round and an open one of one metric, and a closed one of another."""
    with closing(Counting(bundle, location, tmp_path / "archive")) as counting:
        counting.count(OPEN, [reports[:30], reports[30:40]])
        counting.close_round(OPEN)
        counting.count(OPEN, [reports[40:]], number=1)
        counting.count(OTHER, [reports_of(bundle.metrics[OTHER], 20)])
        counting.close_round(OTHER)
        yield counting


def forget(location: str, tmp_path: Path, *flags: str) -> Ran:
    return typed("forget", OPEN, "--store", location, "--archive", tmp_path / "archive", *flags)


def sizes(counting: Counting, name: str, number: int = 0) -> int:
    """How many reports the store has of a round."""
    digest = counting.bundle.metrics[name].digest
    found = run(
        counting.store,
        "SELECT retained.n FROM retained JOIN round ON round.id = round_id "
        "WHERE digest = :digest AND number = :number",
        {"digest": digest, "number": number},
    )
    return sum(n for (n,) in found)


def test_only_what_was_kept_goes(counting: Counting, location: str, tmp_path: Path) -> None:
    ran = forget(location, tmp_path, "--yes")
    assert ran.returncode == 0, ran.stderr
    assert "40 reports in" in ran.stdout
    assert "keeps the reports of round 1, which can be forgotten when closed" in ran.stderr
    assert [sizes(counting, OPEN), sizes(counting, OPEN, 1), sizes(counting, OTHER)] == [0, 20, 20]
    digest = counting.bundle.metrics[OTHER].digest.hex()
    assert os.listdir(tmp_path / "archive") == [f"digest={digest}"]
    published = counting.store.published(counting.bundle.metrics[OPEN].digest, 0)
    assert published is not None
    assert published.snapshot is not None
    assert published.snapshot.tally.n == 40
    again = forget(location, tmp_path, "--yes")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == (
        f"{OPEN}: the reports of round 1 can be forgotten when closed; run `hubbub close` first\n"
    )
    counting.close_round(OPEN, 1)
    assert "20 reports in" in forget(location, tmp_path, "--yes").stdout
    last = forget(location, tmp_path, "--yes")
    assert last.stdout == f"{OPEN}: nothing is kept that could be forgotten\n"


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_a_metric_that_retains_nothing_has_its_counts_alone(
    counting: Counting, location: str
) -> None:
    def said(*flags: str) -> tuple[str, str]:
        ran = typed("forget", COUNTED, "--store", location, "--yes", *flags)
        assert ran.returncode == 0
        return ran.stdout, ran.stderr

    counting.count(COUNTED, [reports_of(counting.bundle.metrics[COUNTED], 20)])
    none = f"{COUNTED} keeps no reports; --counts would delete its counts\n"
    assert said() == (none, "")
    first = f"{COUNTED}: the counts of round 0 can be forgotten when closed; run `hubbub close`"
    assert said("--counts") == (f"{first} first\n", "")
    counting.close_round(COUNTED)
    assert said() == (none, "")
    deleted, remarks = said("--counts")
    assert deleted == f"{COUNTED}: the counts of round 0\n{COUNTED}: forgotten\n"
    assert remarks == ""
    assert said("--counts") == (f"{COUNTED}: nothing is kept that could be forgotten\n", "")


def test_the_file_of_an_open_round_stays(counting: Counting, location: str, tmp_path: Path) -> None:
    """Whoever closes it may be writing it at this moment."""
    digest = counting.bundle.metrics[OPEN].digest
    closed, still_open = (path_of(tmp_path / "archive", digest, number) for number in (0, 1))
    still_open.parent.mkdir()
    still_open.write_bytes(closed.read_bytes())
    assert forget(location, tmp_path, "--yes").returncode == 0
    assert (closed.exists(), still_open.exists()) == (False, True)


def test_counts_go_too_if_so_asked(
    counting: Counting, location: str, tmp_path: Path, reports: list[Report]
) -> None:
    ran = forget(location, tmp_path, "--yes", "--counts")
    assert "the counts of round 0" in ran.stdout
    published = counting.store.published(counting.bundle.metrics[OPEN].digest, 0)
    assert published is not None
    assert (published.closed, published.snapshot) == (True, None)
    # It takes no report again, and its name means what it did.
    assert counting.count(OPEN, [reports[:5]]) == [None]
    assert [metric.name for metric in counting.store.metrics()] == [COUNTED, OPEN, OTHER]
    # The open round closes as it would have.
    assert counting.close_round(OPEN, 1) == 20


def test_readers_are_told(counting: Counting, location: str, tmp_path: Path) -> None:
    metric = counting.catalogue.by_name[OPEN]
    published = counting.store.published(metric.digest, 0)
    assert published is not None
    forget(location, tmp_path, "--yes")
    with pytest.raises(ReportsForgotten, match="round 0 were forgotten"):
        list(counting.store.retained(metric.digest, 0, 40, metric.oracle.payload_size))
    with pytest.raises(Refused, match="were forgotten; `hubbub recount`") as raised:
        Decoder(counting.store).figures(
            metric,
            0,
            published.snapshot,
            ["tea"],
            closed=True,
            target="respondents",
            level=0.95,
            wanted=lambda: True,
        )
    assert raised.value.code is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("answer", "left"), [(True, 0), (False, 40)])
def test_it_asks(
    counting: Counting, location: str, tmp_path: Path, answer: bool, left: int
) -> None:
    with mock.patch("typer.confirm", return_value=answer) as asked:
        assert forget(location, tmp_path).returncode == 0
    asked.assert_called_once_with("Delete this for good?")
    assert sizes(counting, OPEN) == left


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_without_an_answer_nothing_goes(
    counting: Counting, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    ran = forget(location, tmp_path)
    assert (ran.returncode, ran.stdout[-1]) == (1, "\n")
    assert ran.stderr == (
        f"hubbub: {OPEN} keeps the reports of round 1, which can be forgotten when closed\n"
        f"hubbub: nothing was forgotten: nobody answered; --yes answers beforehand\n"
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert forget(location, tmp_path).stdout.endswith(f"{OPEN}: nothing was forgotten\n")
    assert sizes(counting, OPEN) == 40


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_no_byte_is_left_in_an_sqlite_store(
    counting: Counting, location: str, tmp_path: Path, reports: list[Report]
) -> None:
    """While the aggregator has it open."""

    def left() -> tuple[int, int]:
        files = [*tmp_path.glob("store.sqlite3*"), *(tmp_path / "archive").rglob("*.parquet")]
        data = b"".join(path.read_bytes() for path in files)
        return sum(p in data for _, p in reports[:40]), sum(i in data for i, _ in reports[:40])

    assert left() == (40, 40)
    forget(location, tmp_path, "--yes")
    assert left() == (0, 0)


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_an_empty_archive_is_not_the_folder_one_is_in(
    counting: Counting, location: str, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    path = path_of(archive, counting.bundle.metrics[OPEN].digest, 0)
    ran = typed("forget", OPEN, "--store", location, "--archive", "", "--yes", cwd=archive)
    assert ran.returncode == 0
    assert f"{OPEN}: 40 reports in {counting.store.location}\n" in ran.stdout
    # Of metrics that retain nothing, nothing is archived.
    assert "hubbub: no archive was looked at; give --archive, if `hubbub serve` has" in ran.stderr
    assert path.exists()


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_what_cannot_be_deleted_in_the_archive_keeps_nothing_else(
    counting: Counting, location: str, tmp_path: Path, reports: list[Report]
) -> None:
    counting.close_round(OPEN, 1)
    digest = counting.bundle.metrics[OPEN].digest
    first, second = (path_of(tmp_path / "archive", digest, number).parent for number in (0, 1))
    first.rename(tmp_path / "elsewhere")
    first.symlink_to(tmp_path / "elsewhere")
    ran = forget(location, tmp_path, "--yes")
    assert ran.returncode == 1
    assert f"{OPEN}: forgotten" not in ran.stdout
    assert ran.stderr == (
        f"hubbub: {OPEN} is forgotten in the store, with 60 reports, but not all of it in the "
        f"archive: {first}: is a link; delete what it leads to, and it; mend that, and run the "
        f"same again\n"
    )
    # All else is gone, from the store's files too.
    assert not second.exists()
    data = b"".join(path.read_bytes() for path in tmp_path.glob("store.sqlite3*"))
    assert sum(p in data for _, p in reports) == 0
    first.unlink()
    (tmp_path / "elsewhere").rename(first)
    assert forget(location, tmp_path, "--yes").returncode == 0
    assert not first.parent.exists()


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_a_metrics_folder_may_be_a_link(counting: Counting, location: str, tmp_path: Path) -> None:
    folder = path_of(tmp_path / "archive", counting.bundle.metrics[OPEN].digest, 0).parents[1]
    folder.rename(tmp_path / "larger")
    folder.symlink_to(tmp_path / "larger")
    ran = forget(location, tmp_path, "--yes")
    assert (ran.returncode, os.listdir(tmp_path / "larger")) == (0, [])
    assert "forgotten, with 40 reports" in ran.stdout
    assert folder.is_symlink()


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_the_same_again_overwrites_what_a_reader_kept(
    counting: Counting, location: str, tmp_path: Path, reports: list[Report]
) -> None:
    def left() -> int:
        data = b"".join(path.read_bytes() for path in tmp_path.glob("store.sqlite3*"))
        return sum(p in data for _, p in reports[:40])

    with mock.patch.object(Store, "scrub", return_value=False):
        for _ in range(2):
            assert "the same command again" in forget(location, tmp_path, "--yes").stderr
    assert left() > 0
    assert forget(location, tmp_path, "--yes").returncode == 0
    assert left() == 0


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
def test_closing_overwrites_the_ids(
    counting: Counting, location: str, tmp_path: Path, reports: list[Report]
) -> None:
    counting.close_round(OPEN, 1)
    assert counting.store.scrub()
    data = b"".join(path.read_bytes() for path in tmp_path.glob("store.sqlite3*"))
    assert sum(i in data for i, _ in reports) == 0


@pytest.mark.parametrize("location", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nothing"], f"knows no metric 'nothing'; it knows: {COUNTED}, {OPEN}, {OTHER}\n"),
        ([OPEN, "--store", "."], "is not a Hubbub store"),
        ([OPEN, "--archive", "nowhere"], "there is no archive folder nowhere; give the one"),
        ([OPEN, "--store", "nowhere"], "there is no store"),
    ],
)
def test_one_line_says_what_is_wrong(
    counting: Counting, location: str, tmp_path: Path, arguments: list[str], text: str
) -> None:
    ran = typed("forget", "--store", location, *arguments, "--yes", cwd=tmp_path)
    assert ran.returncode == 1
    assert text in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not (tmp_path / "nowhere").exists()
