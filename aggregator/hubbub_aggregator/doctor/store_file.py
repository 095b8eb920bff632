"""The store: read without a trace, even of the files that SQLite makes beside it."""

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from hubbub.bundle import Bundle
from hubbub_aggregator.doctor.disk import look_at_disk
from hubbub_aggregator.doctor.findings import About, Finding
from hubbub_aggregator.store import schema
from hubbub_aggregator.store.errors import NO_DATABASE, is_no_database

_store, _disk = About("store"), About("disk")

_POSTGRESQL_PORT: Final = 5432
_PATIENCE: Final = 5.0


def look_at_store(location: str, operator: str | None, bundle: Bundle | None) -> Iterator[Finding]:
    """`operator`: the key that the folder's operator.pub holds, if it holds one."""
    path = store_path(location)
    if path is None:
        yield from _reachable(location)
        return
    yield from _store.looking(lambda: _file(path, operator, bundle))
    yield from _disk.looking(lambda: _room(path))


def store_path(location: str) -> Path | None:
    """The file of an SQLite store; None: it is a server's, or nothing at all."""
    if "://" not in location:
        return Path(location).absolute()
    try:
        url = make_url(location)
    except ArgumentError:
        return None
    return Path(url.database or "").absolute() if url.get_backend_name() == "sqlite" else None


def store_size(path: Path) -> int:
    """Bytes of the file and of what SQLite has beside it; 0: it is not there yet."""
    return sum(
        beside.stat().st_size
        for suffix in ("", "-wal", "-shm")
        if (beside := Path(f"{path}{suffix}")).exists()
    )


def _reachable(location: str) -> Iterator[Finding]:
    """Of a server only that it answers: what is in it, `hubbub serve` checks when it starts."""
    try:
        url = make_url(location)
    except ArgumentError:
        yield _store.problem("its setting is not a URL such as sqlite:///hubbub.sqlite3; mend it")
        return
    host, port = url.host or "localhost", url.port or _POSTGRESQL_PORT
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        yield _store.problem(
            f"the database server at {host}:{port} cannot be reached ({error.strerror or error}); "
            f"start it, or mend the way there"
        )
    else:
        yield _store.ok(f"a server answers at {host}:{port}")


def _file(path: Path, operator: str | None, bundle: Bundle | None) -> Iterator[Finding]:
    folder = path.parent
    if not path.exists():
        if not folder.is_dir():
            yield _store.problem(f"there is no folder {folder} to make {path.name} in; mkdir it")
        elif not os.access(folder, os.W_OK | os.X_OK):
            yield _store.problem(f"it cannot be made: {folder} cannot be written; mend its rights")
        else:
            yield _store.ok(f"{path} is not there yet; `hubbub serve` makes it, empty")
        return
    if not path.is_file():
        yield _store.problem(f"{path} is not a Hubbub store; give --store another path")
        return
    if not path.stat().st_size:
        yield _store.problem(f"{path} is an empty file, which a store never is; remove it if new")
        return
    for needed in (path, folder):
        if not os.access(needed, os.R_OK | os.W_OK):
            yield _store.problem(
                f"{needed} cannot be read and written by this user; mend its rights, or run the "
                f"doctor as the user that the aggregator runs as"
            )
            return
    try:
        with closing(_open(path)) as connection:
            yield from _content(connection, path, operator, bundle)
    except sqlite3.OperationalError as error:
        yield _store.problem(f"{path} cannot be read ({error}); mend that and look again")
    except sqlite3.DatabaseError as error:
        if is_no_database(error):
            yield _store.problem(f"{path} {NO_DATABASE}")
        else:
            yield _store.problem(f"{path} is damaged ({error}); restore it from a backup")


def _open(path: Path) -> sqlite3.Connection:
    """To read alone: a store that nobody has open must not come to have files beside it."""
    beside = [Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm")]
    how = "mode=ro&readonly_shm=1" if all(beside) else "immutable=1"
    return sqlite3.connect(f"file:{quote(os.fsencode(path))}?{how}", uri=True, timeout=_PATIENCE)


def _content(
    connection: sqlite3.Connection, path: Path, operator: str | None, bundle: Bundle | None
) -> Iterator[Finding]:
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        yield _store.problem(
            f"{path} is damaged ({' '.join(found.split())}); restore it from a backup"
        )
        return
    known = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (schema.store.name,)
    ).fetchone()
    if known is None:
        yield _store.problem(f"{path} is not a Hubbub store; give --store another path")
        return
    (version,) = connection.execute("SELECT schema_version FROM hubbub_store").fetchone()
    if version > schema.SCHEMA_VERSION:
        yield _store.problem(
            f"{path} has schema {version}, and this version knows only up to "
            f"{schema.SCHEMA_VERSION}; run a newer Hubbub"
        )
        return
    old = version < schema.SCHEMA_VERSION
    later = f" (schema {version}: the next start brings it up to date)" if old else ""
    yield _store.ok(f"{path} is whole and can be written{later}")
    yield from _in_force(connection, operator, bundle)


def _in_force(
    connection: sqlite3.Connection, operator: str | None, bundle: Bundle | None
) -> Iterator[Finding]:
    """Whether it would take the bundle."""
    row = connection.execute("SELECT operator, revision, signed FROM bundle").fetchone()
    if row is None:
        return
    owner, revision, signed = row
    if operator is not None and owner != operator:
        yield _store.problem(
            "everything in it belongs to another operator than the keys folder's; "
            "give the --store and --keys that belong together"
        )
        return
    if bundle is None:
        yield _store.ok(f"revision {revision} is in force")
        return
    if bundle.revision < revision:
        yield _store.problem(
            f"revision {revision} has been in force, and the bundle has {bundle.revision}; "
            f"serve the newest bundle"
        )
    elif bundle.revision == revision and bundle.signed != signed:
        yield _store.problem(
            f"another bundle of revision {revision} has been in force; serve that one, or sign "
            f"again from it"
        )
    else:
        yield _store.ok(f"revision {revision} is in force, and the bundle goes on from it")
    digests = dict(connection.execute("SELECT name, digest FROM contract").fetchall())
    for name, metric in bundle.metrics.items():
        if digests.get(name, metric.digest) != metric.digest:
            yield _store.problem(
                f"metric {name} meant something else before; a changed question needs a new name"
            )


def _room(path: Path) -> Iterator[Finding]:
    size = store_size(path)
    yield from look_at_disk(
        _disk,
        path if path.exists() else path.parent,
        f"the store is, which takes {size >> 20:,} MiB",
        size,
        full="until then reports are refused with 'later'",
        tight="for a backup of it beside it, and for it to grow",
    )
