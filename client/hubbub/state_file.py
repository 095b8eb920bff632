"""The ledger's file: how it is made, opened, checked, and what can be wrong with it.

A damaged ledger is never replaced, since a fresh one would hand out the spent budget again.
"""

import os
import sqlite3
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from hubbub.errors import StateCorrupt, StateError, StateUnavailable

FILE_NAME: Final = "ledger.sqlite3"
# SQLite's name for a database that is nowhere but in memory.
MEMORY: Final = ":memory:"

# "hub1": marks the file as ours. The second number is the version of the tables below.
_APPLICATION_ID: Final = 0x68756231
_SCHEMA_VERSION: Final = 1

# How long to wait for another process that is writing; a record must not wait longer.
_BUSY_SECONDS: Final = 1.0

# Every row ends with the checksum of its other columns.
_SCHEMA: Final = """
CREATE TABLE operator (
    key TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    bundle BLOB NOT NULL,           -- SHA-256 of the newest bundle
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE contract (
    metric TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    contract BLOB NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE budget (               -- what the app last declared, for the owner's view
    source TEXT PRIMARY KEY,
    charge INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE report (
    source TEXT NOT NULL,
    metric TEXT NOT NULL,
    round INTEGER NOT NULL,
    digest BLOB NOT NULL,
    charge INTEGER NOT NULL,        -- in units of 10^-12 of ε
    recorded_at INTEGER NOT NULL,   -- seconds UTC
    status INTEGER NOT NULL,
    report BLOB,                    -- report id and payload; null: deleted before it left
    key_id BLOB,
    sealed BLOB,                    -- kept until it is settled, so that a retry is the same bytes
    destination TEXT,
    left_at INTEGER,                -- when it was first handed to the network
    checksum INTEGER NOT NULL,
    PRIMARY KEY (source, metric, round)
) WITHOUT ROWID;
"""
_TABLES: Final = ("operator", "contract", "budget", "report")

# SQLite's words for a file that is not what it was. SQLITE_ERROR is among them because no
# statement of ours is wrong: what one stumbles over is a table that is no longer there.
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})


def create(path: str) -> None:
    """Make a complete ledger under another name, then give it its own in one step.

    So an empty or partial file under that name is never a beginning: it is damage. Raises
    StateUnavailable.
    """
    directory = os.path.dirname(path) or os.curdir
    scratch = f"{path}.{os.urandom(8).hex()}"
    try:
        os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            connection = connect(scratch)
            try:
                create_tables(connection)
            finally:
                connection.close()
            # A hard link fails, where a rename would replace, if another process was faster.
            os.link(scratch, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(scratch)
        _sync(directory)
    except (OSError, sqlite3.Error) as error:
        raise StateUnavailable(path, f"cannot be created: {error}") from None


def create_tables(connection: sqlite3.Connection) -> None:
    """Make an empty database a ledger."""
    connection.executescript(
        f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID}; "
        f"PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;"
    )


def connect(database: str) -> sqlite3.Connection:
    """Open a database as every ledger is opened; checks nothing. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        database,
        isolation_level=None,
        timeout=_BUSY_SECONDS,
        # Ledger's lock does what this check is for.
        check_same_thread=False,
    )
    try:
        # A charge that power loss could undo would be spent twice. With a rollback journal
        # that takes FULL and the directory's sync on top: EXTRA. A write-ahead log would need
        # one sync less, but a damaged or deleted log loses charges without a trace.
        connection.execute("PRAGMA synchronous = EXTRA")
        # What is deleted must not linger in free pages.
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def open_checked(path: str) -> sqlite3.Connection:
    """Open an existing ledger. Raises StateUnavailable or StateCorrupt."""
    with state_errors(path):
        connection = connect(path)
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def state_errors(path: str) -> Generator[None]:
    """Turn what SQLite raises in the body into a StateError."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        raise state_error(path, error) from None


def state_error(path: str, error: sqlite3.Error | UnicodeError) -> StateError:
    """SQLite's error as ours: rights, space and locks on one side, damage on the other."""
    if isinstance(error, sqlite3.ProgrammingError):
        return StateUnavailable(path, "it is closed")
    if isinstance(error, UnicodeError):
        return StateCorrupt(path, "it is damaged: text in it is not UTF-8")
    # Without a code: found by Python's module, in what SQLite gave it.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF in _DAMAGE:
        return StateCorrupt(path, f"it is damaged: {error}")
    return StateUnavailable(path, str(error))


def checksummed(row: Sequence[object]) -> tuple[object, ...]:
    """A row as it is stored, with its checksum at its end."""
    return (*row, _checksum(row))


def _checksum(row: Sequence[object]) -> int:
    """CRC-32: against damage that leaves the file's structure whole."""
    # A member of an IntEnum comes back from the file as the number it is.
    return zlib.crc32(ascii([int(x) if isinstance(x, int) else x for x in row]).encode())


def _check(connection: sqlite3.Connection, path: str) -> None:
    """Raise StateCorrupt unless the file is a whole ledger of this version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION_ID:
        raise StateCorrupt(path, "it is not a Hubbub ledger")
    if version != _SCHEMA_VERSION:
        raise StateCorrupt(path, f"its version is {version}; this SDK reads {_SCHEMA_VERSION}")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise StateCorrupt(path, "it is damaged; spending is refused rather than started afresh")
    for table in _TABLES:
        for *row, checksum in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
            if _checksum(row) != checksum:
                raise StateCorrupt(path, f"a row of its table {table!r} was altered")


def _sync(directory: str) -> None:
    """Make a new name in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
