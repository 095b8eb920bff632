"""One transaction of the ledger: everything in it becomes durable together, or nothing of it."""

import sqlite3
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Final, TypeVar

from hubbub import state_file, total
from hubbub.errors import StateUnavailable
from hubbub.generation import Sidecar

# Seconds to wait for another process that is writing; a record must not wait longer.
_PATIENCE: Final = 1.0

T = TypeVar("T")


class Transactions:
    """A ledger's transactions, one after the other."""

    __slots__ = ("_connect", "_gave_up", "_lock", "_path", "_sidecar")

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        lock: "Callable[[], threading.RLock]",
        path: str,
        sidecar: Sidecar | None,
    ) -> None:
        self._connect = connect
        self._lock = lock
        self._path = path
        self._sidecar = sidecar
        # When a thread last waited for another process for as long as one may.
        self._gave_up = -inf

    def run(self, work: Callable[[sqlite3.Connection], T], *, counts: bool = True) -> T:
        """Do `work` with the connection while nobody else is writing; return what it returns.

        Durable then; undone if it raises. If anything was changed, and it `counts`, the ledger's
        number is one higher, and the sidecar knows it: a sync of the log, and one of the sidecar.

        A function and not a context, since a signal's handler may raise anywhere, an app's time
        limit for one: at the entry and exit of a context nothing would let go of the lock, or undo.
        """
        came = time.monotonic()
        with self._lock():
            try:
                connection = self._connect()
                if connection.in_transaction:
                    raise StateUnavailable(self._path, "it is in use by a caller of this very call")
                try:
                    try:
                        self._begin(connection, came)
                        before = connection.total_changes
                        result = work(connection)
                        number: int | None = None
                        if counts and self._sidecar and connection.total_changes != before:
                            number = total.advance(connection)
                        connection.execute("COMMIT")
                    finally:
                        _undo(connection)
                finally:
                    # Nothing is left to undo, unless the first was cut short.
                    _undo(connection)
            except (sqlite3.Error, UnicodeError) as error:
                raise state_file.state_error(self._path, error) from None
            if counts and self._sidecar:
                # After the log is durable, so that the sidecar is never ahead of an honest ledger.
                self._sidecar.stamp(number)
        return result

    def _begin(self, connection: sqlite3.Connection, came: float) -> None:
        """Begin when no other process is writing."""
        # Threads that wait for the same process wait at the same time: whoever was there when one
        # gave up has waited with it, and tries once.
        patience = 0.0 if came < self._gave_up else _PATIENCE
        deadline = time.monotonic() + patience
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() >= deadline:
                    if patience:
                        self._gave_up = time.monotonic()
                    raise
            # Asked anew, SQLite looks often again: one that writes all the time leaves but
            # moments for another.


def _undo(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
