"""The ledger's rows: what each says, and how they are read and written.

Every row ends with the checksum of its other columns, against damage that leaves the file's
structure whole. None holds a true value.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple, cast


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
    DROPPED = 6
    """Dropped, because too many waited."""


class Switch(IntEnum):
    """The owner's choice. It holds for every process, and between starts."""

    ON = 0
    PAUSED = 1
    """Nothing is recorded or sent; what waits stays."""
    OPTED_OUT = 2
    """Nothing is recorded or sent; what was said is deleted, what was spent is not."""


class Choice(NamedTuple):
    """What the owner chose last."""

    switch: Switch
    chosen_at: int
    """Seconds UTC; 0: never, so it is on."""


class Entry(NamedTuple):
    """A charge, the answered round and the outbox in one, so that no crash separates them.

    Its fields, like those of the classes below, are the table's columns.
    """

    source: str
    metric: str
    round: int
    digest: bytes
    charge: int
    """In units of 10^-12 of ε; 0 for a report of a series, which its enrolment has paid for."""
    recorded_at: int
    """Seconds UTC, as every time here; by the device's clock."""
    due_at: int
    """When it leaves by itself."""
    status: Status
    report: bytes | None
    """Report id and payload. None: deleted by turning off, or dropped before it left."""

    @property
    def in_series(self) -> bool:
        """Whether it was paid for when its metric was enrolled."""
        return self.charge == 0


class Departure(NamedTuple):
    """A sealed report that was handed to the network: for one key, and one destination.

    Kept for ever, so that the owner can compare every byte with what the aggregator got.
    """

    source: str
    metric: str
    round: int
    key_id: bytes
    destination: str
    sealed: bytes | None
    """None: deleted by turning off, or settled before ledgers kept it."""
    left_at: int
    """When it was first handed over."""


class Enrolment(NamedTuple):
    """A charge for a whole series, made before its first record."""

    source: str
    metric: str
    number: int
    """From 0. The newest with a secret is in force."""
    digest: bytes
    charge: int
    """In units of 10^-12 of ε."""
    enrolled_at: int
    from_round: int
    secret: bytes | None
    """The memo, or the rounds that are joined. None: deleted by turning off."""


class Account(NamedTuple):
    """The sums of a source's rows, so that no record has to add them up."""

    source: str
    spent: int
    """What its reports and enrolments were charged; in units of 10^-12 of ε."""
    waiting: int
    """How many of its reports wait."""
    size: int
    """The bytes of those."""


class BundleRecord(NamedTuple):
    """A bundle that was taken, from the app or over the network."""

    operator: str
    revision: int
    fingerprint: bytes
    """SHA-256 of the SignedBundle."""
    adopted_at: int | None
    """None: by an earlier version, which did not keep it."""
    fetched: bool
    """Whether it came over the network, and the app has never handed it in itself."""
    signed: bytes | None
    """The SignedBundle; kept of the newest of each operator only."""


# The reports that are still to be sent, or may have to be sent again. An index of the file
# has the same words, and is used because they are the same.
OUTBOX: Final = f"status IN ({Status.WAITING:d}, {Status.SENT:d})"
# Which report, or whose departures.
KEY: Final = "source = ? AND metric = ? AND round = ?"


# As a row comes back from the file. Of an IntEnum's member, or a bool, that is its number.
_STORED: Final = frozenset({int, str, bytes, type(None)})


def checksum(columns: list[object]) -> int:
    """The CRC-32 that a row ends with, of its other columns as they come from the file."""
    return zlib.crc32(ascii(columns).encode())


def write(connection: sqlite3.Connection, table: str, row: Iterable[object]) -> None:
    """Write a row, in place of the one with the same key if there is one."""
    stored = _with_checksum(row)
    connection.execute(_replace_into(table, len(stored)), stored)


def overwrite(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    """Write the one row of a table that has only one; by column."""
    connection.execute(_update(table, *row), _with_checksum(row.values()))


def _with_checksum(row: Iterable[object]) -> list[object]:
    columns = [x if type(x) in _STORED else int(cast(int, x)) for x in row]
    columns.append(checksum(columns))
    return columns


# Statements are kept, since Python's sqlite3 finds what it has compiled by the text's hash.


@cache
def _replace_into(table: str, columns: int) -> str:
    return f"REPLACE INTO {table} VALUES ({', '.join('?' * columns)})"  # noqa: S608


@cache
def _update(table: str, *columns: str) -> str:
    places = ", ".join(f"{column} = ?" for column in (*columns, "checksum"))
    return f"UPDATE {table} SET {places}"  # noqa: S608


def entries(
    connection: sqlite3.Connection, clause: str, parameters: Sequence[object] = ()
) -> list[Entry]:
    """The rows of `report` that a clause picks."""
    rows = _select(connection, "report", Entry._fields, clause, parameters)
    return [Entry(*row)._replace(status=Status(row[7])) for row in rows]


def departures(
    connection: sqlite3.Connection, clause: str, parameters: Sequence[object] = ()
) -> list[Departure]:
    """The rows of `departure` that a clause picks."""
    rows = _select(connection, "departure", Departure._fields, clause, parameters)
    return [Departure(*row) for row in rows]


def enrolments(
    connection: sqlite3.Connection, clause: str, parameters: Sequence[object] = ()
) -> list[Enrolment]:
    """The rows of `enrolment` that a clause picks."""
    rows = _select(connection, "enrolment", Enrolment._fields, clause, parameters)
    return [Enrolment(*row) for row in rows]


def accounts(
    connection: sqlite3.Connection, clause: str, parameters: Sequence[object] = ()
) -> list[Account]:
    """The rows of `account` that a clause picks."""
    found = _select(connection, "account", Account._fields, clause, parameters)
    return [Account(*row) for row in found]


def bundles(
    connection: sqlite3.Connection, clause: str, parameters: Sequence[object] = ()
) -> list[BundleRecord]:
    """The rows of `bundle` that a clause picks."""
    rows = _select(connection, "bundle", BundleRecord._fields, clause, parameters)
    return [BundleRecord(*row)._replace(fetched=bool(row[4])) for row in rows]


def _select(
    connection: sqlite3.Connection,
    table: str,
    columns: Sequence[str],
    clause: str,
    parameters: Sequence[object],
) -> sqlite3.Cursor:
    return connection.execute(
        f"SELECT {', '.join(columns)} FROM {table} {clause}",  # noqa: S608
        parameters,
    )
