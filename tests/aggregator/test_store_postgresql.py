"""The store in PostgreSQL: what its sessions insist on, and servers that go and come back."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import Engine
from sqlalchemy.engine import make_url

from hubbub.errors import LowerRevision
from hubbub_aggregator.store import (
    Batch,
    NotAStore,
    Store,
    StoreDamaged,
    StoreUnavailable,
    contracts,
    postgresql,
)
from hubbub_aggregator.store.location import shown
from tests import postgres
from tests.aggregator.stores import NOW, STEP, batch, fresh, n_published, open_store, run
from tests.bundles import Operator, make_bundle, make_metric
from tests.processes import ServeFailed, ServeProcess


@pytest.fixture
def store(database: str, operator: Operator) -> Iterator[Store]:
    store = open_store(database)
    store.adopt(make_bundle(operator, make_metric()), now=NOW)
    yield store
    store.close()


@pytest.fixture
def digest(store: Store) -> bytes:
    return store.metrics()[0].digest


def name_of(database: str) -> str:
    return make_url(database).database or ""


def settings(store: Store, *names: str) -> list[str]:
    return [run(store, f"SHOW {name}")[0][0] for name in names]


@contextmanager
def paused(digest: bytes, ids: list[bytes]) -> Iterator[tuple[Batch, threading.Event]]:
    """A batch whose commit holds its round from when the event is set until the body ends."""
    holding, go_on = threading.Event(), threading.Event()

    def fold(new: NDArray[np.bool_]) -> NDArray[np.int64]:
        holding.set()
        go_on.wait(60)
        return np.array([0, new.sum(), 0, 0])

    try:
        yield replace(batch(digest, ids), fold=fold), holding
    finally:
        go_on.set()


class TestSessions:
    def test_insist_on_what_a_commit_promises(self, server: postgres.Server, database: str) -> None:
        for setting, value in {
            "synchronous_commit": "off",
            "lock_timeout": "0",
            "idle_in_transaction_session_timeout": "0",
            "statement_timeout": "9s",
            "default_transaction_isolation": "serializable",
        }.items():
            change = f"ALTER DATABASE {name_of(database)} SET {setting} = '{value}'"
            server.execute("postgres", change)
        store = open_store(database)
        assert settings(
            store,
            "synchronous_commit",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
            "statement_timeout",
            "transaction_isolation",
            "application_name",
        ) == ["on", "20s", "15s", "0", "read committed", "hubbub"]
        store.close()

    def test_leave_what_promises_more(self, server: postgres.Server, database: str) -> None:
        name = name_of(database)
        server.execute("postgres", f"ALTER DATABASE {name} SET synchronous_commit = remote_apply")
        store = open_store(database)
        assert settings(store, "synchronous_commit") == ["remote_apply"]
        store.close()

    def test_notice_a_server_that_vanished(self, store: Store) -> None:
        with store._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            parameters = driver.info.get_parameters()
        # 5 s of silence and 3 questions 5 s apart; 20 s for what was sent.
        assert parameters["keepalives_idle"] == "5"
        assert parameters["keepalives_interval"] == "5"
        assert parameters["keepalives_count"] == "3"
        assert parameters["tcp_user_timeout"] == "20000"
        assert parameters["connect_timeout"] == "5"

    def test_options_of_the_url_go_before_ours(self, database: str) -> None:
        store = open_store(f"{database}&application_name=another&sslmode=disable")
        assert settings(store, "application_name") == ["another"]
        assert store.location == f"{database.partition('?')[0]}?host={_quoted(database)}"
        store.close()

    def test_a_password_is_used_and_not_shown(
        self, server: postgres.Server, database: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("DEBUG")
        secret = "s3cr3t"  # noqa: S105
        store = open_store(database.replace("postgres@", f"postgres:{secret}@"))
        with server.stopped(), pytest.raises(StoreUnavailable) as raised:
            store.open_rounds()
        assert secret not in store.location + str(raised.value) + repr(store._engine) + caplog.text
        store.close()

    def test_of_several_hosts_take_the_one_that_is_there(self, database: str) -> None:
        open_store(database.replace("host=", "host=/nonexistent,")).close()


def _quoted(database: str) -> str:
    return database.partition("host=")[2].replace("/", "%2F")


class TestRefusals:
    def test_a_server_that_does_not_flush(self, server: postgres.Server, database: str) -> None:
        off = server.running_with(fsync="off")
        with off, pytest.raises(StoreUnavailable, match="fsync = off"):
            open_store(database)
        open_store(database).close()

    def test_a_server_that_stopped_flushing(
        self, server: postgres.Server, store: Store, digest: bytes
    ) -> None:
        off = server.running_with(fsync="off")
        with off, pytest.raises(StoreUnavailable, match="fsync = off"):
            store.commit([batch(digest, fresh(1))], now=NOW)
        store.commit([batch(digest, fresh(1))], now=NOW)

    def test_a_server_that_is_too_old(self, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgresql, "_OLDEST", 99)
        with pytest.raises(StoreUnavailable, match=r"is PostgreSQL 1[58], and Hubbub needs 99"):
            open_store(database)

    def test_a_database_that_is_not_there(self, server: postgres.Server) -> None:
        with pytest.raises(StoreUnavailable, match=r'database "nowhere" does not exist'):
            open_store(server.url("nowhere"))

    def test_another_programs_database(self, server: postgres.Server, database: str) -> None:
        server.execute(name_of(database), "CREATE TABLE diary (day text)")
        with pytest.raises(NotAStore, match="a database of its own"):
            open_store(database)

    def test_a_user_without_rights(self, server: postgres.Server, database: str) -> None:
        server.execute("postgres", "CREATE ROLE stranger LOGIN")
        try:
            with pytest.raises(StoreUnavailable, match="permission denied for schema public"):
                open_store(database.replace("postgres@", "stranger@"))
        finally:
            server.execute("postgres", "DROP ROLE stranger")

    def test_a_database_that_takes_no_writes(self, server: postgres.Server, database: str) -> None:
        change = f"ALTER DATABASE {name_of(database)} SET default_transaction_read_only = on"
        server.execute("postgres", change)
        with pytest.raises(StoreUnavailable, match="session is read-only"):
            open_store(database)


@pytest.mark.parametrize(
    ("state", "meant", "says"),
    [
        ("XX001", StoreDamaged, "restore it"),
        ("23503", StoreDamaged, "restore it"),
        ("53100", StoreUnavailable, "cannot be used"),
        ("42P01", StoreUnavailable, "start the aggregator again"),
        ("57P03", StoreUnavailable, "cannot be used"),
        ("25006", StoreUnavailable, "cannot be used"),
        ("40P01", StoreUnavailable, "cannot be used"),
    ],
)
def test_errors_have_our_names(store: Store, state: str, meant: type, says: str) -> None:
    failing = f"RAISE EXCEPTION 'so it is' USING ERRCODE = '{state}', DETAIL = 'a row'"
    with (
        pytest.raises(meant, match=says) as raised,
        store._transaction(store._engine) as connection,
    ):
        connection.exec_driver_sql(f"DO $$ BEGIN {failing}; END $$")
    assert type(raised.value) is meant
    assert "(so it is)" in str(raised.value)


class TestAServerThatGoes:
    @pytest.mark.parametrize("pooled", [1, 5])
    def test_is_missed_and_found_again(
        self, server: postgres.Server, store: Store, digest: bytes, pooled: int
    ) -> None:
        _fill_pool(store._engine, pooled)
        ids = fresh(STEP)
        uses: list[Callable[[], object]] = [
            lambda: store.commit([batch(digest, ids)], now=NOW),
            lambda: store.close_round(digest, 0, now=NOW),
            store.open_rounds,
        ]
        with server.stopped():
            for use in uses:
                started = time.monotonic()
                with pytest.raises(StoreUnavailable, match="is the server up"):
                    use()
                assert time.monotonic() - started < 5
        # At the first attempt, without one that fails on a connection of before.
        store.commit([batch(digest, ids)], now=NOW)
        assert n_published(store, digest) == STEP

    def test_half_way_counts_nothing(
        self, server: postgres.Server, store: Store, digest: bytes
    ) -> None:
        def lose(new: NDArray[np.bool_]) -> NDArray[np.int64]:
            server.stop()
            return np.array([0, new.sum(), 0, 0])

        ids = fresh(STEP)
        try:
            with pytest.raises(StoreUnavailable, match="is the server up"):
                store.commit([replace(batch(digest, ids), fold=lose)], now=NOW)
        finally:
            server.start()
        (new,) = store.commit([batch(digest, ids)], now=NOW).new
        assert new is not None
        assert new.all()
        assert n_published(store, digest) == STEP


def _fill_pool(engine: Engine, n: int) -> None:
    connections = [engine.connect() for _ in range(n)]
    for connection in connections:
        connection.close()


class TestReplicas:
    def test_never_publish_less_than_a_step_apart(
        self, database: str, store: Store, digest: bytes
    ) -> None:
        """Which a replica would that took the round's count from before it had to wait."""
        other = open_store(database, writer=2)
        other.commit([batch(digest, fresh(STEP - 2))], now=NOW)
        with ThreadPoolExecutor(2) as threads:
            with paused(digest, fresh(2)) as (held, holding):
                first = threads.submit(store.commit, [held], now=NOW)
                assert holding.wait(30)
                second = threads.submit(other.commit, [batch(digest, fresh(3))], now=NOW)
                _wait_for_a_lock(store)
            assert first.result().published
            assert not second.result().published
        assert n_published(store, digest) == STEP
        other.close()

    def test_of_two_bundles_the_lower_is_refused(
        self, database: str, store: Store, operator: Operator
    ) -> None:
        other = open_store(database, writer=2)
        higher, lower = (
            make_bundle(operator, make_metric(), revision=revision) for revision in (5, 4)
        )
        with ThreadPoolExecutor(1) as threads:
            with store._transaction(store._engine) as connection:
                contracts.adopt(connection, higher, NOW)
                adopting = threads.submit(other.adopt, lower, now=NOW)
                _wait_for_a_lock(other)
            with pytest.raises(LowerRevision, match="revision 4, but 5"):
                adopting.result()
        other.close()

    def test_wait_only_so_long(
        self, database: str, digest: bytes, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        impatient = _with_session(monkeypatch, database, "20s", "200ms")
        with ThreadPoolExecutor(1) as threads, paused(digest, fresh(2)) as (held, holding):
            threads.submit(store.commit, [held], now=NOW)
            assert holding.wait(30)
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                impatient.commit([batch(digest, fresh(1))], now=NOW)
        impatient.close()

    def test_that_hang_are_let_go_of(
        self, database: str, digest: bytes, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hanging = _with_session(monkeypatch, database, "15s", "200ms")
        ids = fresh(STEP)
        with ThreadPoolExecutor(1) as threads:
            with paused(digest, ids) as (held, holding):
                commit = threads.submit(hanging.commit, [held], now=NOW)
                assert holding.wait(30)
                (new,) = store.commit([batch(digest, ids)], now=NOW).new
                assert new is not None
                assert new.all()
            with pytest.raises(StoreUnavailable, match="is the server up"):
                commit.result()
        assert n_published(store, digest) == STEP
        hanging.close()


def _with_session(
    monkeypatch: pytest.MonkeyPatch, database: str, instead_of: str, patience: str
) -> Store:
    """A store that is less patient than ours."""
    session = postgresql._SESSION.replace(f"'{instead_of}'", f"'{patience}'")
    monkeypatch.setattr(postgresql, "_SESSION", session)
    store = open_store(database, writer=3)
    # Its own connection is there; what others open is as always.
    store.metrics()
    monkeypatch.undo()
    return store


def _wait_for_a_lock(store: Store) -> None:
    """Until a transaction of this database waits for another."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    deadline = time.monotonic() + 30
    while run(store, waiting) == [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_database_as_the_documentation_makes_it(server: postgres.Server) -> None:
    document = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```sql\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
    try:
        for statement in block.strip().splitlines():
            server.execute("postgres", statement)
        open_store(server.url("hubbub", user="hubbub")).close()
    finally:
        server.execute("postgres", "DROP DATABASE IF EXISTS hubbub")
        server.execute("postgres", "DROP ROLE IF EXISTS hubbub")


def test_is_served_from(
    server: postgres.Server, database: str, operator: Operator, tmp_path: Path
) -> None:
    secret = "s3cr3t"  # noqa: S105
    bundle = tmp_path / "metrics.hubbub"
    bundle.write_bytes(make_bundle(operator, make_metric()).signed)
    location = database.replace("postgres@", f"postgres:{secret}@")
    for _ in range(2):
        with ServeProcess(operator, bundle, location) as serve:
            assert serve.terminate() == 0
        assert f"store    {shown(make_url(database))}" in serve.lines
        assert secret not in "\n".join(serve.lines)
    with server.stopped(), pytest.raises(ServeFailed, match="is the server up") as failed:
        ServeProcess(operator, bundle, location)
    assert secret not in str(failed.value)


def test_more_readers_than_connections(store: Store, digest: bytes) -> None:
    store.commit([batch(digest, fresh(STEP))], now=NOW)
    with ThreadPoolExecutor(64) as threads:
        found = list(threads.map(lambda _: n_published(store, digest), range(300)))
    assert found == [STEP] * 300
    (connections,) = run(
        store, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    )
    assert connections[0] <= postgresql._CONNECTIONS
