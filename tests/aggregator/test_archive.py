"""The archive: reports of closed rounds, which come to what was counted live, bit for bit."""

import base64
import errno
import json
import logging
import os
import stat
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub_aggregator import unarchived
from hubbub_aggregator.archive import ArchiveError, reading, sorting, writing
from hubbub_aggregator.archive.comparing import Comparison, InStore
from hubbub_aggregator.archive.files import path_of, places
from hubbub_aggregator.archive.reading import open_reader, open_round
from hubbub_aggregator.archive.recount import Recounted, recount
from hubbub_aggregator.store import KeptReports, StoreDamaged
from tests.aggregator.archives import (
    NAMES,
    NOW,
    OPEN,
    ROUNDS,
    Counting,
    Report,
    archived,
    contract,
    reports_of,
    shuffled,
)
from tests.aggregator.stores import run
from tests.aggregator.waiting import Waiting
from tests.bundles import Operator, make_bundle, make_metric
from tests.processes import COMMAND
from tests.typed import typed

CANDIDATES = ["tea", "coffee"]
NAME = "randomised-response"
SAME = Comparison()


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(
        operator, *(contract(name) for name in NAMES), make_metric("counted", source="counted")
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


@pytest.fixture
def counting(bundle: Bundle, location: str, folder: Path) -> Iterator[Counting]:
    """On each kind of store in turn."""
    with closing(Counting(bundle, location, folder)) as counting:
        yield counting


@pytest.fixture
def one(bundle: Bundle, tmp_path: Path, folder: Path) -> Iterator[Counting]:
    """In an SQLite file."""
    with closing(Counting(bundle, str(tmp_path / "store"), folder)) as counting:
        yield counting


def recounted(folder: Path) -> list[Recounted]:
    with closing(open_reader()) as reader:
        return [recount(open_round(place), reader, CANDIDATES) for place in places(folder)]


class TestRecounting:
    def test_equals_the_live_tallies_of_every_mechanism(
        self, counting: Counting, folder: Path
    ) -> None:
        for name in NAMES:
            reports = reports_of(counting.bundle.metrics[name], 120)
            # A repeated report is not there twice.
            counting.count(name, [reports[:50], reports[50:51], reports[40:90], reports[90:]])
            other = reports_of(counting.bundle.metrics[name], 30)
            counting.count(name, [other], number=2)
            assert (counting.close_round(name), counting.close_round(name, 2)) == (120, 30)
        found = recounted(folder)
        assert [(one.round.metric.name, one.round.place.round) for one in found] == sorted(
            ((name, number) for name in NAMES for number in (0, 2)),
            key=lambda one: (counting.bundle.metrics[one[0]].digest, one[1]),
        )
        for one in found:
            published = counting.store.published(one.round.metric.digest, one.round.place.round)
            assert published is not None
            assert published.snapshot is not None
            live = published.snapshot.tally
            assert (one.tally.n, one.tally.to_bytes()) == (live.n, live.to_bytes())
            assert InStore(counting.store).compare(one) == SAME
        assert run(counting.store, "SELECT count(*) FROM counted_ids") == [(0,)]

    def test_counted_by_two_and_closed_by_both_at_once_it_is_archived_once(
        self, bundle: Bundle, location: str, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reports = reports_of(bundle.metrics[NAME], 100)
        written: list[int] = []
        write = writing.Archive.write

        def noted(self: writing.Archive, metric: Metric, number: int, kept: KeptReports) -> None:
            written.append(kept.n)
            write(self, metric, number, kept)

        monkeypatch.setattr(writing.Archive, "write", noted)
        with (
            closing(Counting(bundle, location, folder)) as first,
            closing(Counting(bundle, location, folder, writer=2)) as second,
            ThreadPoolExecutor(2) as pool,
        ):
            first.count(NAME, [reports[:40]])
            second.count(NAME, [reports[30:70]])
            first.count(NAME, [reports[60:]])
            closed = list(pool.map(lambda one: one.close_round(NAME), (first, second)))
            assert (closed, written) == ([100, 100], [100])
            (found,) = recounted(folder)
            assert InStore(first.store).compare(found) == SAME

    def test_in_parts_and_batches_it_is_the_same(
        self, one: Counting, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sorting, "_PART", 2_000)
        monkeypatch.setattr(writing, "_ROW_GROUP", 300)
        monkeypatch.setattr(reading, "_BATCH", 1)
        monkeypatch.setattr(reading, "_FEWEST_ROWS", 7)
        one.count(OPEN, [reports_of(one.bundle.metrics[OPEN], 500)])
        one.close_round(OPEN)
        (found,) = recounted(folder)
        assert InStore(one.store).compare(found) == SAME
        assert parquet.ParquetFile(found.round.place.path).num_row_groups > 10

    def test_sees_what_differs(self, one: Counting, folder: Path) -> None:
        one.count(NAME, [reports_of(one.bundle.metrics[NAME], 20)])
        one.close_round(NAME)
        (found,) = recounted(folder)
        live = InStore(one.store)

        def difference() -> str | None:
            return live.compare(found).difference

        swapped = run(one.store, "SELECT cells FROM snapshot")[0][0]
        cells = swapped[8:] + swapped[:8]
        run(one.store, "UPDATE snapshot SET cells = :cells", {"cells": cells})
        assert (difference() is None) == (cells == swapped)
        run(one.store, "UPDATE snapshot SET plain = 19")
        assert difference() == "the store counted 19 unsealed reports, not 20"
        run(one.store, "UPDATE snapshot SET n = 21")
        assert difference() == "the store counted 21 reports, not 20"
        run(one.store, "UPDATE round SET closed_at = NULL")
        still_open = (
            "the store has it open still, and closed rounds alone can be compared; `hubbub close "
            "randomised-response --round 0` closes it before the aggregator does, after "
            "1970-01-01T00:02:00.000Z"
        )
        assert difference() == still_open
        # Before its first snapshot, too.
        run(one.store, "DELETE FROM snapshot")
        assert difference() == still_open
        run(one.store, "UPDATE round SET closed_at = 1")
        assert difference() == "the store has no counts of it: they were forgotten, or never there"
        run(one.store, "UPDATE round SET number = 1")
        assert difference() == (
            "the store knows no such round; is it the one that it was archived from?"
        )

    def test_of_an_open_domain_it_compares_the_reports(self, one: Counting, folder: Path) -> None:
        """Which have no cells: as many others would come to the same tally."""
        one.count(OPEN, [reports_of(one.bundle.metrics[OPEN], 20)])
        one.close_round(OPEN)
        (found,) = recounted(folder)
        live = InStore(one.store)
        (kept,) = run(one.store, "SELECT payloads FROM retained")[0]
        size = len(kept) // 20
        backwards = b"".join(kept[at : at + size] for at in range(0, len(kept), size)[::-1])
        run(one.store, "UPDATE retained SET payloads = :kept", {"kept": backwards})
        assert live.compare(found) == SAME
        run(one.store, "UPDATE retained SET payloads = :kept", {"kept": kept[:-size] + kept[:size]})
        assert live.compare(found) == Comparison("the store has other reports")
        one.store.forget(found.round.metric.digest, counts=False)
        assert live.compare(found) == Comparison(gap="the store has forgotten its reports")

    def test_says_how_many_came_unsealed(self, one: Counting, folder: Path) -> None:
        metric = one.catalogue.by_name[NAME]
        reports = [report_id + payload for report_id, payload in reports_of(metric.metric, 30)]
        sealed = Waiting(metric, 0)
        sealed.open(reports[:20])
        plain = Waiting(metric, 0, plain=b"".join(reports[20:]))
        one.committer.commit([sealed, plain])
        assert [sealed.wait(), plain.wait()] == [b"\1" * 20, b"\1" * 10]
        one.close_round(NAME)
        (found,) = recounted(folder)
        assert (found.tally.n, found.tally.plain) == (30, 10)
        assert InStore(one.store).compare(found) == SAME

    def test_few_reports_are_in_memory_at_a_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sorting, "_PART", 1 << 19)
        size, n, blocks = 24, 10_000, 80

        def read(_: int) -> Iterator[sorting.Rows]:
            for _ in range(blocks):
                yield np.frombuffer(os.urandom(n * (16 + size)), np.uint8).reshape(n, -1)

        last, found = b"", 0
        tracemalloc.start()
        try:
            for rows in sorting.sorted_parts(KeptReports(n * blocks, 0, read), size, tmp_path):
                assert last < rows[0, :16].tobytes() < rows[-1, :16].tobytes()
                last, found = rows[-1, :16].tobytes(), found + len(rows)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert found == n * blocks
        # Of 32 MB.
        assert peak < 10e6
        assert os.listdir(tmp_path) == []


class TestAFile:
    @pytest.mark.parametrize("name", [NAME, OPEN])
    def test_tells_nothing_of_arrival(
        self, bundle: Bundle, location: str, tmp_path: Path, name: str
    ) -> None:
        """The same reports in another order and in other commits make the same bytes."""
        reports = reports_of(bundle.metrics[name], 40)
        again = shuffled(reports)
        alone = [[report] for report in shuffled(reports)]
        files = {
            archived(bundle, place, tmp_path / folder, name, commits)
            for folder, place, commits in (
                ("a", location, [reports]),
                ("b", str(tmp_path / "b.sqlite3"), [again[:1], again[1:25], again[25:]]),
                ("c", str(tmp_path / "c.sqlite3"), alone),
            )
        }
        assert len(files) == 1

    def test_says_what_it_is_and_is_private(self, one: Counting, folder: Path) -> None:
        metric = one.bundle.metrics[NAME]
        reports = reports_of(metric, 30)
        one.count(NAME, [reports], number=1)
        one.close_round(NAME, 1)
        path = folder / f"digest={metric.digest.hex()}" / "round=1" / "reports.parquet"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for private in (folder, *path.parents[:2]):
            assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert os.listdir(path.parent) == ["reports.parquet"]
        table = parquet.read_table(path, partitioning=None)
        assert table.schema.types == [pa.binary(16), pa.binary(metric.mechanism.payload_size)]
        rows = [(row["id"], row["payload"]) for row in table.to_pylist()]
        assert rows == sorted(reports)
        said = {
            key.decode(): value.decode()
            for key, value in parquet.ParquetFile(path).metadata.metadata.items()
        }
        assert set(said) == {
            f"hubbub.{name}"
            for name in (
                *("format", "version", "metric", "contract", "digest", "round", "n"),
                *("plain", "rows_sha256"),
            )
        }
        assert (said["hubbub.n"], said["hubbub.round"]) == ("30", "1")

    def test_is_made_only_where_the_contract_allows_it(self, one: Counting, folder: Path) -> None:
        one.count("counted", [reports_of(one.bundle.metrics["counted"], 10)])
        assert one.close_round("counted") == 10
        assert os.listdir(folder) == []

    def test_is_not_made_of_nothing(self, one: Counting, folder: Path) -> None:
        assert one.close_round(NAME) == 0
        assert os.listdir(folder) == []

    def test_is_not_made_unless_asked_for(self, bundle: Bundle, tmp_path: Path) -> None:
        with closing(Counting(bundle, str(tmp_path / "store"), None)) as counting:
            counting.count(NAME, [reports_of(bundle.metrics[NAME], 10)])
            assert counting.close_round(NAME) == 10
        assert os.listdir(tmp_path) == ["store"]


class TestClosing:
    @pytest.fixture
    def reports(self, bundle: Bundle) -> list[Report]:
        return reports_of(bundle.metrics[NAME], 50)

    def test_a_full_disk_leaves_the_round_open(
        self,
        counting: Counting,
        folder: Path,
        reports: list[Report],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        counting.count(NAME, [reports[:40]])
        metric = counting.catalogue.by_name[NAME]
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(ArchiveError, match=r"stays open .*No space left on device"):
                counting.close_round(NAME)
        assert counting.store.open_rounds() == [(metric.digest, 0)]
        assert list(folder.rglob("*.parquet*")) == []
        # Those whose time is over are not tried again at once; whoever asks for it is obeyed.
        # That others are closed, of which nothing is kept, changes nothing.
        counting.close_round("counted")
        counting.closer.close_due(NOW + 1)
        assert counting.store.open_rounds() == [(metric.digest, 0)]
        assert counting.closer.archive_failing == (NOW, "No space left on device", 1)
        counting.count(NAME, [reports[30:]])
        assert counting.close_round(NAME) == 50
        assert counting.closer.archive_failing is None
        (found,) = recounted(folder)
        assert InStore(counting.store).compare(found) == SAME

    def test_a_round_that_cannot_be_archived_keeps_no_other_from_it(
        self,
        one: Counting,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """There are files of the first two already, with more reports than the store has."""
        metric = one.bundle.metrics[NAME]
        for number in (0, 1):
            one.count(NAME, [reports_of(metric, 20)], number=number)
        with closing(Counting(one.bundle, f"{folder}.older", folder)) as older:
            for number in (0, 1):
                older.count(NAME, [reports_of(metric, 30)], number=number)
                older.close_round(NAME, number)
        one.closer.close_due(NOW)
        reason = "a file that is there has more reports than the store"
        assert one.closer.archive_failing == (NOW, reason, 2)
        one.count(NAME, [reports_of(metric, 20)], number=2)
        # As if every minute's rest were over.
        monkeypatch.setattr(unarchived, "_REST", 0.0)
        one.closer._unarchived._rest = None
        for _ in range(2):
            one.closer.close_due(NOW + 60)
            assert one.store.open_rounds() == [(metric.digest, 0), (metric.digest, 1)]
        assert one.closer.archive_failing == (NOW, reason, 2)
        # Each says once which file it is.
        logged = [record.getMessage() for record in caplog.records]
        for number in (0, 1):
            path = path_of(folder, metric.digest, number)
            assert sum(str(path) in message for message in logged) == 1
            path.unlink()
        one.closer.close_due(NOW + 120)
        assert (one.store.open_rounds(), one.closer.archive_failing) == ([], None)

    def test_a_round_that_another_aggregator_archives_is_overdue_no_longer(
        self, bundle: Bundle, location: str, folder: Path, reports: list[Report]
    ) -> None:
        with (
            closing(Counting(bundle, location, folder, writer=1)) as one,
            closing(Counting(bundle, location, folder.with_name("other"), writer=2)) as other,
        ):
            one.count(NAME, [reports])
            folder.rename(folder.with_name("away"))
            one.closer.close_due(NOW)
            assert one.closer.archive_failing == (NOW, "No such file or directory", 1)
            other.closer.close_due(NOW)
            one.closer.close_due(NOW)
            assert one.closer.archive_failing is None

    def test_an_archive_that_is_away_leaves_the_round_open(
        self, one: Counting, folder: Path, reports: list[Report]
    ) -> None:
        """Its disk may be mounted again; it is not made where that would be."""
        one.count(NAME, [reports])
        folder.rename(folder.with_name("away"))
        with pytest.raises(ArchiveError, match=r"stays open .*No such file or directory"):
            one.close_round(NAME)
        assert not folder.exists()
        folder.with_name("away").rename(folder)
        assert one.close_round(NAME) == 50
        assert len(recounted(folder)) == 1

    def test_a_folder_that_may_not_be_written_is_found_at_the_start(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Root may write anywhere.
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(ArchiveError, match="cannot be written by this user"):
            writing.Archive(tmp_path)

    def test_only_the_folder_itself_is_made(self, tmp_path: Path) -> None:
        """What should lead to it may be mistyped, or on a disk that is away."""
        away = tmp_path / "away"
        with pytest.raises(ArchiveError, match=f"there is no folder {away}; mount its disk"):
            writing.Archive(away / "archive")
        assert os.listdir(tmp_path) == []
        assert writing.Archive(away).folder.is_dir()

    def test_killed_when_the_file_is_there_it_is_made_again(
        self, bundle: Bundle, location: str, folder: Path, reports: list[Report]
    ) -> None:
        """Between the file and the end of the ids: nothing is lost, and nothing in it changes."""
        with closing(Counting(bundle, location, folder)) as counting:
            counting.count(NAME, [reports])
            digest = bundle.metrics[NAME].digest

            def killed(kept: Any) -> None:
                writing.Archive(folder).write(bundle.metrics[NAME], 0, kept)
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                counting.store.close_round(digest, 0, now=NOW, keep=killed)
        path = path_of(folder, digest, 0)
        before = path.read_bytes()
        # Killed a little earlier it leaves this.
        half = path.with_name(f".{path.name}.abc123")
        half.write_bytes(before[:100])
        with closing(Counting(bundle, location, folder)) as counting:
            assert counting.store.open_rounds() == [(digest, 0)]
            assert counting.count(NAME, [reports[:1]]) == [b"\2"]
            assert counting.close_round(NAME) == 50
            assert path.read_bytes() == before
            assert not half.exists()
            # And closed for good it stays as it is.
            path.unlink()
            assert counting.close_round(NAME) == 50
        assert not path.exists()

    def test_a_file_with_more_reports_is_not_replaced(
        self, bundle: Bundle, tmp_path: Path, folder: Path, reports: list[Report]
    ) -> None:
        """A store that was restored from before the round closed has fewer."""
        whole = archived(bundle, str(tmp_path / "whole"), folder, NAME, [reports])
        path = path_of(folder, bundle.metrics[NAME].digest, 0)
        with closing(Counting(bundle, str(tmp_path / "restored"), folder)) as counting:
            counting.count(NAME, [reports[:40]])
            with pytest.raises(ArchiveError, match="has 50 reports, and this store 40 of that"):
                counting.close_round(NAME)
            assert path.read_bytes() == whole

    @pytest.mark.parametrize(
        "damage",
        [
            lambda file: file[:-1],
            lambda file: file[:-100] + b"\xff" * 92 + file[-8:],
            lambda _: b"",
            lambda _: b"somebody's notes",
        ],
    )
    def test_a_file_that_cannot_be_read_is_kept_beside_the_new_one(
        self,
        bundle: Bundle,
        tmp_path: Path,
        reports: list[Report],
        damage: Callable[[bytes], bytes],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """It may have had more reports than the store: one that was restored, say."""
        folder = tmp_path / "archive"
        whole = archived(bundle, str(tmp_path / "whole"), folder, NAME, [reports])
        path = path_of(folder, bundle.metrics[NAME].digest, 0)
        aside = [path.with_name(f"reports.parquet.damaged-{number}") for number in (1, 2)]
        for number, kept in enumerate(aside):
            path.write_bytes(damage(whole))
            with caplog.at_level(logging.WARNING):
                archived(bundle, str(tmp_path / f"store{number}"), folder, NAME, [reports[:40]])
            assert kept.read_bytes() == damage(whole)
            assert f"{path} cannot be read" in caplog.messages[-1]
            assert f"kept as {kept}: restore it" in caplog.messages[-1]
        assert sorted(os.listdir(path.parent)) == [path.name, aside[0].name, aside[1].name]
        assert [found.tally.n for found in recounted(folder)] == [40]

    def test_what_is_no_file_is_kept_beside_the_new_one(
        self, one: Counting, folder: Path, reports: list[Report]
    ) -> None:
        """And nobody waits for what may be written to a pipe."""
        path = path_of(folder, one.bundle.metrics[NAME].digest, 0)
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
        one.count(NAME, [reports])
        assert one.close_round(NAME) == 50
        assert path.with_name("reports.parquet.damaged-1").is_fifo()
        assert [found.tally.n for found in recounted(folder)] == [50]

    def test_what_an_earlier_version_counted_is_closed_without(
        self,
        counting: Counting,
        folder: Path,
        reports: list[Report],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        counting.count(NAME, [reports])
        run(counting.store, "UPDATE retained SET ids_row = NULL")
        with caplog.at_level(logging.WARNING):
            assert counting.close_round(NAME) == 50
        assert "is not archived: some of its reports were counted by an earlier" in caplog.text
        assert list(folder.rglob("*.parquet*")) == []

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM retained",
            "UPDATE retained SET n = n - 1",
            "UPDATE counted_ids SET ids = substr(ids, 2)",
        ],
    )
    def test_a_damaged_store_closes_nothing(
        self, one: Counting, folder: Path, reports: list[Report], damage: str
    ) -> None:
        one.count(NAME, [reports])
        run(one.store, damage)
        with pytest.raises(StoreDamaged, match="retained"):
            one.close_round(NAME)
        assert list(folder.rglob("*.parquet*")) == []


def rewritten(path: Path, change: Callable[[pa.Table, dict[str, str]], pa.Table]) -> None:
    """Change a file's rows, or what it says of itself, as somebody with a notebook would."""
    file = parquet.ParquetFile(path)
    said = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    table = change(file.read(), said)
    with parquet.ParquetWriter(path, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(said)


def says(**changed: str) -> Callable[[pa.Table, dict[str, str]], pa.Table]:
    def change(table: pa.Table, said: dict[str, str]) -> pa.Table:
        said.update({f"hubbub.{name}": value for name, value in changed.items()})
        return table

    return change


def twice(table: pa.Table, said: dict[str, str]) -> pa.Table:
    said["hubbub.n"] = "41"
    return pa.concat_tables([table.slice(0, 1), table])


def longer(table: pa.Table, _: dict[str, str]) -> pa.Table:
    payloads = [payload + b"\0" for payload in table["payload"].to_pylist()]
    return table.set_column(1, "payload", pa.array(payloads, pa.binary(2)))


def foreign(table: pa.Table, _: dict[str, str]) -> pa.Table:
    return table.set_column(1, "payload", pa.array([b"\xff"] * len(table), pa.binary(1)))


def other(table: pa.Table, _: dict[str, str]) -> pa.Table:
    payloads = [bytes([(payload[0] + 1) % 7]) for payload in table["payload"].to_pylist()]
    return table.set_column(1, "payload", pa.array(payloads, pa.binary(1)))


def missing(table: pa.Table, _: dict[str, str]) -> pa.Table:
    payloads = [None, *table["payload"].to_pylist()[1:]]
    return table.set_column(1, "payload", pa.array(payloads, pa.binary(1)))


class TestDamage:
    @pytest.fixture
    def path(self, one: Counting, folder: Path) -> Path:
        one.count(NAME, [reports_of(one.bundle.metrics[NAME], 40)])
        one.close_round(NAME)
        return path_of(folder, one.bundle.metrics[NAME].digest, 0)

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (lambda table, _: table.slice(0, 39), "says n '40', not 39"),
            (lambda table, _: table.take(list(range(39, -1, -1))), "not each above the one"),
            (twice, "not each above the one"),
            (longer, "not an id and a payload of 1 bytes"),
            (foreign, "a report that no device makes"),
            (other, "not those that were written"),
            (lambda table, _: table.drop(["id"]), "not an id and a payload"),
            (says(n="41"), "says n '41', not 40"),
            (says(round="1"), "is the file of round 1 of metric"),
            (says(round="?"), "says round '\\?', which its contract has not"),
            (says(digest="0" * 64), "says digest '0000"),
            (says(format="2"), "run a newer Hubbub"),
            (says(contract="?"), "not base64"),
            (says(contract="AAAA"), "no device accepts its contract"),
            (says(plain="41"), "says plain '41' of 40 reports"),
            (says(plain="-1"), "says plain '-1' of 40 reports"),
            (missing, "a value is missing"),
        ],
    )
    def test_what_was_changed_is_refused(
        self, path: Path, folder: Path, change: Any, text: str
    ) -> None:
        rewritten(path, change)
        with pytest.raises(ArchiveError, match=text) as raised:
            recounted(folder)
        assert str(raised.value).startswith(str(path))

    def test_every_byte_counts(self, path: Path, folder: Path) -> None:
        """Wherever a byte is changed, or the file ends, it is refused or says the same."""
        data = path.read_bytes()
        (before,) = recounted(folder)
        for at in [*range(0, len(data), 251), *range(len(data) - 8, len(data))]:
            for damaged in (data[:at], data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]):
                path.write_bytes(damaged)
                try:
                    (after,) = recounted(folder)
                except ArchiveError:
                    continue
                assert after.tally.to_bytes() == before.tally.to_bytes()

    def test_a_round_under_another_name_is_refused(self, path: Path, folder: Path) -> None:
        """Which says what it is, and where it belongs."""
        for moved in (
            path.parents[1] / "round=7" / path.name,
            folder / f"digest={'0' * 64}" / "round=0" / path.name,
        ):
            moved.parent.mkdir(parents=True)
            path.rename(moved)
            with pytest.raises(ArchiveError) as raised:
                recounted(folder)
            assert str(raised.value) == (
                f"{moved} is the file of round 0 of metric {NAME!r}, which belongs in "
                f"{path.parent}; move it there"
            )
            moved.rename(path)
        (found,) = recounted(folder)
        assert found.tally.n == 40

    def test_a_metric_that_does_not_allow_it_is_refused(
        self, one: Counting, path: Path, folder: Path
    ) -> None:
        metric = one.bundle.metrics["counted"]
        encoded = base64.b64encode(metric.contract).decode()
        rewritten(path, says(contract=encoded, digest=metric.digest.hex()))
        path.parent.parent.rename(folder / f"digest={metric.digest.hex()}")
        with pytest.raises(ArchiveError, match="whose contract does not allow it"):
            recounted(folder)

    @pytest.mark.parametrize("number", [ROUNDS, 10**18])
    def test_a_round_that_its_contract_has_not_is_refused(
        self, path: Path, folder: Path, number: int
    ) -> None:
        """Nor does a store ever see its number."""
        rewritten(path, says(round=str(number)))
        path.parent.rename(path.parent.with_name(f"round={number}"))
        with pytest.raises(ArchiveError, match="which its contract has not"):
            recounted(folder)

    @pytest.mark.parametrize("name", ["a[b]*?'c", "~", "ünï\n;"])
    def test_names_are_no_patterns(
        self, one: Counting, path: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path.parents[2].rename(tmp_path / name)
        monkeypatch.chdir(tmp_path)
        (found,) = recounted(Path(name))
        assert InStore(one.store).compare(found) == SAME

    def test_a_name_that_only_the_system_understands_is_refused(self, tmp_path: Path) -> None:
        strange = tmp_path / os.fsdecode(b"\xff")
        with pytest.raises(ArchiveError, match="is not UTF-8"):
            writing.Archive(strange)
        assert not strange.exists()
        with pytest.raises(ArchiveError, match="is not UTF-8"):
            list(places(strange))

    def test_a_folder_that_is_not_there_is_no_archive(self, tmp_path: Path) -> None:
        ran = typed("recount", "nowhere", cwd=tmp_path)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr == (
            "hubbub: there is no archive folder nowhere; give the one that `hubbub serve` has as "
            "--archive, or as HUBBUB_ARCHIVE\n"
        )

    def test_a_name_is_its_bytes_in_whatever_encoding_names_are(
        self, one: Counting, path: Path, tmp_path: Path
    ) -> None:
        """In the locale C without its UTF-8 mode Python takes names for ASCII."""
        one.close()
        folder = path.parents[2].rename(tmp_path / "ünï")
        store = (tmp_path / "store").rename(folder / "store")
        environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}

        def ran(*command: object) -> str:
            words = [COMMAND, *map(str, command), "--store", str(store)]
            return subprocess.run(
                words, check=False, env=environment, capture_output=True, text=True
            ).stdout

        assert "the same as counted live, bit for bit" in ran("recount", folder)
        looked_at = ran("doctor", "--archive", folder)
        assert "store is whole and can be written" in looked_at
        assert looked_at.count("can be written\nok       ") == 2
        ran("backup", folder / "copy")
        assert (folder / "copy").exists()

    def test_what_may_not_be_read_is_not_passed_over(
        self, path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def forbidden(_: Path) -> Iterator[Path]:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(Path, "iterdir", forbidden)
        with pytest.raises(PermissionError):
            list(places(folder))

    def test_other_files_are_not_the_archives(self, path: Path, folder: Path) -> None:
        for name in ("digest=00/round=0", f"{path.parents[1].name}/round=01", "round=0"):
            (folder / name).mkdir(parents=True)
            (folder / name / path.name).write_bytes(b"")
        (folder / "notes.txt").write_text("")
        assert [place.path for place in places(folder)] == [path]


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("nothing")])
def test_what_is_no_file_is_not_opened(
    one: Counting, folder: Path, make: Callable[[Path], None]
) -> None:
    """From a pipe nothing would ever come."""
    path = path_of(folder, one.bundle.metrics[NAME].digest, 0)
    path.parent.mkdir(parents=True)
    make(path)
    with pytest.raises(ArchiveError, match=r"reports\.parquet is no file; restore it from"):
        recounted(folder)


class TestCommand:
    @pytest.fixture
    def full(self, one: Counting, folder: Path) -> Path:
        for name in (NAME, OPEN):
            one.count(name, [reports_of(one.bundle.metrics[name], 40)])
            one.close_round(name)
        one.count(NAME, [reports_of(one.bundle.metrics[NAME], 20)], number=1)
        one.close_round(NAME, 1)
        return folder

    def test_table(self, full: Path, tmp_path: Path) -> None:
        ran = typed("recount", full, NAME, "--store", tmp_path / "store")
        assert (ran.returncode, ran.stderr) == (0, "")
        first, unsealed, second, *_ = ran.stdout.splitlines()
        assert first.startswith(f"{NAME}, round 0: n = 40; randomised-response, digest ")
        assert unsealed == "40 of these reports came unsealed: imported, not from a device"
        assert second == "the same as counted live, bit for bit"
        assert "round 1: n = 20" in ran.stdout
        assert "value 6" in ran.stdout

    def test_json_with_candidates(self, full: Path, tmp_path: Path) -> None:
        (tmp_path / "drinks.txt").write_text("tea\ncoffee\n")
        ran = typed(
            *("recount", full, OPEN, "--candidates", tmp_path / "drinks.txt"),
            *("--format", "json", "--store", f"sqlite:///{tmp_path}/store"),
        )
        (found,) = json.loads(ran.stdout)["rounds"]
        assert (found["n"], found["plain"], found["compared"]) == (40, 40, True)
        assert (found["differences"], found["gaps"]) == ([], [])
        tea, coffee = found["values"]
        assert (tea["value"], coffee["value"]) == ("tea", "coffee")
        assert tea["count"] > coffee["count"]

    def test_what_was_not_compared_is_said(self, one: Counting, full: Path, tmp_path: Path) -> None:
        one.store.forget(one.bundle.metrics[OPEN].digest, counts=False)
        ran = typed("recount", full, OPEN, "--store", tmp_path / "store")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "bit for bit" not in ran.stdout
        assert (
            "n is the same as counted live; nothing else was compared: the store has" in ran.stdout
        )

    def test_differences_are_said_and_are_a_failure(
        self, one: Counting, full: Path, tmp_path: Path
    ) -> None:
        run(one.store, "UPDATE snapshot SET n = n + 1")
        ran = typed("recount", full, NAME, "--round", 1, "--store", tmp_path / "store")
        assert ran.returncode == 1
        assert ran.stderr == (
            f"hubbub: round 1 of {NAME} differs: the store counted 21 reports, not 20\n"
        )

    def test_damaged_files_are_all_said_and_the_others_counted(
        self, one: Counting, full: Path, tmp_path: Path
    ) -> None:
        first, second = (path_of(full, one.bundle.metrics[NAME].digest, i) for i in (0, 1))
        opened = path_of(full, one.bundle.metrics[OPEN].digest, 0)
        # One is seen by its head, one by its rows.
        second.write_bytes(b"")
        rewritten(opened, lambda table, _: table.take(list(range(39, -1, -1))))
        ran = typed("recount", full, "--format", "json", "--store", tmp_path / "store")
        assert ran.returncode == 1
        found = {(row["metric"], row["round"]): row for row in json.loads(ran.stdout)["rounds"]}
        assert (len(found), found[NAME, 0]["error"], found[NAME, 0]["n"]) == (3, None, 40)
        assert found[NAME, 0]["compared"]
        for path, key in ((second, (NAME, 1)), (opened, (OPEN, 0))):
            assert found[key]["error"].startswith(f"{path} is damaged (")
            assert f"hubbub: {found[key]['error']}\n" in ran.stderr
        assert ran.stderr.count("\n") == 2
        # Of another metric, or of another round, nothing is said.
        ran = typed("recount", full, NAME)
        assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
        assert f"{NAME}, round 0: n = 40" in ran.stdout
        assert typed("recount", full, NAME, "--round", 0).returncode == 0
        # What nothing says the name of may be any metric's.
        first.unlink()
        ran = typed("recount", full, "--format", "json", "--round", 1, "elsewhere")
        (row,) = json.loads(ran.stdout)["rounds"]
        assert (ran.returncode, row["metric"], row["round"]) == (1, None, 1)

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (["nothing"], f"and what is in it: {OPEN}, {NAME}\n"),
            ([NAME, "--round", 2], f"holds no reports of round 2 of metric '{NAME}'; give"),
            ([NAME, "--candidates", "drinks.txt"], "leave out --candidates"),
            (["--store", "nowhere"], "there is no store"),
            (["--store", "drinks.txt"], "drinks.txt: is no SQLite database, and so no store; give"),
            (["--aggregator", "h\udcff:7444"], "an aggregator is at host:port, for example"),
        ],
    )
    def test_one_line_says_what_is_wrong(
        self, full: Path, tmp_path: Path, arguments: list[str], text: str
    ) -> None:
        (tmp_path / "drinks.txt").write_text("tea\n")
        ran = typed("recount", full, *arguments, cwd=tmp_path)
        assert ran.returncode == 1
        assert text in ran.stderr
        assert ran.stderr.count("\n") == 1

    def test_where_nothing_is_nothing_is_named(self, tmp_path: Path) -> None:
        ran = typed("recount", tmp_path)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr == (
            f"hubbub: {tmp_path} holds no reports; give the folder of `hubbub serve --archive`\n"
        )
