"""The ledger's file: how it is made, opened, checked, and what can be wrong with it.

A damaged ledger is never replaced, since a fresh one would hand out the spent budget again.
"""

import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Final

from hubbub import rows, schema, total
from hubbub.errors import StateCorrupt, StateError, StateUnavailable
from hubbub.files import published

FILE_NAME: Final = "ledger.sqlite3"
# SQLite's name for a database that is nowhere but in memory.
MEMORY: Final = ":memory:"
# SQLite's names for what lies beside a file: its write-ahead log, while anybody has the ledger
# open, and after a kill; and version 1's journal, while it writes, and after a kill.
_LOG: Final = "-wal"
_JOURNAL: Final = "-journal"
_SMALLEST_PAGE: Final = 512

# Raises if a ledger that was changed so many times may not be used.
Require = Callable[[int], None]

# How long SQLite waits for another process, looking ever more seldom. See transaction.py.
_BUSY_SECONDS: Final = 0.05

# SQLite's words for a file that is not what it was. SQLITE_ERROR is among them because no
# statement of ours is wrong: what one stumbles over is a table that is no longer there.
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR})


def create(path: str) -> None:
    """Make a complete ledger. Raises StateUnavailable."""
    try:
        with published(path) as scratch, closing(connect(scratch)) as connection:
            schema.create(connection, in_file=True)
            _keep_log(connection)
    except (OSError, sqlite3.Error) as error:
        raise StateUnavailable(path, f"cannot be created: {error}") from None


def create_in_memory() -> sqlite3.Connection:
    """A new ledger that is in no file."""
    connection = connect(MEMORY)
    schema.create(connection, in_file=False)
    return connection


def open_existing(path: str, require: Require) -> sqlite3.Connection:
    """Open a ledger and check it whole. Raises StateError."""
    with state_errors(path):
        _require_content(path)
        if os.path.exists(path + _LOG):
            # The last to close a log merges it into the file, unless it may only read: so what
            # is refused stays as a kill left it.
            _checked(connect(_uri(path, "mode=ro")), path, require).close()
            return connect(path)
        return _checked(connect(path), path, require)


def reopen(path: str) -> sqlite3.Connection:
    """Open a ledger that was checked before. Raises StateUnavailable or StateCorrupt."""
    with state_errors(path):
        return connect(path)


def read_copy(path: str, require: Require) -> sqlite3.Connection:
    """A copy in memory of a ledger, checked whole; writes nothing and keeps nothing open.

    Raises StateError.
    """
    with state_errors(path):
        _require_content(path)
        if _at_rest(path):
            # As it is read where nothing can be written, not even a lock.
            copied = _copy(_uri(path, "immutable=1"))
            if _at_rest(path):
                return _checked(copied, path, require)
            # Opened meanwhile, by somebody who may have written.
            copied.close()
        return _checked(_copy(_uri(path, "mode=ro")), path, require)


def upgrade(connection: sqlite3.Connection, path: str) -> None:
    """Bring a checked ledger to today's version. Raises StateUnavailable or StateCorrupt."""
    with state_errors(path):
        if schema.version(connection) != schema.VERSION:
            schema.upgrade(connection)
        _keep_log(connection)


def log_size(path: str) -> int:
    """The bytes of a ledger's log; 0 if it has none."""
    try:
        return os.path.getsize(path + _LOG)
    except FileNotFoundError:
        return 0


# How every ledger is opened.
_SETTINGS: Final = (
    # A charge that power loss could undo would be spent twice. With a log that takes one sync a
    # charge, as FULL does; while version 1 is upgraded with its journal, the directory's on top.
    "synchronous = EXTRA",
    # What is deleted must not linger in free pages, nor in a log that has shrunk.
    "secure_delete = ON",
    "journal_size_limit = 0",
    # Nothing of this goes into a temporary file.
    "temp_store = MEMORY",
    # What is replaced is taken off the total; see total.py.
    "recursive_triggers = ON",
    # Not in the midst of a record: see Ledger.checkpoint.
    "wal_autocheckpoint = 0",
)


def connect(database: str) -> sqlite3.Connection:
    """Open a database as every ledger is opened; checks nothing. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        database,
        isolation_level=None,
        timeout=_BUSY_SECONDS,
        # Ledger's lock does what this check is for.
        check_same_thread=False,
        uri=database.startswith("file:"),
    )
    try:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def state_errors(path: str) -> Generator[None]:
    """Turn what SQLite or the system raises in the body into a StateError."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:
        raise state_error(path, error) from None
    except OSError as error:
        raise StateUnavailable(path, str(error)) from None


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
    if code & 0xFF == sqlite3.SQLITE_CANTOPEN:
        return StateUnavailable(path, f"{error}: is its directory read-only?")
    return StateUnavailable(path, str(error))


def _keep_log(connection: sqlite3.Connection) -> None:
    """Write ahead in a log: one sync makes a charge durable. The file remembers it."""
    connection.execute("PRAGMA journal_mode = WAL")


def _require_content(path: str) -> None:
    """SQLite would take a file without a page for a new one, and delete the log beside it."""
    if os.path.getsize(path) < _SMALLEST_PAGE:
        raise StateCorrupt(path, "it is empty; spending is refused rather than started afresh")


def _at_rest(path: str) -> bool:
    """Whether everything is in the file itself."""
    return not any(os.path.exists(path + beside) for beside in (_LOG, _JOURNAL))


def _uri(path: str, how: str) -> str:
    """An absolute path as SQLite is told to open it (sqlite.org/uri.html).

    `pathlib` would need half a megabyte for this alone.
    """
    escaped = path.replace(os.sep, "/")
    for character in "%?#":
        escaped = escaped.replace(character, f"%{ord(character):02x}")
    return f"file:///{escaped.lstrip('/')}?{how}"


def _copy(uri: str) -> sqlite3.Connection:
    copied = connect(MEMORY)
    try:
        with closing(connect(uri)) as original:
            original.backup(copied)
    except BaseException:
        copied.close()
        raise
    return copied


def _checked(connection: sqlite3.Connection, path: str, require: Require) -> sqlite3.Connection:
    """The connection, if it is to a whole ledger of a version we know, and `require` agrees."""
    try:
        # One moment of a ledger that others may be writing.
        connection.execute("BEGIN")
        _check(connection, path)
        require(schema.number(connection))
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: str) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != schema.APPLICATION_ID:
        raise StateCorrupt(path, "it is not a Hubbub ledger")
    version = schema.version(connection)
    if version not in schema.TABLES:
        raise StateCorrupt(path, f"its version is {version}; this SDK reads {schema.VERSION}")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise StateCorrupt(path, "it is damaged; spending is refused rather than started afresh")
    for table in schema.TABLES[version]:
        for *row, checksum in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
            if rows.checksum(row) != checksum:
                raise StateCorrupt(path, f"a row of its table {table!r} was altered")
    if version > 1:
        _check_sums(connection, path)
    if version == schema.VERSION:
        _check_total(connection, path)


def _check_total(connection: sqlite3.Connection, path: str) -> None:
    if total.found(connection, schema.SUMMED) != total.said(connection):
        raise StateCorrupt(path, "a part of it is missing, or is an older one")


def _check_sums(connection: sqlite3.Connection, path: str) -> None:
    """A charge or a report that is gone is missing in the sums."""
    for table in schema.SINGLE:
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        if count != 1:
            raise StateCorrupt(path, f"its table {table!r} is not as it was")
    accounts = connection.execute(
        "SELECT source, spent, waiting, size FROM account ORDER BY source"
    )
    if accounts.fetchall() != connection.execute(schema.SUMS).fetchall():
        raise StateCorrupt(path, "its charges and reports do not add up to what they did")
