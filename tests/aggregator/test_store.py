"""The store: exactly once, in steps, and never silently afresh."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import compress, count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Connection, create_mock_engine
from sqlalchemy.schema import CreateTable

from hubbub.bundle import Bundle
from hubbub.errors import ChangedContract, ForeignOperator, LowerRevision
from hubbub_aggregator.store import (
    Batch,
    Ids,
    NewerSchema,
    NotAStore,
    Store,
    StoreDamaged,
    StoreUnavailable,
    as_ids,
    engine,
    retention,
    schema,
    upgrades,
)
from hubbub_aggregator.store.id_set import IdSet
from hubbub_aggregator.store.statements import CountingStatements
from tests.bundles import Operator, make_bundle, make_metric

STEP = 10
NOW = 1_000.0


def open_store(path: Path, writer: int = 1) -> Store:
    return Store(str(path), writer=writer, publish_step=STEP)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
def store(path: Path, operator: Operator) -> Iterator[Store]:
    store = open_store(path)
    store.adopt(make_bundle(operator, make_metric()))
    yield store
    store.close()


@pytest.fixture
def digest(store: Store) -> bytes:
    return store.metrics()[0].digest


def batch(digest: bytes, ids: list[bytes], number: int = 0) -> Batch:
    """Reports that all support value 1 of 4."""

    def fold(new: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.array([0, new.sum(), 0, 0])

    return Batch(digest, number, as_ids(b"".join(ids)), fold)


def fresh(n: int) -> list[bytes]:
    return [os.urandom(16) for _ in range(n)]


def n_published(store: Store, digest: bytes, number: int = 0) -> int:
    published = store.published(digest, number)
    if published is None or published.snapshot is None:
        return 0
    n, cells = published.snapshot.tally.n, published.snapshot.tally.cells
    assert cells.tolist() in ([0, n, 0, 0], [])
    return n


class TestCounting:
    def test_the_first_of_equal_ids_counts(self, store: Store, digest: bytes) -> None:
        a, b = fresh(2)
        committed = store.commit([batch(digest, [a, b, a])], now=NOW)
        assert [list(new) for new in committed.new if new is not None] == [[True, True, False]]

    def test_a_replay_counts_nothing(self, store: Store, digest: bytes) -> None:
        ids = fresh(STEP)
        store.commit([batch(digest, ids)], now=NOW)
        committed = store.commit([batch(digest, ids)], now=NOW)
        assert committed.new[0] is not None
        assert not committed.new[0].any()
        assert not committed.published
        assert n_published(store, digest) == STEP

    def test_an_id_means_one_round_only(self, path: Path, operator: Operator) -> None:
        metric = make_metric("daily", periodic=(60, 3, 0))
        with_rounds = open_store(path)
        with_rounds.adopt(make_bundle(operator, metric))
        digest = with_rounds.metrics()[0].digest
        ids = fresh(STEP)
        for number in (0, 1):
            committed = with_rounds.commit([batch(digest, ids, number)], now=NOW)
            assert committed.new[0] is not None
            assert committed.new[0].all()
        with_rounds.close()

    def test_a_restart_forgets_nothing(self, store: Store, path: Path, digest: bytes) -> None:
        ids = fresh(STEP - 1)
        store.commit([batch(digest, ids)], now=NOW)
        store.close()
        again = open_store(path, writer=2)
        committed = again.commit([batch(digest, ids + fresh(1))], now=NOW)
        assert committed.new[0] is not None
        assert list(committed.new[0]) == [False] * (STEP - 1) + [True]
        assert n_published(again, digest) == STEP
        again.close()

    def test_writers_add_up(self, store: Store, path: Path, digest: bytes) -> None:
        other = open_store(path, writer=2)
        for writer in (store, other, store, other):
            writer.commit([batch(digest, fresh(STEP))], now=NOW)
        assert n_published(store, digest) == n_published(other, digest) == 4 * STEP
        other.close()

    def test_what_one_writer_counted_no_other_counts(
        self, store: Store, path: Path, digest: bytes
    ) -> None:
        other, known = open_store(path, writer=2), list[bytes]()
        for number, writer in enumerate((store, other, other, store, store, other)):
            more = fresh(number + 1)
            (new,) = writer.commit([batch(digest, known + more)], now=NOW).new
            assert new is not None
            assert new.tolist() == [False] * len(known) + [True] * len(more)
            known += more
        store.close_round(digest, 0, now=NOW)
        assert n_published(other, digest) == len(known)
        other.close()

    def test_many_commits_are_all_known_after_a_restart(
        self, store: Store, path: Path, digest: bytes
    ) -> None:
        ids = fresh(1_500)
        for place in range(0, 1_000, 2):
            store.commit([batch(digest, ids[place : place + 2])], now=NOW)
        store.commit([batch(digest, ids[1_000:])], now=NOW)
        store.close()
        again = open_store(path, writer=2)
        again.load_open_rounds()
        (new,) = again.commit([batch(digest, ids + fresh(1))], now=NOW).new
        assert new is not None
        assert new.tolist() == [False] * 1_500 + [True]
        again.close()

    def test_a_commit_whose_end_is_not_known_is_found_again(
        self, store: Store, digest: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It became durable, and the answer was lost: as with a server that dies just then."""
        store.commit([batch(digest, fresh(STEP))], now=NOW)
        ids, writing = fresh(3), store._writing.transaction

        @contextmanager
        def forgetful() -> Iterator[Any]:
            with writing() as cursor:
                yield cursor
            raise StoreUnavailable(store.location, "the answer was lost")

        with monkeypatch.context() as patch:
            patch.setattr(store._writing, "transaction", forgetful)
            with pytest.raises(StoreUnavailable, match="the answer was lost"):
                store.commit([batch(digest, ids)], now=NOW)
        (new,) = store.commit([batch(digest, [*ids, *fresh(1)])], now=NOW).new
        assert new is not None
        assert new.tolist() == [False, False, False, True]
        store.close_round(digest, 0, now=NOW)
        assert n_published(store, digest) == STEP + 4

    def test_an_error_in_the_midst_of_catching_up_loses_nothing(
        self, store: Store, path: Path, digest: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other, ids = open_store(path, writer=2), fresh(600)
        for place in range(600):
            store.commit([batch(digest, ids[place : place + 1])], now=NOW)
        add, times = IdSet.add, count()

        def fail_once(self: IdSet, more: Ids) -> None:
            if next(times) == 1:
                raise MemoryError
            add(self, more)

        monkeypatch.setattr(IdSet, "add", fail_once)
        with pytest.raises(MemoryError):
            other.commit([batch(digest, ids)], now=NOW)
        (new,) = other.commit([batch(digest, ids)], now=NOW).new
        assert new is not None
        assert not new.any()
        other.close()

    def test_one_row_is_left_of_all_writers(self, store: Store, path: Path, digest: bytes) -> None:
        for writer in range(2, 6):
            with closing(open_store(path, writer)) as one:
                one.commit([batch(digest, fresh(3))], now=NOW)
        store.close_round(digest, 0, now=NOW)
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT n FROM tally").fetchall() == [(12,)]
        assert n_published(store, digest) == 12

    def test_two_batches_of_one_round_are_refused(self, store: Store, digest: bytes) -> None:
        with pytest.raises(ValueError, match="one round"):
            store.commit([batch(digest, fresh(1)), batch(digest, fresh(1))], now=NOW)

    def test_how_many_came_unsealed_is_kept(self, store: Store, path: Path, digest: bytes) -> None:
        ids, plain = fresh(STEP), np.arange(STEP) < 4
        store.commit([replace(batch(digest, ids), plain=plain)], now=NOW)
        with closing(open_store(path, writer=2)) as other:
            # The first two are known: they were sealed then, or not, as they first came.
            ids = ids[:2] + fresh(STEP)
            other.commit([replace(batch(digest, ids), plain=np.full(STEP + 2, True))], now=NOW)
        published = store.published(digest, 0)
        assert published is not None
        assert published.snapshot is not None
        assert (published.snapshot.tally.n, published.snapshot.tally.plain) == (20, 14)

    def test_all_batches_or_none(self, store: Store, digest: bytes) -> None:
        def broken(new: NDArray[np.bool_]) -> NDArray[np.int64]:
            raise RuntimeError("half-way")

        ids = fresh(STEP)
        with pytest.raises(RuntimeError, match="half-way"):
            store.commit(
                [batch(digest, ids), replace(batch(digest, fresh(1), 1), fold=broken)],
                now=NOW,
            )
        committed = store.commit([batch(digest, ids)], now=NOW)
        assert committed.new[0] is not None
        assert committed.new[0].all()


class TestSnapshots:
    def test_come_in_steps(self, store: Store, digest: bytes) -> None:
        shown = []
        for _ in range(25):
            store.commit([batch(digest, fresh(3))], now=NOW)
            shown.append(n_published(store, digest))
        assert sorted(set(shown)) == [0, 12, 24, 36, 48, 60, 72]

    def test_closing_publishes_the_rest(self, store: Store, digest: bytes) -> None:
        store.commit([batch(digest, fresh(STEP + 1))], now=NOW)
        store.commit([batch(digest, fresh(2))], now=NOW)
        assert n_published(store, digest) == STEP + 1
        closed = store.close_round(digest, 0, now=NOW + 1)
        assert (closed.n, closed.closed_now) == (STEP + 3, True)
        assert n_published(store, digest) == STEP + 3
        again = store.close_round(digest, 0, now=NOW + 2)
        assert (again.n, again.closed_now) == (STEP + 3, False)

    def test_a_restart_never_shows_less(self, store: Store, path: Path, digest: bytes) -> None:
        store.commit([batch(digest, fresh(STEP))], now=NOW)
        store.close()
        again = open_store(path, writer=2)
        assert n_published(again, digest) == STEP
        published = again.published(digest, 0)
        assert published is not None
        assert published.snapshot is not None
        assert published.snapshot.as_of == NOW
        again.close()

    def test_a_closed_round_refuses_and_holds_no_ids(
        self, store: Store, path: Path, digest: bytes
    ) -> None:
        ids = fresh(3)
        store.commit([batch(digest, ids)], now=NOW)
        store.close_round(digest, 0, now=NOW)
        assert store.commit([batch(digest, ids)], now=NOW).new == [None]
        assert store.open_rounds() == []
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM counted_ids").fetchone() == (0,)
        connection.close()

    def test_a_round_closed_empty_has_no_snapshot(self, store: Store, digest: bytes) -> None:
        assert store.close_round(digest, 0, now=NOW).n == 0
        published = store.published(digest, 0)
        assert published is not None
        assert published.closed
        assert published.snapshot is None


def sent(name: str, n: int) -> list[bytes]:
    """Payloads of 4 bytes that say which commit they are of, in no order."""
    return [f"{name}{i:03}".encode() for i in reversed(range(n))]


def kept(digest: bytes, payloads: list[bytes], ids: list[bytes] | None = None) -> Batch:
    """Reports of a metric that retains them."""

    def retain(new: NDArray[np.bool_]) -> bytes:
        return b"".join(compress(payloads, new))

    ids = fresh(len(payloads)) if ids is None else ids
    return replace(batch(digest, ids), retain=retain)


def retained(store: Store, digest: bytes, n: int, number: int = 0) -> list[bytes]:
    """What a snapshot of n reports counts."""
    arrays = list(store.retained(digest, number, n, 4))
    assert all(array.dtype == np.uint8 and array.shape[1] == 4 for array in arrays)
    return [payload.tobytes() for array in arrays for payload in array]


class TestRetention:
    def test_readers_see_what_a_snapshot_counts(self, store: Store, digest: bytes) -> None:
        first, second, third = sent("a", STEP + 2), sent("b", 3), sent("c", STEP)
        store.commit([kept(digest, first)], now=NOW)
        store.commit([kept(digest, second)], now=NOW)
        assert retained(store, digest, n_published(store, digest)) == first
        store.commit([kept(digest, third)], now=NOW)
        assert n_published(store, digest) == 2 * STEP + 5
        assert retained(store, digest, 2 * STEP + 5) == first + second + third
        # An older snapshot, which a reader may still have in hand, counts what it did.
        assert retained(store, digest, STEP + 2) == first

    def test_closing_a_round_keeps_them(self, store: Store, path: Path, digest: bytes) -> None:
        payloads = sent("a", 3)
        store.commit([kept(digest, payloads)], now=NOW)
        store.close_round(digest, 0, now=NOW)
        store.close()
        again = open_store(path, writer=2)
        assert retained(again, digest, 3) == payloads
        again.close()

    def test_only_what_counts_is_kept(self, store: Store, digest: bytes) -> None:
        ids, payloads = fresh(STEP), sent("a", STEP)
        store.commit([kept(digest, payloads[:4], ids[:4])], now=NOW)
        store.commit([kept(digest, payloads, ids)], now=NOW)
        assert retained(store, digest, STEP) == payloads
        store.close_round(digest, 0, now=NOW)
        store.commit([kept(digest, payloads)], now=NOW)
        assert retained(store, digest, STEP) == payloads

    def test_metrics_that_do_not_retain_leave_nothing(
        self, store: Store, path: Path, digest: bytes
    ) -> None:
        store.commit([batch(digest, fresh(STEP))], now=NOW)
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM retained").fetchone() == (0,)
        connection.close()

    def test_counted_and_kept_or_neither(self, store: Store, path: Path, digest: bytes) -> None:
        def broken(new: NDArray[np.bool_]) -> bytes:
            raise RuntimeError("half-way")

        ids, payloads = fresh(STEP), sent("a", STEP)
        with pytest.raises(RuntimeError, match="half-way"):
            store.commit(
                [kept(digest, payloads, ids), replace(batch(digest, fresh(1), 1), retain=broken)],
                now=NOW,
            )
        store.commit([kept(digest, payloads, ids)], now=NOW)
        assert n_published(store, digest) == STEP
        assert retained(store, digest, STEP) == payloads

    def test_rounds_are_kept_apart(self, path: Path, operator: Operator) -> None:
        store = open_store(path)
        store.adopt(make_bundle(operator, make_metric("daily", periodic=(60, 3, 0))))
        digest = store.metrics()[0].digest
        for number, name in ((0, "a"), (1, "b"), (0, "c")):
            reports = replace(kept(digest, sent(name, STEP)), round=number)
            store.commit([reports], now=NOW)
        assert retained(store, digest, STEP, number=1) == sent("b", STEP)
        assert retained(store, digest, 2 * STEP) == sent("a", STEP) + sent("c", STEP)
        store.close()

    def test_many_reports_come_in_blocks(
        self, store: Store, digest: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "_BLOCK", 64)
        for name in "abcde":
            store.commit([kept(digest, sent(name, STEP))], now=NOW)
        assert [len(array) for array in store.retained(digest, 0, 5 * STEP, 4)] == [20, 20, 10]

    @pytest.mark.parametrize(
        "damage",
        [
            "UPDATE retained SET payloads = substr(payloads, 2)",
            "UPDATE retained SET n = n + 1",
            "DELETE FROM retained",
        ],
    )
    def test_what_does_not_add_up_is_damage(
        self, store: Store, path: Path, digest: bytes, damage: str
    ) -> None:
        store.commit([kept(digest, sent("a", STEP))], now=NOW)
        with sqlite3.connect(path) as connection:
            connection.execute(damage)
        connection.close()
        with pytest.raises(StoreDamaged, match="retained"):
            retained(store, digest, STEP)


def test_an_open_domain_counts_its_reports_in_no_cells(store: Store, digest: bytes) -> None:
    def fold(new: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.zeros(0, np.int64)

    for _ in range(3):
        store.commit([replace(batch(digest, fresh(STEP)), fold=fold)], now=NOW)
    assert n_published(store, digest) == 3 * STEP


class TestAdopting:
    def test_keeps_metrics_of_older_bundles(self, store: Store, operator: Operator) -> None:
        store.adopt(make_bundle(operator, make_metric("other"), revision=2))
        assert [metric.name for metric in store.metrics()] == ["health.self_rated", "other"]

    def test_the_same_bundle_again(self, store: Store, operator: Operator) -> None:
        store.adopt(make_bundle(operator, make_metric()))

    def test_foreign_operator(self, store: Store, operator: Operator, tmp_path: Path) -> None:
        stranger = Operator.create(tmp_path / "stranger")
        with pytest.raises(ForeignOperator, match=operator.key):
            store.adopt(make_bundle(stranger, make_metric(), revision=9))

    def test_lower_revision(self, store: Store, operator: Operator) -> None:
        store.adopt(make_bundle(operator, make_metric(), revision=5))
        with pytest.raises(LowerRevision, match="revision 4, but 5"):
            store.adopt(make_bundle(operator, make_metric(), revision=4))

    def test_other_bytes_of_the_same_revision(self, store: Store, operator: Operator) -> None:
        with pytest.raises(LowerRevision, match="another bundle of revision 1"):
            store.adopt(make_bundle(operator, make_metric(), make_metric("other")))

    def test_changed_contract_changes_nothing(self, store: Store, operator: Operator) -> None:
        changed = make_metric(question="How do you rate your neighbour's health?")
        with pytest.raises(ChangedContract, match="needs a new name"):
            store.adopt(make_bundle(operator, make_metric("a.new_one"), changed, revision=2))
        assert [metric.name for metric in store.metrics()] == ["health.self_rated"]
        store.adopt(make_bundle(operator, make_metric()))


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _overwrite(path: Path) -> None:
    path.write_bytes(b"Dear diary\n" * 1_000)


def _scribble(path: Path) -> None:
    """Nonsense in the middle of every page but the first."""
    with path.open("r+b") as file:
        for start in range(4096, path.stat().st_size, 4096):
            file.seek(start)
            file.write(b"\xa5" * 200)


# What version 1 of the schema made, statement by statement.
VERSION_1 = """
CREATE TABLE hubbub_store (schema_version INTEGER NOT NULL);
CREATE TABLE bundle (
    operator VARCHAR NOT NULL, revision BIGINT NOT NULL, signed BLOB NOT NULL,
    PRIMARY KEY (operator)
);
CREATE TABLE contract (
    digest BLOB NOT NULL, name VARCHAR NOT NULL, contract BLOB NOT NULL,
    PRIMARY KEY (digest), UNIQUE (name)
);
CREATE TABLE round (
    id INTEGER NOT NULL, digest BLOB NOT NULL, number INTEGER NOT NULL, closed_at FLOAT,
    PRIMARY KEY (id), UNIQUE (digest, number),
    FOREIGN KEY(digest) REFERENCES contract (digest)
);
CREATE TABLE report (
    round_id INTEGER NOT NULL, report_id BLOB NOT NULL,
    PRIMARY KEY (round_id, report_id), FOREIGN KEY(round_id) REFERENCES round (id)
) WITHOUT ROWID;
CREATE TABLE tally (
    round_id INTEGER NOT NULL, writer BIGINT NOT NULL, n BIGINT NOT NULL, cells BLOB NOT NULL,
    PRIMARY KEY (round_id, writer), FOREIGN KEY(round_id) REFERENCES round (id)
);
CREATE TABLE snapshot (
    round_id INTEGER NOT NULL, n BIGINT NOT NULL, cells BLOB NOT NULL, as_of FLOAT NOT NULL,
    PRIMARY KEY (round_id), FOREIGN KEY(round_id) REFERENCES round (id)
);
INSERT INTO hubbub_store VALUES (1);
"""


def make_version_1(path: Path, bundle: Bundle) -> None:
    """A store as version 1 left it, with a snapshot of STEP reports of the bundle's metric."""
    (metric,) = bundle.metrics.values()
    cells = np.array([0, STEP, 0, 0], "<i8").tobytes()
    with sqlite3.connect(path) as connection:
        connection.executescript(VERSION_1)
        for table, row in {
            "bundle": (bundle.operator, bundle.revision, bundle.signed),
            "contract": (metric.digest, metric.name, metric.contract),
            "round": (1, metric.digest, 0, None),
            "tally": (1, 7, STEP, cells),
            "snapshot": (1, STEP, cells, NOW),
        }.items():
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} VALUES ({places})", row)  # noqa: S608
    connection.close()


def contents(path: Path) -> list[str]:
    """All of a store, as the statements that make it."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


class TestOpening:
    @pytest.mark.parametrize("damage", [_truncate, _empty, _overwrite, _scribble])
    def test_damage_is_refused(
        self, store: Store, path: Path, digest: bytes, damage: Callable[[Path], None]
    ) -> None:
        store.commit([batch(digest, fresh(2_000))], now=NOW)
        store.close()
        damage(path)
        before = path.read_bytes()
        with pytest.raises(StoreDamaged, match=r"damaged|empty file"):
            open_store(path)
        assert path.read_bytes() == before

    def test_a_contract_that_was_tampered_with(self, store: Store, path: Path) -> None:
        other = make_metric(epsilon="2")
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE contract SET contract = ?", (other,))
        connection.close()
        with pytest.raises(StoreDamaged, match="another contract"):
            store.metrics()

    def test_a_tally_that_was_tampered_with(self, store: Store, path: Path, digest: bytes) -> None:
        store.commit([batch(digest, fresh(1))], now=NOW)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE tally SET cells = ?", (b"\xff" * 32,))
        connection.close()
        with pytest.raises(StoreDamaged, match="tally"):
            store.close_round(digest, 0, now=NOW)

    def test_another_programs_database(self, path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE diary (day TEXT)")
        connection.close()
        with pytest.raises(NotAStore, match="not a Hubbub store"):
            open_store(path)

    def test_a_newer_schema(self, store: Store, path: Path) -> None:
        store.close()
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE hubbub_store SET schema_version = 99")
        connection.close()
        with pytest.raises(NewerSchema, match="schema 99"):
            open_store(path)

    def test_an_older_schema_is_brought_up(self, path: Path, operator: Operator) -> None:
        make_version_1(path, make_bundle(operator, make_metric()))
        store = open_store(path)
        (metric,) = store.metrics()
        assert n_published(store, metric.digest) == STEP
        store.commit([kept(metric.digest, sent("a", STEP))], now=NOW)
        store.close()
        again = open_store(path)
        assert n_published(again, metric.digest) == 2 * STEP
        again.close()
        assert 'INSERT INTO "hubbub_store" VALUES(2);' in contents(path)

    def test_bringing_it_up_happens_whole_or_not_at_all(
        self, path: Path, operator: Operator
    ) -> None:
        make_version_1(path, make_bundle(operator, make_metric()))
        before = contents(path)

        def killed_at_the_end(connection: Connection) -> None:
            upgrades.upgrade(connection)
            raise RuntimeError("killed")

        opened = engine._engine(path).execution_options(**{engine.WRITES: True})
        with pytest.raises(RuntimeError, match="killed"), opened.begin() as connection:
            killed_at_the_end(connection)
        opened.dispose()
        assert contents(path) == before

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="cannot be created: No such file"):
            open_store(tmp_path / "missing" / "store.sqlite3")

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="cannot be used"):
            open_store(tmp_path)

    @pytest.mark.parametrize(
        "location", ["postgresql+psycopg://me:secret@host/hubbub", "sqlite://", "what://ever"]
    )
    def test_another_kind_of_database(self, location: str) -> None:
        with pytest.raises(StoreUnavailable, match=r"SQLite file only|not a URL") as raised:
            Store(location, writer=1, publish_step=STEP)
        assert "secret" not in str(raised.value)

    def test_options_in_a_url_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="takes no options"):
            Store(f"sqlite:///{tmp_path}/s?mode=ro", writer=1, publish_step=STEP)
        assert not list(tmp_path.iterdir())

    def test_as_a_url(self, tmp_path: Path) -> None:
        store = Store(f"sqlite:///{tmp_path}/by-url.sqlite3", writer=1, publish_step=STEP)
        assert store.location == str(tmp_path / "by-url.sqlite3")
        store.close()

    def test_only_the_owner_can_read_it(self, store: Store, path: Path) -> None:
        assert path.stat().st_mode & 0o077 == 0

    def test_leaves_nothing_but_the_store(self, store: Store, path: Path) -> None:
        store.close()
        assert [file.name for file in path.parent.iterdir()] == [path.name]


class TestLosingTheFile:
    def test_nothing_is_counted_until_it_is_back(
        self, store: Store, path: Path, digest: bytes
    ) -> None:
        aside, ids = path.with_name("aside"), fresh(STEP)
        path.rename(aside)
        for use in (
            lambda: store.commit([batch(digest, ids)], now=NOW),
            lambda: store.close_round(digest, 0, now=NOW),
            store.open_rounds,
        ):
            with pytest.raises(StoreUnavailable, match="it is gone"):
                use()
        assert not path.exists()
        aside.rename(path)
        committed = store.commit([batch(digest, ids)], now=NOW)
        assert committed.new[0] is not None
        assert committed.new[0].all()

    def test_another_file_is_not_written(self, store: Store, path: Path, digest: bytes) -> None:
        path.rename(path.with_name("aside"))
        path.write_bytes(b"another")
        with pytest.raises(StoreUnavailable, match="another file has taken its place"):
            store.commit([batch(digest, fresh(1))], now=NOW)
        assert path.read_bytes() == b"another"

    def test_a_commit_that_lost_it_half_way_counts_nothing(
        self, store: Store, path: Path, digest: bytes
    ) -> None:
        aside, ids = path.with_name("aside"), fresh(STEP)

        def lose(new: NDArray[np.bool_]) -> NDArray[np.int64]:
            path.rename(aside)
            return np.array([0, new.sum(), 0, 0])

        with pytest.raises(StoreUnavailable, match="it is gone"):
            store.commit([replace(batch(digest, ids), fold=lose)], now=NOW)
        aside.rename(path)
        committed = store.commit([batch(digest, ids)], now=NOW)
        assert committed.new[0] is not None
        assert committed.new[0].all()
        assert n_published(store, digest) == STEP


def test_rounds_are_listed_only_as_far_as_asked(path: Path, operator: Operator) -> None:
    store = open_store(path)
    store.adopt(make_bundle(operator, make_metric("daily", periodic=(60, 9, 0))))
    digest = store.metrics()[0].digest
    for number in range(5):
        store.commit([batch(digest, fresh(STEP), number)], now=NOW)
    assert store.rounds(digest, range(2, 4)) == {2: (False, STEP), 3: (False, STEP)}
    assert store.rounds(digest, range(0)) == {}
    store.close()


def test_a_commit_is_flushed_to_the_disk(store: Store, path: Path) -> None:
    """The pragmas that make "acknowledged" mean "durable"."""
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


@pytest.mark.parametrize("name", ["sqlite", "postgresql+psycopg"])
def test_every_statement_can_be_said_in_both_dialects(name: str) -> None:
    engine = create_mock_engine(f"{name}://", lambda *_, **__: None)
    texts = {
        name: statement.text
        for name, statement in vars(CountingStatements(engine)).items()  # type: ignore[arg-type]
    }
    assert "ON CONFLICT DO NOTHING" in texts["add_round"]
    for statement in ("put_tally", "put_snapshot"):
        assert "DO UPDATE SET" in texts[statement]
    # SQLite has one writer at a time; elsewhere the round's row is what writers wait for.
    assert texts["standing"].endswith("FOR UPDATE OF round") is (name != "sqlite")
    for table in schema.metadata.sorted_tables:
        text = str(CreateTable(table).compile(dialect=engine.dialect))
        assert text.strip().startswith("CREATE TABLE")
