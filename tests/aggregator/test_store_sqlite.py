"""The store as an SQLite file: created whole, opened with care, and missed when it is gone."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub_aggregator.store import (
    NewerSchema,
    NotAStore,
    Store,
    StoreDamaged,
    StoreUnavailable,
)
from tests.aggregator.stores import NOW, STEP, batch, fresh, n_published, open_store
from tests.bundles import Operator, make_bundle, make_metric


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


@pytest.fixture
def store(path: Path, operator: Operator) -> Iterator[Store]:
    store = open_store(path)
    store.adopt(make_bundle(operator, make_metric()), now=NOW)
    yield store
    store.close()


@pytest.fixture
def digest(store: Store) -> bytes:
    return store.metrics()[0].digest


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


class TestOpening:
    @pytest.mark.parametrize("damage", [_truncate, _empty, _overwrite, _scribble])
    def test_damage_is_refused(
        self, store: Store, path: Path, digest: bytes, damage: Callable[[Path], None]
    ) -> None:
        store.commit([batch(digest, fresh(2_000))], now=NOW)
        store.close()
        damage(path)
        before = path.read_bytes()
        with pytest.raises(
            StoreDamaged, match=r"damaged|empty file|is no SQLite database, and so no store"
        ):
            open_store(path)
        assert path.read_bytes() == before

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

    def test_a_missing_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StoreUnavailable, match="cannot be created: No such file"):
            open_store(tmp_path / "missing" / "store.sqlite3")

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(NotAStore, match="is not a Hubbub store; give --store another path"):
            open_store(tmp_path)

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


def test_a_commit_is_flushed_to_the_disk(store: Store, path: Path) -> None:
    """The pragmas that make "acknowledged" mean "durable"."""
    with store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
