"""Opening the database: created whole or not at all, checked before it is believed."""

import os
import sqlite3
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from hubbub_aggregator.store import schema, upgrades
from hubbub_aggregator.store.errors import (
    NewerSchema,
    NotAStore,
    StoreDamaged,
    StoreUnavailable,
)

# How long a transaction waits for another, seconds: closing a round of millions takes some.
_LOCK_WAIT: Final = 20.0

# Readers hold a connection for a moment each; there are fewer handler threads than this.
_CONNECTIONS: Final = 128

# The execution option by which a transaction says that it will write.
WRITES: Final = "hubbub_writes"


def open_engine(location: str) -> Engine:
    """Open a store, creating it if nothing is there; `location` is an sqlite URL or a path.

    One that an earlier version made is brought up to this one's schema.

    Raises StoreUnavailable, NotAStore, NewerSchema or StoreDamaged.
    """
    path = _sqlite_path(location)
    if not path.exists():
        _create(path)
    engine = _engine(path)
    try:
        with translated(str(path)):
            if _checked_version(engine, path) < schema.SCHEMA_VERSION:
                with engine.execution_options(**{WRITES: True}).begin() as connection:
                    upgrades.upgrade(connection)
    except Exception:
        engine.dispose()
        raise
    return engine


@contextmanager
def translated(location: str) -> Generator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except (OperationalError, PoolTimeout) as error:
        raise StoreUnavailable(
            location,
            f"cannot be used ({_reason(error)}); is there space, and may this process write the "
            f"file and its folder?",
        ) from error
    except DatabaseError as error:
        raise StoreDamaged(
            location, f"is damaged ({_reason(error)}); restore it from a backup"
        ) from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "orig", error))


def _sqlite_path(location: str) -> Path:
    if "://" not in location:
        return Path(location).absolute()
    try:
        url = make_url(location)
    except ArgumentError:
        raise StoreUnavailable(location, "is not a URL such as sqlite:///hubbub.sqlite3") from None
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        # Without the password that such a URL may hold.
        raise StoreUnavailable(
            url.render_as_string(), "this version keeps reports in an SQLite file only"
        )
    if url.query:
        raise StoreUnavailable(url.render_as_string(), "a store's URL takes no options after a ?")
    return Path(url.database).absolute()


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
        _sync_folder(path.parent)
    except FileExistsError:
        pass  # Another process was faster; what it made is checked like any other store.
    except OSError as error:
        raise StoreUnavailable(str(path), f"cannot be created: {error.strerror}") from error


def _create_tables(path: Path) -> None:
    engine = _engine(path)
    try:
        with translated(str(path)), engine.begin() as connection:
            schema.metadata.create_all(connection)
            connection.execute(schema.store.insert().values(schema_version=schema.SCHEMA_VERSION))
    finally:
        engine.dispose()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        if not inspect(connection).has_table(schema.store.name):
            raise NotAStore(location)
        version: int = connection.execute(select(schema.store.c.schema_version)).scalar_one()
        if version > schema.SCHEMA_VERSION:
            raise NewerSchema(location, schema.SCHEMA_VERSION, version)
    return version
