"""The device's memory: what was charged, what waits to be sent, what left. One SQLite file.

One row of `report` is at once the charge, the answered round and the outbox entry, so that
no crash can separate them. Rows are never removed: opting out deletes what a report said,
not that it was charged.
"""

import os
import sqlite3
import threading
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, Final, NamedTuple

from hubbub.contract import Bundle, Metric, sha256
from hubbub.errors import (
    ChangedContract,
    ForeignOperator,
    LowerRevision,
    StateCorrupt,
    StateUnavailable,
)
from hubbub.limits import MAX_CHARGE_PER_DEVICE

FILE_NAME: Final = "ledger.sqlite3"

# "hub1": marks the file as ours. The second number is the version of the tables below.
_APPLICATION_ID: Final = 0x68756231
_SCHEMA_VERSION: Final = 1

# How long to wait for another process that is writing; a record must not wait longer.
_BUSY_SECONDS: Final = 1.0

_SCHEMA: Final = """
CREATE TABLE operator (
    key TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    bundle BLOB NOT NULL            -- SHA-256 of the newest bundle
) WITHOUT ROWID;
CREATE TABLE contract (
    metric TEXT PRIMARY KEY,
    digest BLOB NOT NULL,
    contract BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE budget (               -- what the app last declared, for the owner's view
    source TEXT PRIMARY KEY,
    charge INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE report (
    source TEXT NOT NULL,
    metric TEXT NOT NULL,
    round INTEGER NOT NULL,
    digest BLOB NOT NULL,
    charge INTEGER NOT NULL,        -- in units of 10^-12 of ε
    checksum INTEGER NOT NULL,      -- of the five columns above
    recorded_at INTEGER NOT NULL,   -- seconds UTC
    status INTEGER NOT NULL,
    report BLOB,                    -- report id and payload; null: deleted before it left
    key_id BLOB,
    sealed BLOB,                    -- kept until it is settled, so that a retry is the same bytes
    destination TEXT,
    left_at INTEGER,                -- when it was first handed to the network
    PRIMARY KEY (source, metric, round)
) WITHOUT ROWID;
"""


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
    """Its round closed before it arrived."""
    WITHDRAWN = 5
    """Collection was turned off before it was counted."""


class Charge(IntEnum):
    """What came of asking to charge for an answer."""

    CHARGED = 0
    ALREADY_ANSWERED = 1
    BUDGET_SPENT = 2


class Entry(NamedTuple):
    """One row of the ledger."""

    source: str
    metric: str
    round: int
    digest: bytes
    charge: int
    recorded_at: int
    status: Status
    report: bytes | None
    key_id: bytes | None
    sealed: bytes | None
    destination: str | None
    left_at: int | None


_COLUMNS: Final = (
    "source, metric, round, digest, charge, recorded_at, status, report, key_id, sealed, "
    "destination, left_at"
)


class Ledger:
    """An open state file. Safe to use from several threads and several processes."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._path = path

    @classmethod
    def open(cls, state_dir: str | None) -> "Ledger":
        """Open or create the ledger in a directory; None: in memory.

        Raises StateUnavailable or StateCorrupt. A damaged ledger is never replaced: a fresh
        one would hand out the spent budget again.
        """
        if state_dir is None:
            connection = _connect(":memory:")
            _create_tables(connection)
            return cls(connection, ":memory:")
        path = os.path.join(state_dir, FILE_NAME)
        try:
            os.makedirs(state_dir, mode=0o700, exist_ok=True)
            if not os.path.exists(path):
                _create_file(path)
        except (OSError, sqlite3.Error) as error:
            raise StateUnavailable(path, f"cannot be created: {error}") from None
        connection = _open_checked(path)
        with _state_errors(path):
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("UPDATE budget SET charge = charge")
                connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
        return cls(connection, path)

    @classmethod
    def open_to_read(cls, state_dir: str) -> "Ledger":
        """Open an existing ledger for looking only. Raises as `open` does."""
        path = os.path.join(state_dir, FILE_NAME)
        if not os.path.exists(path):
            raise StateUnavailable(path, "there is no ledger here")
        return cls(_open_checked(path), path)

    def adopt(
        self, bundle: Bundle, operator_keys: Sequence[str], budgets: Mapping[str, int]
    ) -> None:
        """Make a verified bundle the one in force, and remember the app's budgets.

        Raises ForeignOperator, LowerRevision or ChangedContract, and then changes nothing.
        """
        fingerprint = sha256(bundle.signed)
        with self._transaction() as connection:
            known = {
                key: (revision, seen)
                for key, revision, seen in connection.execute("SELECT * FROM operator")
            }
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
                connection.execute(
                    "INSERT OR REPLACE INTO operator VALUES (?, ?, ?)",
                    (bundle.operator, bundle.revision, fingerprint),
                )
            connection.executemany(
                "INSERT OR IGNORE INTO contract VALUES (?, ?, ?)",
                (
                    (metric.name, metric.digest, metric.contract)
                    for metric in bundle.metrics.values()
                    if metric.name not in contracts
                ),
            )
            if dict(connection.execute("SELECT * FROM budget")) != budgets:
                connection.execute("DELETE FROM budget")
                connection.executemany("INSERT INTO budget VALUES (?, ?)", budgets.items())

    @contextmanager
    def charging(self, metric: Metric, round_number: int, budget: int) -> Generator["Answer"]:
        """Charge for one answer, if nothing forbids it, and store it: one transaction.

        The caller looks at `charge` and, if it is CHARGED, calls `store` within the block;
        when the block has ended without an error, charge and report are durable.
        """
        with self._transaction() as connection:
            yield Answer(connection, metric, round_number, budget)

    def outbox(self) -> list[Entry]:
        """What is to be sent, oldest first."""
        return self._entries(
            f"WHERE status IN ({Status.WAITING:d}, {Status.SENT:d}) "
            "ORDER BY recorded_at, metric, round"
        )

    def entries(self) -> list[Entry]:
        """Everything that was ever charged, by source, metric and round."""
        return self._entries("ORDER BY source, metric, round")

    def depart(
        self, entry: Entry, key_id: bytes, sealed: bytes, destination: str, now: int
    ) -> bool:
        """Note, before it is sent, that a report leaves as these bytes.

        Returns False if it no longer waits: then it must not be sent.
        """
        with self._transaction() as connection:
            cursor = connection.execute(
                "UPDATE report SET status = ?, key_id = ?, sealed = ?, destination = ?, "
                "left_at = coalesce(left_at, ?) "
                "WHERE source = ? AND metric = ? AND round = ? AND status IN (?, ?)",
                (
                    *(Status.SENT, key_id, sealed, destination, now),
                    *(entry.source, entry.metric, entry.round),
                    *(Status.WAITING, Status.SENT),
                ),
            )
            return cursor.rowcount == 1

    def settle(self, entry: Entry, status: Status) -> None:
        """Note what became of a report that was sent; its sealed bytes are done with."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE report SET status = ?, sealed = NULL "
                "WHERE source = ? AND metric = ? AND round = ? AND status = ?",
                (status, entry.source, entry.metric, entry.round, Status.SENT),
            )

    def withdraw(self) -> None:
        """Empty the outbox. What never left is deleted; every charge stays."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE report SET status = ?, sealed = NULL, "
                "report = CASE WHEN left_at IS NULL THEN NULL ELSE report END "
                "WHERE status IN (?, ?)",
                (Status.WITHDRAWN, Status.WAITING, Status.SENT),
            )

    def contracts(self) -> dict[str, bytes]:
        """Every contract this device ever held, by metric."""
        return dict(self._select("SELECT metric, contract FROM contract ORDER BY metric"))

    def budgets(self) -> dict[str, int]:
        """The budget the app last declared for each source."""
        return dict(self._select("SELECT source, charge FROM budget ORDER BY source"))

    def operators(self) -> dict[str, int]:
        """The operators whose bundles were in force, and their highest revision."""
        return dict(self._select("SELECT key, revision FROM operator ORDER BY key"))

    def close(self) -> None:
        """Close the file; what comes after raises sqlite3.ProgrammingError."""
        with self._lock:
            self._connection.close()

    def _entries(self, clause: str) -> list[Entry]:
        rows = self._select(f"SELECT {_COLUMNS} FROM report {clause}")  # noqa: S608
        return [Entry(*row)._replace(status=Status(row[6])) for row in rows]

    def _select(self, statement: str) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement).fetchall()

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


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
        (newest,) = self._connection.execute(
            "SELECT max(round) FROM report WHERE source = ? AND metric = ?",
            (metric.source, metric.name),
        ).fetchone()
        # A clock that was set back asks for a round that has passed: it stays passed.
        if newest is not None and newest >= self._round:
            return Charge.ALREADY_ANSWERED
        source_spent, device_spent = self._connection.execute(
            "SELECT coalesce(sum(charge) FILTER (WHERE source = ?), 0), coalesce(sum(charge), 0) "
            "FROM report",
            (metric.source,),
        ).fetchone()
        charge = metric.epsilon.charge
        if source_spent + charge > budget or device_spent + charge > MAX_CHARGE_PER_DEVICE:
            return Charge.BUDGET_SPENT
        return Charge.CHARGED

    def store(self, report: bytes, now: int) -> None:
        """Write charge and report (id ‖ payload) as one row."""
        metric, charge = self._metric, self._metric.epsilon.charge
        identity = (metric.source, metric.name, self._round, metric.digest, charge)
        self._connection.execute(
            "INSERT INTO report (source, metric, round, digest, charge, checksum, recorded_at, "
            "status, report) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*identity, _checksum(*identity), now, Status.WAITING, report),
        )


def _connect(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        database,
        isolation_level=None,
        timeout=_BUSY_SECONDS,
        # Ledger's lock does what this check is for.
        check_same_thread=False,
    )
    # A charge that power loss could undo would be spent twice. With a rollback journal that
    # takes FULL and the directory's sync on top: EXTRA. A write-ahead log would need one sync
    # less, but a damaged or deleted log loses charges without a trace.
    connection.execute("PRAGMA synchronous = EXTRA")
    # What is deleted must not linger in free pages.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _create_tables(connection: sqlite3.Connection) -> None:
    connection.executescript(
        f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID}; "
        f"PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;"
    )


def _create_file(path: str) -> None:
    """Make a complete ledger under another name, then give it its own in one step.

    So an empty or partial file under that name is never a beginning: it is damage.
    """
    scratch = f"{path}.{os.urandom(8).hex()}"
    os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        connection = _connect(scratch)
        try:
            _create_tables(connection)
        finally:
            connection.close()
        # A hard link fails, where a rename would replace, if another process was faster.
        os.link(scratch, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(scratch)
    directory = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _open_checked(path: str) -> sqlite3.Connection:
    """Open an existing file. Raises StateUnavailable or StateCorrupt."""
    with _state_errors(path):
        connection = _connect(path)
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def _state_errors(path: str) -> Generator[None]:
    """Turn SQLite's errors into ours: rights, space and locks on one side, damage on the other."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StateUnavailable(path, str(error)) from None
    except sqlite3.DatabaseError as error:
        raise StateCorrupt(path, str(error)) from None


def _check(connection: sqlite3.Connection, path: str) -> None:
    """Raise StateCorrupt unless the file is a whole ledger of this version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION_ID:
        raise StateCorrupt(path, "it is not a Hubbub ledger")
    if version != _SCHEMA_VERSION:
        raise StateCorrupt(path, f"its version is {version}; this SDK reads {_SCHEMA_VERSION}")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise StateCorrupt(path, "it is damaged; spending is refused rather than started afresh")
    rows = connection.execute("SELECT source, metric, round, digest, charge, checksum FROM report")
    for *identity, checksum in rows:
        if _checksum(*identity) != checksum:
            raise StateCorrupt(path, "a charge in it was altered")


def _checksum(*identity: object) -> int:
    """CRC-32 of a row's identity: against damage that leaves the file's structure whole."""
    return zlib.crc32(repr(identity).encode())
