"""The ledger's tables, and how those of an earlier version become them."""

import sqlite3
from typing import Final

from hubbub import rows, total
from hubbub.rows import Switch

# "hub1": marks a file as ours.
APPLICATION_ID: Final = 0x68756231
VERSION: Final = 3
# Those whose rows are added up; see total.py.
SUMMED: Final = (
    *("owner", "refresh", "bundle", "contract", "budget"),
    *("account", "enrolment", "report", "departure"),
)
# What each version that can be read has.
TABLES: Final = {
    1: ("operator", "contract", "budget", "report"),
    2: ("generation", *SUMMED),
    VERSION: ("generation", *SUMMED),
}
# Those that have one row.
SINGLE: Final = ("generation", "owner", "refresh")
# What `account` must say but for its checksums, by source.
SUMS: Final = f"""
    SELECT source, sum(charge), sum(waits), sum(waits * length(report)) FROM (
        SELECT source, charge, {rows.OUTBOX} AS waits, coalesce(report, '') AS report FROM report
        UNION ALL SELECT source, charge, 0, '' FROM enrolment
    ) GROUP BY source ORDER BY source
"""  # noqa: S608

# What rows.py says of a column is not said again here.
_UNCHANGED: Final = (
    """
    CREATE TABLE contract (
        metric TEXT PRIMARY KEY,
        digest BLOB NOT NULL,
        contract BLOB NOT NULL,
        checksum INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE budget (               -- what the app last declared, for the owner's view
        source TEXT PRIMARY KEY,
        charge INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
)
_GENERATION: Final = """
    CREATE TABLE generation (           -- one row
        number INTEGER NOT NULL,        -- how often the ledger was changed; see generation.py
        total INTEGER NOT NULL,         -- in a file, what all checksums add up to; see total.py
        checksum INTEGER NOT NULL
    )
"""
_NEW: Final = (
    _GENERATION,
    """
    CREATE TABLE owner (                -- one row
        switch INTEGER NOT NULL,
        changed_at INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE refresh (              -- one row
        asked_at INTEGER NOT NULL,      -- when a newer bundle was last asked for; 0: never
        checksum INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE bundle (
        operator TEXT NOT NULL,
        revision INTEGER NOT NULL,
        fingerprint BLOB NOT NULL,
        adopted_at INTEGER,
        fetched INTEGER NOT NULL,
        signed BLOB,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (operator, revision)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE account (              -- sums over the tables below, checked at every start
        source TEXT PRIMARY KEY,
        spent INTEGER NOT NULL,
        waiting INTEGER NOT NULL,
        size INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE enrolment (
        source TEXT NOT NULL,
        metric TEXT NOT NULL,
        number INTEGER NOT NULL,
        digest BLOB NOT NULL,
        charge INTEGER NOT NULL,
        enrolled_at INTEGER NOT NULL,
        from_round INTEGER NOT NULL,
        secret BLOB,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (source, metric, number)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE report (
        source TEXT NOT NULL,
        metric TEXT NOT NULL,
        round INTEGER NOT NULL,
        digest BLOB NOT NULL,
        charge INTEGER NOT NULL,
        recorded_at INTEGER NOT NULL,
        due_at INTEGER NOT NULL,
        status INTEGER NOT NULL,
        report BLOB,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (source, metric, round)
    ) WITHOUT ROWID
    """,
    f"""
    CREATE INDEX waiting ON report (recorded_at, metric, round) WHERE {rows.OUTBOX}
    """,
    """
    CREATE TABLE departure (
        source TEXT NOT NULL,
        metric TEXT NOT NULL,
        round INTEGER NOT NULL,
        key_id BLOB NOT NULL,
        destination TEXT NOT NULL,
        sealed BLOB,
        left_at INTEGER NOT NULL,
        checksum INTEGER NOT NULL,
        PRIMARY KEY (source, metric, round, key_id, destination)
    ) WITHOUT ROWID
    """,
)

# Version 1 kept of each report only the last departure, and that sealed until it was settled;
# and of each operator only its newest bundle's revision and fingerprint.
_FROM_1: Final = (
    "ALTER TABLE report RENAME TO report_1",
    *_NEW,
    """
    INSERT INTO report SELECT source, metric, round, digest, charge, recorded_at, recorded_at,
        status, report, 0 FROM report_1
    """,
    """
    INSERT INTO departure SELECT source, metric, round, key_id, destination, sealed, left_at, 0
        FROM report_1 WHERE left_at IS NOT NULL
    """,
    f"INSERT INTO account SELECT *, 0 FROM ({SUMS})",  # noqa: S608
    "INSERT INTO bundle SELECT key, revision, bundle, NULL, 0, NULL, 0 FROM operator",
    "DROP TABLE report_1",
    "DROP TABLE operator",
)


def create(connection: sqlite3.Connection, *, in_file: bool) -> None:
    """Make an empty database a ledger."""
    connection.execute("BEGIN")
    for statement in (*_UNCHANGED, *_NEW):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    _begin_life(connection)
    # Nothing puts an older page into memory.
    if in_file:
        total.keep(connection, SUMMED, 0)
    touch(connection)
    connection.execute("COMMIT")


def upgrade(connection: sqlite3.Connection) -> None:
    """Make an earlier version today's, in one transaction; what is today's stays as it is."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Asked where nobody else can be at it.
        found = version(connection)
        if found == VERSION:
            return
        changes = number(connection)
        if found == 1:
            _upgrade_1(connection)
        else:
            # Version 2 had no total.
            connection.execute("DROP TABLE generation")
            connection.execute(_GENERATION)
            rows.write(connection, "generation", (changes, 0))
        total.keep(connection, SUMMED, changes)
        touch(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def version(connection: sqlite3.Connection) -> int:
    """The version that a ledger's file says it has."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


def touch(connection: sqlite3.Connection) -> None:
    """Write a page that says what it said. A row that does not change SQLite would not write."""
    connection.execute(f"PRAGMA user_version = {VERSION}")


def count(connection: sqlite3.Connection) -> None:
    """Write a row that says what it said, so that the ledger counts as changed."""
    connection.execute("UPDATE owner SET switch = switch")


def number(connection: sqlite3.Connection) -> int:
    """How often a ledger was changed. Version 1 did not count."""
    if version(connection) == 1:
        return 0
    (changes,) = connection.execute("SELECT number FROM generation").fetchone()
    return int(changes)


def _upgrade_1(connection: sqlite3.Connection) -> None:
    for statement in _FROM_1:
        connection.execute(statement)
    for table in ("report", "departure", "account", "bundle"):
        written = connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608
        for *row, _ in written:
            rows.write(connection, table, row)
    _begin_life(connection)


def _begin_life(connection: sqlite3.Connection) -> None:
    """Write the rows that there is one of."""
    rows.write(connection, "generation", (0, 0))
    rows.write(connection, "owner", (Switch.ON, 0))
    rows.write(connection, "refresh", (0,))
