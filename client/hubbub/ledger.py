"""The device's memory: what was charged, what waits to be sent, what left. One SQLite file.

Rows are never removed: opting out deletes what a report said, not that it was charged. Beside
the file lies the sidecar, by which an older copy is told; see generation.py.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from hubbub import adoption, forks, outbox, rows, schema, state_file
from hubbub.bundle import Bundle
from hubbub.errors import StateRolledBack, StateUnavailable
from hubbub.generation import Sidecar
from hubbub.outbox import OutboxTimes
from hubbub.rows import (
    KEY,
    OUTBOX,
    BundleRecord,
    Choice,
    Departure,
    Enrolment,
    Entry,
    Status,
    Switch,
)
from hubbub.transaction import Transactions

# A log is merged into the file when it has grown to this; 1 MiB is some fifty records.
_LOG_BYTES: Final = 1 << 20
# A log that was just begun: its head, and a page of 4 KiB with its own.
_BEGUN_LOG_BYTES: Final = (4 << 10) + 32 + 24
# How long whoever deletes waits for those who read.
_READERS_SECONDS: Final = 1.0

T = TypeVar("T")


class Ledger:
    """An open state file. Safe to use from several threads and several processes.

    Whatever reads or writes raises StateUnavailable, StateCorrupt or, opening, StateRolledBack.
    """

    def __init__(
        self, connection: sqlite3.Connection, path: str, sidecar: Sidecar | None = None
    ) -> None:
        # None: closed, or to be opened again after a fork.
        self._connection: sqlite3.Connection | None = connection
        self._path = path
        self._sidecar = sidecar
        self._closed = False
        # Re-entrant: a signal handler may find its own thread in here, and must not wait for it.
        self._lock = threading.RLock()
        self._transactions = Transactions(self._connected, self._ours, path, sidecar)
        forks.watch(self, self._lock, Ledger._after_fork)

    @classmethod
    def open(cls, state_dir: str | None) -> "Ledger":
        """Open or create the ledger in a directory; None: in memory."""
        if state_dir is None:
            return cls(state_file.create_in_memory(), state_file.MEMORY)
        path, sidecar = _places(state_dir)
        _require_announced(path)
        try:
            os.makedirs(state_dir, mode=0o700, exist_ok=True)
        except (OSError, ValueError) as error:
            raise StateUnavailable(path, f"cannot be created: {error}") from None
        with forks.forbidden():
            if not _exists(path, sidecar):
                state_file.create(path)
            reached = sidecar.newest()
            require = partial(sidecar.require, reached, path)
            ledger = cls(state_file.open_existing(path, require), path, sidecar)
            try:
                ledger._start(sidecar, reached)
            except BaseException:
                ledger.close()
                raise
        return ledger

    @classmethod
    def open_to_read(cls, state_dir: str) -> "Ledger":
        """Copy an existing ledger into memory, for looking only. Writes nothing."""
        path, sidecar = _places(state_dir)
        with forks.forbidden():
            if not _exists(path, sidecar):
                raise StateUnavailable(path, "there is no ledger here")
            require = partial(sidecar.require, sidecar.newest(), path)
            connection = state_file.read_copy(path, require)
        state_file.upgrade(connection, path)
        return cls(connection, state_file.MEMORY)

    def adopt(
        self,
        bundle: Bundle,
        operator_keys: Sequence[str],
        budgets: Mapping[str, int],
        *,
        now: int,
        fetched: bool = False,
    ) -> bytes:
        """Take a verified bundle, and remember the app's budgets, in units of 10^-12 of ε.

        Returns the SignedBundle that is in force: this one, or a higher revision that was
        fetched over the network before. `fetched`: this one was, too. `now`: seconds UTC.
        Raises ForeignOperator, LowerRevision or ChangedContract, and then changes nothing.
        """

        def take(connection: sqlite3.Connection) -> bytes:
            in_force = adoption.adopt(connection, bundle, operator_keys, now=now, fetched=fetched)
            if not _refreshed_at(connection):
                # What the app hands in at first is new enough for now.
                rows.overwrite(connection, "refresh", {"asked_at": now})
            if dict(connection.execute("SELECT source, charge FROM budget")) != budgets:
                connection.execute("DELETE FROM budget")
                for budget in budgets.items():
                    rows.write(connection, "budget", budget)
            return in_force

        return self.transact(take)

    def transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Everything that `work` does becomes durable together, or nothing of it.

        For recording: make an Answer of the connection it is given, and store in it.
        """
        return self._transactions.run(work)

    def outbox(self) -> list[Entry]:
        """What is to be sent, oldest first."""
        return self._read(outbox.waiting)

    def outbox_times(self) -> OutboxTimes | None:
        """When what waits is due, and was recorded; None: nothing waits."""
        return self._read(outbox.times)

    def entries(self) -> list[Entry]:
        """Every report that was ever stored, by source, metric and round."""
        return self._read(
            lambda connection: rows.entries(connection, "ORDER BY source, metric, round")
        )

    def departures(self, entry: Entry | None = None) -> list[Departure]:
        """Every departure, or those of one report; by source, metric, round and time."""
        where, which = ("", ()) if entry is None else (f"WHERE {KEY}", entry[:3])
        clause = f"{where} ORDER BY source, metric, round, left_at"
        return self._read(lambda connection: rows.departures(connection, clause, which))

    def enrolments(self) -> list[Enrolment]:
        """Every series that was ever paid for, by source, metric and number."""
        clause = "ORDER BY source, metric, number"
        return self._read(lambda connection: rows.enrolments(connection, clause))

    def bundles(self) -> list[BundleRecord]:
        """Every bundle that was ever taken, by operator and revision."""
        clause = "ORDER BY operator, revision"
        return self._read(lambda connection: rows.bundles(connection, clause))

    def contracts(self) -> dict[str, bytes]:
        """Every contract this device ever held, by metric."""
        return dict(self._rows("SELECT metric, contract FROM contract ORDER BY metric"))

    def budgets(self) -> dict[str, int]:
        """The budget the app last declared for each source."""
        return dict(self._rows("SELECT source, charge FROM budget ORDER BY source"))

    def accounts(self) -> dict[str, int]:
        """What each source has spent, in units of 10^-12 of ε."""
        accounts = self._read(lambda connection: rows.accounts(connection, "ORDER BY source"))
        return {account.source: account.spent for account in accounts}

    def dropped(self) -> int:
        """How many reports were dropped, because too many waited."""
        ((count,),) = self._rows(
            f"SELECT count(*) FROM report WHERE status = {Status.DROPPED:d}"  # noqa: S608
        )
        return int(count)

    def depart(
        self, entry: Entry, key_id: bytes, sealed: bytes, destination: str, now: int
    ) -> bytes | None:
        """Note, before it is sent, that a report leaves sealed; return the bytes to send.

        They are those of an earlier try, by whichever process, if that was to the same key.
        None: the report no longer waits, or the owner has turned sending off; it must not be
        sent. A retry to the same destination notes nothing new.
        """

        def leave(connection: sqlite3.Connection) -> bytes | None:
            if _choice(connection).switch is not Switch.ON:
                return None
            for kept in rows.entries(connection, f"WHERE {KEY} AND {OUTBOX}", entry[:3]):
                leaving, same_key = sealed, (*entry[:3], key_id)
                for earlier in rows.departures(
                    connection, f"WHERE {KEY} AND key_id = ? ORDER BY left_at DESC", same_key
                ):
                    leaving = earlier.sealed or leaving
                    if earlier.destination == destination:
                        return leaving
                departure = Departure(*entry[:3], key_id, destination, leaving, now)
                rows.write(connection, "departure", departure)
                rows.write(connection, "report", kept._replace(status=Status.SENT))
                return leaving
            return None

        return self.transact(leave)

    def settle(self, entry: Entry, status: Status) -> None:
        """Note what became of a report that was sent."""

        def note(connection: sqlite3.Connection) -> None:
            for kept in rows.entries(connection, f"WHERE {KEY} AND {OUTBOX}", entry[:3]):
                outbox.settle(connection, kept, status)

        self.transact(note)

    def drop_old(self) -> None:
        """Drop reports that waited too long; see outbox.py."""
        self.transact(outbox.drop_old)

    def withdraw(self) -> None:
        """Empty the outbox, and delete what every report said and every memo.

        Every charge stays, with its time, and that and when a report left.
        """
        self.transact(outbox.withdraw)
        self.forget()

    def forget(self) -> bool:
        """See that what was deleted is not in the log any more; tell whether that is so.

        Somebody who is reading the ledger is waited for, at most a second.
        """
        if state_file.log_size(self._path) <= _BEGUN_LOG_BYTES:
            return True
        deadline = time.monotonic() + _READERS_SECONDS
        while not self._merge("TRUNCATE"):
            if time.monotonic() >= deadline:
                return False
        return True

    def switch(self) -> Switch:
        """What the owner has chosen."""
        return self.choice().switch

    def choice(self) -> Choice:
        """What the owner has chosen, and when."""
        return self._read(_choice)

    def set_switch(self, switch: Switch, now: int, *, unless: Switch | None = None) -> Switch:
        """Keep the owner's choice; it holds at once, for every process. `now`: seconds UTC.

        Where `unless` is chosen, that stays. Opting out withdraws. Choosing what is chosen
        already changes nothing else. Returns what is chosen then.
        """

        def choose(connection: sqlite3.Connection) -> Switch:
            before = _choice(connection).switch
            if before is unless:
                return before
            if before is not switch:
                rows.overwrite(connection, "owner", {"switch": switch, "changed_at": now})
            if switch is Switch.OPTED_OUT:
                outbox.withdraw(connection)
            return switch

        chosen = self.transact(choose)
        if switch is Switch.OPTED_OUT:
            self.forget()
        return chosen

    def refreshed_at(self) -> int:
        """When a newer bundle was last asked for, or the first was taken; seconds UTC."""
        return self._read(_refreshed_at)

    def note_refresh(self, now: int) -> None:
        """Note that a newer bundle was asked for."""
        self.transact(lambda connection: rows.overwrite(connection, "refresh", {"asked_at": now}))

    def require_writable(self) -> None:
        """Write something that changes nothing. Raises StateUnavailable where that cannot be."""
        self._begin_log()

    def checkpoint(self) -> None:
        """Merge the log into the file, if it has grown long. Waits for nobody."""
        if state_file.log_size(self._path) > _LOG_BYTES:
            self._merge("PASSIVE")

    def close(self) -> None:
        """Close the file; what comes after raises StateUnavailable."""
        with self._ours(), state_file.state_errors(self._path):
            self._closed = True
            self._disconnect()

    def _start(self, sidecar: Sidecar, reached: int | None) -> None:
        """Bring ledger and sidecar up to today, and see that they can be written."""
        with self._ours(), state_file.state_errors(self._path):
            connection = self._connected()
            number = schema.number(connection)
            if reached is None:
                sidecar.create()
            elif reached < number:
                # A kill came between the two.
                sidecar.stamp(number)
            state_file.upgrade(connection, self._path)
        self._begin_log()
        if number == 0:
            # In the file itself: it must not look new when its log and the sidecar are lost.
            self.transact(schema.count)
            self._merge("TRUNCATE")
        if self.switch() is Switch.OPTED_OUT:
            # A reader may have been in the way.
            self.forget()

    def _begin_log(self) -> None:
        """Write something that changes nothing, so that no record has to begin a log.

        Beginning one takes a sync more, and is where a file shows that it cannot be written.
        """
        self._transactions.run(schema.touch, counts=False)

    def _merge(self, how: str) -> bool:
        """Merge the log into the file; tell whether all of it could be."""
        # As one: a record between the two would have to begin the log itself.
        with self._ours(), state_file.state_errors(self._path):
            busy, *_ = self._connected().execute(f"PRAGMA wal_checkpoint({how})").fetchone()
            self._begin_log()
        return not busy

    def _ours(self) -> "threading.RLock":
        """The lock, for whoever uses the connection. Raises StateUnavailable where that is not
        this process's, and nobody may be here to let go of the lock."""
        _require_announced(self._path)
        return self._lock

    def _connected(self) -> sqlite3.Connection:
        """The connection; under the lock."""
        if self._connection is None:
            if self._closed:
                raise StateUnavailable(self._path, "it is closed")
            self._connection = state_file.reopen(self._path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _after_fork(self) -> None:
        """Let go of the file: a connection must not be used on both sides of a fork.

        Closing undoes nothing of the parent's: the connection is idle, and as long as the parent
        has its own, SQLite leaves the log alone. It is opened again when it is used, and not
        before every ledger has let go: the locks of one process are counted together, and the
        child has none. In memory, the child has a copy.
        """
        if self._path != state_file.MEMORY:
            self._disconnect()

    def _read(self, select: Callable[[sqlite3.Connection], T]) -> T:
        with self._ours(), state_file.state_errors(self._path):
            return select(self._connected())

    def _rows(self, statement: str) -> list[Any]:
        return self._read(lambda connection: connection.execute(statement).fetchall())


def _refreshed_at(connection: sqlite3.Connection) -> int:
    (asked_at,) = connection.execute("SELECT asked_at FROM refresh").fetchone()
    return int(asked_at)


def _choice(connection: sqlite3.Connection) -> Choice:
    switch, chosen_at = connection.execute("SELECT switch, changed_at FROM owner").fetchone()
    return Choice(Switch(switch), chosen_at)


def _require_announced(path: str) -> None:
    """Raise StateUnavailable where a ledger of the parent's would be used, or its locks lost."""
    if forks.unannounced():
        raise StateUnavailable(
            path,
            "this process was forked without Python's fork hooks: make the client after the fork, "
            "or have the server call the hooks (uWSGI: lazy-apps or py-call-uwsgi-fork-hooks)",
        )


def _places(state_dir: str) -> tuple[str, Sidecar]:
    """Where ledger and sidecar are, also when the program goes to another directory."""
    if not os.path.isabs(state_dir):
        try:
            state_dir = os.path.join(os.getcwd(), state_dir)
        except OSError as error:
            raise StateUnavailable(state_dir, f"no directory to start from: {error}") from None
    return os.path.join(state_dir, state_file.FILE_NAME), Sidecar(state_dir)


def _exists(path: str, sidecar: Sidecar) -> bool:
    """Whether there is a ledger. Raises StateRolledBack if there was one."""
    # In this order: the ledger is made first.
    had_ledger = sidecar.exists()
    if os.path.exists(path):
        return True
    if had_ledger:
        raise StateRolledBack(
            path,
            "the ledger is missing, and a fresh one would hand out again what was spent; put it "
            "back, with every file beside it",
        )
    return False
