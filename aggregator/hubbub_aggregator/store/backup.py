"""Copies of a store that is in use, by SQLite's own means: one instant, whole, on disk."""

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from hubbub_aggregator.store import schema
from hubbub_aggregator.store.errors import NO_DATABASE, is_no_database

# How long it waits for an aggregator that has the store to itself for a moment, seconds.
_LOCK_WAIT: Final = 20.0


class BackupError(Exception):
    """Why there is no copy; one sentence that says what to do."""


def back_up(location: str, destination: Path) -> int:
    """Copy the store to a new file of mode 0600; returns its size in bytes.

    A reader of the copy finds every report that was durable when it began, and no other. Writers
    are not kept waiting. Raises BackupError or OSError, having left nothing behind.
    """
    path = _path(location)
    if not path.exists():
        raise BackupError(f"there is no store {path}; give --store")
    if not path.is_file():
        raise BackupError(f"{path} is not a Hubbub store; give --store another path")
    if destination.exists():
        raise BackupError(f"{destination} is there already; give a name that is not taken")
    # Beside the destination, and given the name when it is whole: made private.
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{destination.name}.", dir=destination.parent)
    except OSError as error:
        raise BackupError(
            f"{destination} cannot be made ({error.strerror}); give a place that can be written"
        ) from None
    os.close(descriptor)
    scratch = Path(name)
    try:
        _copy(path, scratch)
        _sync(scratch)
        os.link(scratch, destination)
        _sync(destination.parent)
    except FileExistsError:
        raise BackupError(
            f"{destination} is there already; give a name that is not taken"
        ) from None
    except sqlite3.Error as error:
        if is_no_database(error):
            raise BackupError(f"{path} {NO_DATABASE}") from None
        raise BackupError(
            f"{path} cannot be copied ({error}); `hubbub doctor` says what is wrong with it"
        ) from None
    finally:
        scratch.unlink()
    return destination.stat().st_size


def _path(location: str) -> Path:
    if "://" not in location:
        return Path(location).absolute()
    try:
        url = make_url(location)
    except ArgumentError:
        raise BackupError("the store is not a URL such as sqlite:///hubbub.sqlite3") from None
    if url.get_backend_name() != "sqlite" or not url.database:
        raise BackupError("only SQLite stores are copied by this; for PostgreSQL use pg_dump")
    return Path(url.database).absolute()


def _copy(path: Path, scratch: Path) -> None:
    # An ordinary connection but for making no file: it locks as the aggregator's own do.
    source = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=rw", uri=True, timeout=_LOCK_WAIT
    )
    with closing(source), closing(sqlite3.connect(scratch)) as copy:
        source.execute("PRAGMA query_only = ON")
        known = source.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (schema.store.name,)
        ).fetchone()
        if known is None:
            raise BackupError(f"{path} is not a Hubbub store; give --store another path")
        # All pages in one step, and so in one read transaction: page by page, every commit
        # meanwhile would have it begin again.
        source.backup(copy, pages=-1)
        (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise BackupError(
                f"{path} is damaged ({' '.join(found.split())}); restore an older backup"
            )
        # One file, whoever opens it next.
        copy.execute("PRAGMA journal_mode = DELETE")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
