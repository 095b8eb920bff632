"""One transaction of the ledger: everything in it becomes durable together, or nothing of it."""

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Final

from hubbub import rows, schema, state_file
from hubbub.errors import StateUnavailable
from hubbub.generation import Sidecar

# Seconds to wait for another process that is writing; a record must not wait longer.
_PATIENCE: Final = 1.0


class Transaction:
    """The connection for a block, and nobody else writing.

    Durable when the block has ended; undone if it raises. If anything was changed, the ledger's
    number is one higher, and the sidecar knows it: a sync of the log, and one of the sidecar. A
    class, since a generator's context would take a tenth of a device's work.
    """

    __slots__ = ("_before", "_connect", "_connection", "_lock", "_path", "_sidecar")

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        lock: "threading.RLock",
        path: str,
        sidecar: Sidecar | None,
    ) -> None:
        self._connect = connect
        self._lock = lock
        self._path = path
        self._sidecar = sidecar

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            self._begin()
        except BaseException:
            self._lock.release()
            raise
        return self._connection

    def _begin(self) -> None:
        try:
            self._connection = self._connect()
            if self._connection.in_transaction:
                raise StateUnavailable(self._path, "it is in use by a caller of this very call")
            self._wait_for_the_others()
            self._before = self._connection.total_changes
        except sqlite3.Error as error:
            raise state_file.state_error(self._path, error) from None

    def _wait_for_the_others(self) -> None:
        """Begin when no other process is writing."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() >= deadline:
                    raise
            # Asked anew, SQLite looks often again: one that writes all the time leaves but
            # moments for another.

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self._end(error)
        finally:
            self._lock.release()

    def _end(self, error: BaseException | None) -> None:
        number: int | None = None
        try:
            try:
                if error is None:
                    number = self._next_number()
                    self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except sqlite3.Error as failure:
            raise state_file.state_error(self._path, failure) from None
        if isinstance(error, sqlite3.Error | UnicodeError):
            raise state_file.state_error(self._path, error) from None
        if self._sidecar is not None:
            # After the log is durable, so that the sidecar is never ahead of an honest ledger.
            self._sidecar.stamp(number)

    def _next_number(self) -> int | None:
        """Count a change of the ledger. None: there was none, or nobody counts."""
        if self._sidecar is None or self._connection.total_changes == self._before:
            return None
        number = schema.number(self._connection) + 1
        rows.overwrite(self._connection, "generation", {"number": number})
        return number
