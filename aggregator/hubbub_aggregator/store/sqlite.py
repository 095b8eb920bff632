"""A store in an SQLite file: created whole or not at all, checked before it is believed."""

import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from hubbub_aggregator.store import schema, upgrades
from hubbub_aggregator.store.errors import NotAStore, StoreDamaged, StoreUnavailable
from hubbub_aggregator.store.location import shown
from hubbub_aggregator.store.translation import translated
from hubbub_aggregator.whole_file import sync_folder

# The execution option by which a transaction says that it will write.
WRITES: Final = "hubbub_writes"

# How long a transaction waits for another, seconds: closing a round of millions takes some.
_LOCK_WAIT: Final = 20.0

# Readers hold a connection for a moment each; there are fewer handler threads than this.
_CONNECTIONS: Final = 128


def path_of(url: URL) -> Path:
    """The file that an sqlite URL names. Raises StoreUnavailable."""
    if not url.database or url.database == ":memory:":
        raise StoreUnavailable(shown(url), "names no file; a store is kept in one")
    if url.query:
        raise StoreUnavailable(shown(url), "an SQLite store's URL takes no options after a ?")
    return Path(url.database).absolute()


def open_file(path: Path) -> Engine:
    """Raises StoreUnavailable, NotAStore, NewerSchema or StoreDamaged."""
    if not path.exists():
        _create(path)
    if not path.is_file():
        raise NotAStore(str(path))
    engine = _engine(path)
    try:
        with translated(str(path)):
            if _checked_version(engine, path) < schema.SCHEMA_VERSION:
                with engine.execution_options(**{WRITES: True}).begin() as connection:
                    upgrades.bring_up(connection, str(path))
    except Exception:
        engine.dispose()
        raise
    return engine


def _create(path: Path) -> None:
    """Make an empty store beside `path`, then give it the name.

    A process killed half-way leaves no store, rather than an empty file that a later start
    could not tell from one that lost everything.
    """
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.new-", dir=path.parent)
        os.close(descriptor)
        new = Path(name)
        try:
            _create_tables(new)
            os.link(new, path)
        finally:
            new.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        pass  # Another process was faster; what it made is checked like any other store.
    except OSError as error:
        raise StoreUnavailable(str(path), f"cannot be created: {error.strerror}") from error


def _create_tables(path: Path) -> None:
    engine = _engine(path)
    try:
        with translated(str(path)), engine.begin() as connection:
            upgrades.create(connection)
    finally:
        engine.dispose()


def _engine(path: Path) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        connect_args={"timeout": _LOCK_WAIT},
        pool_size=8,
        max_overflow=_CONNECTIONS - 8,
    )
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _configure(connection: sqlite3.Connection, _record: Any) -> None:
    # The driver must not begin transactions by itself: `_begin` says which kind.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # A commit returns when the disk has it, not when the kernel has.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # What is deleted, such as the ids of a round that closes, is overwritten as well.
    connection.execute("PRAGMA secure_delete = ON")


def empty_log(engine: Engine) -> bool:
    """Move all commits into the file itself, and cut the one beside it to nothing.

    False: somebody reads an older state, and some of it is there still. What SQLAlchemy raises.
    """
    raw = engine.raw_connection()
    try:
        cursor = raw.cursor()
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        busy, *_ = cursor.fetchone() or (1,)
        return not busy
    except sqlite3.Error as error:
        raise DBAPIError.instance(None, None, error, sqlite3.Error) from error
    finally:
        raw.close()


def _begin(connection: Connection) -> None:
    # A writer that begins as a reader can be refused half-way, when another wrote meanwhile.
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _checked_version(engine: Engine, path: Path) -> int:
    """The schema of a store that is whole, and not newer than this version's."""
    location = str(path)
    if not path.stat().st_size:
        raise StoreDamaged(location, "is an empty file, which a store never is; remove it if new")
    with engine.connect() as connection:
        # Reads the file once: a truncated or overwritten page is found now, not in a month.
        found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if found != "ok":
            raise StoreDamaged(location, f"is damaged ({found}); restore it from a backup")
        version = upgrades.version(connection, location)
    if version is None:
        raise NotAStore(location)
    return version
