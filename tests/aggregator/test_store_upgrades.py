"""Schemas: one process makes or migrates a store, whole or not at all, to what a new one has."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from hubbub.bundle import Bundle
from hubbub_aggregator.store import (
    NewerSchema,
    StoreDamaged,
    engine,
    postgresql,
    schema,
    sqlite,
    upgrades,
)
from hubbub_aggregator.store.location import parse
from hubbub_aggregator.store.overview import Revision
from tests.aggregator.stores import (
    NOW,
    STEP,
    batch,
    fresh,
    kept,
    n_published,
    open_store,
    run,
    sent,
)
from tests.bundles import Operator, make_bundle, make_metric

# Ids that the migration to schema 3 puts into a row.
PACKED = 65_536

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
"""

# What version 2 added.
VERSION_2 = """
CREATE TABLE retained (
    id INTEGER NOT NULL, round_id INTEGER NOT NULL, n BIGINT NOT NULL, payloads BLOB NOT NULL,
    PRIMARY KEY (id), FOREIGN KEY(round_id) REFERENCES round (id)
);
CREATE INDEX retained_of_round ON retained (round_id, id);
"""


@contextmanager
def connected(location: str) -> Iterator[Connection]:
    """A transaction that writes, in a database that nobody has looked at yet."""
    is_file = "://" not in location
    opened = (
        sqlite._engine(Path(location)) if is_file else postgresql._engine(parse(location), location)
    )
    try:
        with opened.execution_options(**{engine.WRITES: True}).begin() as connection:
            yield connection
    finally:
        opened.dispose()


def make_old(location: str, version: int, bundle: Bundle, ids: Sequence[bytes]) -> None:
    """A store of an older schema: STEP reports in a snapshot, and the ids of an open round.

    SQLite's as it was made; PostgreSQL, for which there was none, as its migrations make it.
    """
    if "://" not in location:
        with closing(sqlite3.connect(location)) as file:
            file.executescript(VERSION_1 if version == 1 else VERSION_1 + VERSION_2)
            # Schema 3 is made of it by its migration.
            file.execute("INSERT INTO hubbub_store VALUES (?)", (min(version, 2),))
            file.commit()
    with connected(location) as connection:
        if "://" in location:
            upgrades.migrate(connection, 0, version)
        elif version > 2:
            upgrades.migrate(connection, 2, version)
        (metric,) = bundle.metrics.values()
        cells = np.array([0, STEP, 0, 0], "<i8").tobytes()
        plain = (0,) if version > 2 else ()
        for table, row in {
            "bundle": (bundle.operator, bundle.revision, bundle.signed),
            "contract": (metric.digest, metric.name, metric.contract),
            "round": (1, metric.digest, 0, None),
            "tally": (1, 7, STEP, cells, *plain),
            "snapshot": (1, STEP, cells, NOW, *plain),
        }.items():
            put(connection, table, [row])
        if version < 3:
            put(connection, "report", [(1, report_id) for report_id in ids])
        else:
            put(connection, "counted_ids", [(1, 1, 0, b"".join(ids))])
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT setval('round_id_seq', 1)"))
            if version > 2:
                connection.execute(text("SELECT setval('counted_ids_id_seq', 1)"))


def put(connection: Connection, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
    places = ", ".join(f":at_{place}" for place in range(len(rows[0])))
    values = [{f"at_{place}": value for place, value in enumerate(row)} for row in rows]
    connection.execute(text(f"INSERT INTO {table} VALUES ({places})"), values)  # noqa: S608


def contents(location: str) -> list[Any]:
    """All that an old store says, and how."""
    if "://" not in location:
        with closing(sqlite3.connect(location)) as connection:
            return list(connection.iterdump())
    with connected(location) as connection:
        return [
            (table, columns(connection, table), list(connection.execute(text(f"TABLE {table}"))))
            for table in sorted(inspect(connection).get_table_names())
        ]


def columns(connection: Connection, table: str) -> list[Any]:
    """Everything about a table that the database tells."""
    found = inspect(connection)
    return [
        [
            (c["name"], str(c["type"]), c["nullable"], c["default"])
            for c in found.get_columns(table)
        ],
        found.get_pk_constraint(table)["constrained_columns"],
        [(k["constrained_columns"], k["referred_table"]) for k in found.get_foreign_keys(table)],
        sorted((i["name"] or "", i["column_names"]) for i in found.get_indexes(table)),
        sorted(u["column_names"] for u in found.get_unique_constraints(table)),
    ]


def everything(connection: Connection) -> dict[str, Any]:
    """All tables, and both marks of what schema they are."""
    found = {name: columns(connection, name) for name in inspect(connection).get_table_names()}
    for mark in ("hubbub_store", "alembic_version"):
        found[f"{mark} says"] = list(connection.execute(text(f"SELECT * FROM {mark}")))  # noqa: S608
    return found


@pytest.fixture
def bundle(operator: Operator) -> Bundle:
    return make_bundle(operator, make_metric())


class TestAnOlderSchema:
    @pytest.mark.parametrize("version", [1, 2, 3, 4])
    def test_is_brought_up(self, location: str, bundle: Bundle, version: int) -> None:
        ids = fresh(STEP)
        make_old(location, version, bundle, ids)
        store = open_store(location)
        (metric,) = store.metrics()
        assert n_published(store, metric.digest) == STEP
        (again,) = store.commit([batch(metric.digest, ids)], now=NOW).new
        assert again is not None
        assert not again.any()
        store.commit([kept(metric.digest, sent("a", STEP))], now=NOW)
        store.close()
        store = open_store(location)
        assert n_published(store, metric.digest) == 2 * STEP
        assert run(store, "SELECT schema_version FROM hubbub_store") == [(5,)]
        assert run(store, "SELECT version_num FROM alembic_version") == [("0005",)]
        assert run(store, "SELECT n, plain FROM tally ORDER BY n") == [(STEP, 0), (STEP, 0)]
        store.close()

    def test_knows_its_present_revision_alone(
        self, location: str, bundle: Bundle, operator: Operator
    ) -> None:
        before = time.time()
        make_old(location, 4, bundle, fresh(1))
        store = open_store(location)
        (present,) = store.overview().revisions
        assert (present.number, present.or_earlier) == (bundle.revision, True)
        assert before <= present.since <= time.time()
        # To serve the same bundle again tells nothing new.
        store.adopt(bundle, now=NOW)
        assert store.overview().revisions == [present]
        store.adopt(make_bundle(operator, make_metric(), revision=9), now=NOW)
        assert store.overview().revisions == [present, Revision(9, NOW, or_earlier=False)]
        store.close()

    def test_packs_many_ids_into_a_row(self, location: str, bundle: Bundle) -> None:
        ids = fresh(2 * PACKED + 5)
        make_old(location, 2, bundle, ids)
        store = open_store(location)
        rows = run(store, "SELECT round_id, writer, ids FROM counted_ids ORDER BY id")
        assert [row[:2] for row in rows] == [(1, 0)] * 3
        assert [len(row[2]) for row in rows] == [16 * PACKED, 16 * PACKED, 16 * 5]
        packed = b"".join(row[2] for row in rows)
        assert {packed[at : at + 16] for at in range(0, len(packed), 16)} == set(ids)
        store.close()

    def test_does_not_say_whose_id_is_whose(self, location: str, bundle: Bundle) -> None:
        make_old(location, 3, bundle, fresh(1))
        with connected(location) as connection:
            put(connection, "retained", [(1, 1, 1, b"abcd")])
        store = open_store(location)
        assert run(store, "SELECT ids_row FROM retained") == [(None,)]
        store.close()

    def test_forgets_ids_of_closed_rounds(self, location: str, bundle: Bundle) -> None:
        make_old(location, 2, bundle, fresh(3))
        with connected(location) as connection:
            connection.execute(text("UPDATE round SET closed_at = 1"))
        store = open_store(location)
        assert run(store, "SELECT count(*) FROM counted_ids") == [(0,)]
        store.close()

    def test_all_the_way_or_not_at_all(self, location: str, bundle: Bundle) -> None:
        make_old(location, 1, bundle, fresh(3))
        before = contents(location)

        def killed_at_the_end() -> None:
            with connected(location) as connection:
                upgrades.bring_up(connection, location)
                raise RuntimeError("killed")

        with pytest.raises(RuntimeError, match="killed"):
            killed_at_the_end()
        assert contents(location) == before

    def test_is_left_alone_if_damaged(self, location: str, bundle: Bundle) -> None:
        make_old(location, 1, bundle, [b"too short"])
        before = contents(location)
        with pytest.raises(StoreDamaged, match="not of 16 bytes"):
            open_store(location)
        assert contents(location) == before

    @pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
    def test_comes_to_what_a_new_store_has(
        self, location: str, bundle: Bundle, version: int
    ) -> None:
        with connected(location) as connection:
            upgrades.create(connection)
            created = everything(connection)
            connection.rollback()
        if version:
            make_old(location, version, bundle, fresh(1))
        with connected(location) as connection:
            upgrades.migrate(connection, version, schema.SCHEMA_VERSION)
            assert everything(connection) == created


def test_every_schema_has_its_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(upgrades.MIGRATIONS))
    config.set_main_option("path_separator", "os")
    migrations = [found.revision for found in ScriptDirectory.from_config(config).walk_revisions()]
    assert migrations == [upgrades.revision(n) for n in range(schema.SCHEMA_VERSION, 0, -1)]


class TestMarks:
    def test_a_newer_schema_is_refused(self, location: str) -> None:
        store = open_store(location)
        run(store, "UPDATE hubbub_store SET schema_version = 99")
        store.close()
        with pytest.raises(NewerSchema, match="schema 99"):
            open_store(location)

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM hubbub_store",
            "INSERT INTO hubbub_store VALUES (5)",
            "UPDATE hubbub_store SET schema_version = 2",
            "UPDATE alembic_version SET version_num = '0002'",
            "DELETE FROM alembic_version",
        ],
    )
    def test_that_contradict_each_other_are_damage(self, location: str, damage: str) -> None:
        store = open_store(location)
        run(store, damage)
        store.close()
        with pytest.raises(StoreDamaged, match="restore it"):
            open_store(location)


# Opens a store when told to, and says how it ended.
OPENER = """
import sys
from hubbub_aggregator.store import Store
print("ready", flush=True)
sys.stdin.readline()
Store(sys.argv[1], writer=int(sys.argv[2]), publish_step=1).close()
"""


def open_in_processes(location: str, n: int) -> None:
    """Open a store in n processes at once; all of them must."""
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, location, str(writer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for writer in range(n)
    ]
    for opener in openers:
        assert opener.stdout is not None
        assert opener.stdout.readline() == "ready\n"
    for opener in openers:
        assert opener.stdin is not None
        opener.stdin.write("now\n")
        opener.stdin.flush()
    for opener in openers:
        _, said = opener.communicate(timeout=60)
        assert (opener.returncode, said) == (0, "")


class TestManyAtOnce:
    def test_one_creates(self, location: str) -> None:
        open_in_processes(location, 4)
        store = open_store(location)
        assert run(store, "SELECT schema_version FROM hubbub_store") == [(5,)]
        store.close()

    def test_one_migrates(self, location: str, bundle: Bundle) -> None:
        ids = fresh(PACKED + 1)
        make_old(location, 2, bundle, ids)
        open_in_processes(location, 4)
        store = open_store(location)
        packed = b"".join(row[0] for row in run(store, "SELECT ids FROM counted_ids"))
        assert sorted(packed[at : at + 16] for at in range(0, len(packed), 16)) == sorted(ids)
        store.close()
