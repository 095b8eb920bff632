"""The device's memory: what was charged, what waits to be sent, what left. One SQLite file.

One row of `report` is at once the charge, the answered round and the outbox entry, so that
no crash can separate them. Rows are never removed: opting out deletes what a report said,
not that it was charged.
"""

import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from hubbub import forks, state_file
from hubbub.contract import Bundle, Metric
from hubbub.digest import sha256
from hubbub.errors import ChangedContract, ForeignOperator, LowerRevision, StateUnavailable
from hubbub.limits import MAX_CHARGE_PER_DEVICE


class Status(IntEnum):
    """What has become of a report."""

    WAITING = 0
    """Stored, and has not left."""
    SENT = 1
    """Handed to the network; no answer yet."""
    COUNTED = 2
    """The aggregator counted it, once."""
    REFUSED = 3
    """The aggregator will not count it."""
    EXPIRED = 4
    """Its round closed before an answer came; an earlier try may have been counted."""
    WITHDRAWN = 5
    """Collection was turned off before it was counted."""


class Charge(IntEnum):
    """What came of asking to charge for an answer."""

    CHARGED = 0
    ALREADY_ANSWERED = 1
    BUDGET_SPENT = 2


class Entry(NamedTuple):
    """One row of the ledger; its fields are the table's columns."""

    source: str
    metric: str
    round: int
    digest: bytes
    charge: int
    recorded_at: int
    status: Status
    report: bytes | None
    key_id: bytes | None = None
    sealed: bytes | None = None
    destination: str | None = None
    left_at: int | None = None


_COLUMNS: Final = ", ".join(Entry._fields)
_OUTBOX: Final = f"status IN ({Status.WAITING:d}, {Status.SENT:d})"
_ROW: Final = "source = ? AND metric = ? AND round = ?"


class Ledger:
    """An open state file. Safe to use from several threads and several processes.

    Whatever reads or writes raises StateUnavailable or StateCorrupt.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._closed = False
        # Re-entrant: a signal handler may find its own thread in here, and must not wait for it.
        self._lock = threading.RLock()
        forks.watch(self, self._lock, Ledger._after_fork)

    @classmethod
    def open(cls, state_dir: str | None) -> "Ledger":
        """Open or create the ledger in a directory; None: in memory."""
        if state_dir is None:
            connection = state_file.connect(state_file.MEMORY)
            state_file.create_tables(connection)
            return cls(connection, state_file.MEMORY)
        path = os.path.join(state_dir, state_file.FILE_NAME)
        try:
            os.makedirs(state_dir, mode=0o700, exist_ok=True)
        except (OSError, ValueError) as error:
            raise StateUnavailable(path, f"cannot be created: {error}") from None
        if not os.path.exists(path):
            state_file.create(path)
        ledger = cls(state_file.open_checked(path), path)
        try:
            ledger._require_writable()
        except BaseException:
            ledger.close()
            raise
        return ledger

    @classmethod
    def open_to_read(cls, state_dir: str) -> "Ledger":
        """Open an existing ledger for looking only."""
        path = os.path.join(state_dir, state_file.FILE_NAME)
        if not os.path.exists(path):
            raise StateUnavailable(path, "there is no ledger here")
        return cls(state_file.open_checked(path), path)

    def adopt(
        self, bundle: Bundle, operator_keys: Sequence[str], budgets: Mapping[str, int]
    ) -> None:
        """Make a verified bundle the one in force, and remember the app's budgets.

        Raises ForeignOperator, LowerRevision or ChangedContract, and then changes nothing.
        """
        fingerprint = sha256(bundle.signed)
        with self.transaction() as connection:
            rows = connection.execute("SELECT key, revision, bundle FROM operator")
            known = {key: (revision, seen) for key, revision, seen in rows}
            for key in known:
                if key not in operator_keys:
                    raise ForeignOperator(key, bundle.operator)
            revision, seen = known.get(bundle.operator, (0, b""))
            if bundle.revision < revision or (bundle.revision == revision and seen != fingerprint):
                raise LowerRevision(revision, bundle.revision)
            contracts = dict(connection.execute("SELECT metric, digest FROM contract"))
            for metric in bundle.metrics.values():
                digest = contracts.get(metric.name, metric.digest)
                if digest != metric.digest:
                    raise ChangedContract(metric.name, digest, metric.digest)
            if bundle.revision > revision:
                _write(connection, "operator", (bundle.operator, bundle.revision, fingerprint))
            for metric in bundle.metrics.values():
                if metric.name not in contracts:
                    _write(connection, "contract", (metric.name, metric.digest, metric.contract))
            if dict(connection.execute("SELECT source, charge FROM budget")) != budgets:
                connection.execute("DELETE FROM budget")
                for budget in budgets.items():
                    _write(connection, "budget", budget)

    def transaction(self) -> "Transaction":
        """Everything in the block becomes durable together, or nothing of it.

        For recording: make an Answer of the connection it gives, and store in it.
        """
        return Transaction(self._connection, self._lock, self._path)

    def outbox(self) -> list[Entry]:
        """What is to be sent, oldest first."""
        return self._entries(f"WHERE {_OUTBOX} ORDER BY recorded_at, metric, round")

    def entries(self) -> list[Entry]:
        """Everything that was ever charged, by source, metric and round."""
        return self._entries("ORDER BY source, metric, round")

    def depart(
        self, entry: Entry, key_id: bytes, sealed: bytes, destination: str, now: int
    ) -> bytes | None:
        """Note, before it is sent, that a report leaves sealed; return the bytes to send.

        They are those of an earlier try, by whichever process, if that was to the same key.
        None: the report no longer waits, and must not be sent.
        """
        with self.transaction() as connection:
            for kept in _select(connection, f"WHERE {_ROW} AND {_OUTBOX}", entry[:3]):
                if kept.sealed is not None and kept.key_id == key_id:
                    sealed = kept.sealed
                left_at = now if kept.left_at is None else kept.left_at
                _write(
                    connection,
                    "report",
                    kept._replace(
                        status=Status.SENT,
                        key_id=key_id,
                        sealed=sealed,
                        destination=destination,
                        left_at=left_at,
                    ),
                )
                return sealed
        return None

    def settle(self, entry: Entry, status: Status) -> None:
        """Note what became of a report that was sent; its sealed bytes are done with."""
        with self.transaction() as connection:
            for kept in _select(connection, f"WHERE {_ROW} AND {_OUTBOX}", entry[:3]):
                _write(connection, "report", kept._replace(status=status, sealed=None))

    def withdraw(self) -> None:
        """Empty the outbox. What never left is deleted; every charge stays."""
        with self.transaction() as connection:
            for kept in _select(connection, f"WHERE {_OUTBOX}"):
                report = None if kept.left_at is None else kept.report
                withdrawn = kept._replace(status=Status.WITHDRAWN, sealed=None, report=report)
                _write(connection, "report", withdrawn)

    def contracts(self) -> dict[str, bytes]:
        """Every contract this device ever held, by metric."""
        return dict(self._rows("SELECT metric, contract FROM contract ORDER BY metric"))

    def budgets(self) -> dict[str, int]:
        """The budget the app last declared for each source."""
        return dict(self._rows("SELECT source, charge FROM budget ORDER BY source"))

    def operators(self) -> dict[str, int]:
        """The operators whose bundles were in force, and their highest revision."""
        return dict(self._rows("SELECT key, revision FROM operator ORDER BY key"))

    def close(self) -> None:
        """Close the file; what comes after raises StateUnavailable."""
        with self._lock, state_file.state_errors(self._path):
            self._closed = True
            self._connection.close()

    def _after_fork(self) -> None:
        """Open the file again: a connection must not be used on both sides of a fork.

        The old one is idle, so closing it undoes nothing of the parent's. In memory, the
        child has a copy.
        """
        if self._path != state_file.MEMORY and not self._closed:
            self._connection.close()
            self._connection = state_file.connect(self._path)

    def _require_writable(self) -> None:
        """Try it now, so that a state that cannot be written is refused at the start."""
        with self.transaction() as connection:
            connection.execute("UPDATE budget SET charge = charge")
            connection.execute("ROLLBACK")

    def _entries(self, clause: str) -> list[Entry]:
        with self._lock, state_file.state_errors(self._path):
            return _select(self._connection, clause)

    def _rows(self, statement: str) -> list[Any]:
        with self._lock, state_file.state_errors(self._path):
            return self._connection.execute(statement).fetchall()


class Transaction:
    """The connection for a block, and nobody else writing.

    Durable when the block has ended; undone if it raises. A class, since a generator's
    context would take a tenth of a device's work.
    """

    __slots__ = ("_connection", "_lock", "_path")

    def __init__(self, connection: sqlite3.Connection, lock: "threading.RLock", path: str) -> None:
        self._connection = connection
        self._lock = lock
        self._path = path

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
            if self._connection.in_transaction:
                raise StateUnavailable(self._path, "it is in use by a caller of this very call")
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise state_file.state_error(self._path, error) from None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        try:
            self._end(error)
        finally:
            self._lock.release()

    def _end(self, error: BaseException | None) -> None:
        try:
            try:
                if error is None and self._connection.in_transaction:
                    self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        except sqlite3.Error as failure:
            raise state_file.state_error(self._path, failure) from None
        if isinstance(error, sqlite3.Error | UnicodeError):
            raise state_file.state_error(self._path, error) from None


class Answer:
    """A charge under way, inside its transaction."""

    def __init__(
        self, connection: sqlite3.Connection, metric: Metric, round_number: int, budget: int
    ) -> None:
        self._connection = connection
        self._metric = metric
        self._round = round_number
        self.charge = self._decide(budget)

    def _decide(self, budget: int) -> Charge:
        metric = self._metric
        newest, source_spent, device_spent = self._connection.execute(
            "SELECT max(round) FILTER (WHERE source = :source AND metric = :metric), "
            "coalesce(sum(charge) FILTER (WHERE source = :source), 0), coalesce(sum(charge), 0) "
            "FROM report",
            {"source": metric.source, "metric": metric.name},
        ).fetchone()
        # A clock that was set back asks for a round that has passed: it stays passed.
        if newest is not None and newest >= self._round:
            return Charge.ALREADY_ANSWERED
        charge = metric.epsilon.charge
        if source_spent + charge > budget or device_spent + charge > MAX_CHARGE_PER_DEVICE:
            return Charge.BUDGET_SPENT
        return Charge.CHARGED

    def store(self, report: bytes, now: int) -> None:
        """Write charge and report (id ‖ payload) as one row."""
        metric = self._metric
        entry = Entry(
            source=metric.source,
            metric=metric.name,
            round=self._round,
            digest=metric.digest,
            charge=metric.epsilon.charge,
            recorded_at=now,
            status=Status.WAITING,
            report=report,
        )
        _write(self._connection, "report", entry)


def _select(
    connection: sqlite3.Connection, clause: str, parameters: Sequence[object] = ()
) -> list[Entry]:
    rows = connection.execute(f"SELECT {_COLUMNS} FROM report {clause}", parameters)  # noqa: S608
    return [Entry(*row)._replace(status=Status(row[6])) for row in rows]


def _write(connection: sqlite3.Connection, table: str, row: Sequence[object]) -> None:
    """Write a row, in place of the one with the same key if there is one."""
    places = ", ".join("?" * (len(row) + 1))
    connection.execute(
        f"REPLACE INTO {table} VALUES ({places})",  # noqa: S608
        state_file.checksummed(row),
    )
