"""One transaction of the ledger: everything in it becomes durable together, or nothing of it."""

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from hubbub import rows, schema, state_file
from hubbub.errors import StateUnavailable
from hubbub.generation import Sidecar

# Seconds to wait for another process that is writing; a record must not wait longer.
_PATIENCE: Final = 1.0

T = TypeVar("T")


def transact(
    connect: Callable[[], sqlite3.Connection],
    lock: "threading.RLock",
    path: str,
    sidecar: Sidecar | None,
    work: Callable[[sqlite3.Connection], T],
) -> T:
    """Do `work` with the connection while nobody else is writing; return what it returns.

    Durable then; undone if it raises. If anything was changed, the ledger's number is one higher,
    and the sidecar knows it: a sync of the log, and one of the sidecar.

    A function and not a context, since a signal's handler may raise anywhere, an app's time limit
    for one: at the entry and exit of a context nothing would let go of the lock, or undo.
    """
    # Before the lock: threads that wait for the same process wait at the same time.
    deadline = time.monotonic() + _PATIENCE
    with lock:
        try:
            connection = connect()
            if connection.in_transaction:
                raise StateUnavailable(path, "it is in use by a caller of this very call")
            try:
                try:
                    _begin(connection, deadline)
                    before = connection.total_changes
                    result = work(connection)
                    number: int | None = None
                    if sidecar is not None and connection.total_changes != before:
                        number = schema.number(connection) + 1
                        rows.overwrite(connection, "generation", {"number": number})
                    connection.execute("COMMIT")
                finally:
                    _undo(connection)
            finally:
                # Nothing is left to undo, unless the first was cut short.
                _undo(connection)
        except (sqlite3.Error, UnicodeError) as error:
            raise state_file.state_error(path, error) from None
        if sidecar is not None:
            # After the log is durable, so that the sidecar is never ahead of an honest ledger.
            sidecar.stamp(number)
    return result


def _begin(connection: sqlite3.Connection, deadline: float) -> None:
    """Begin when no other process is writing."""
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() >= deadline:
                raise
        # Asked anew, SQLite looks often again: one that writes all the time leaves but moments
        # for another.


def _undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
