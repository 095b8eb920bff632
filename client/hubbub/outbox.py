"""The outbox: what waits to be sent, its bounds, and what becomes of what does not leave.

Everything here is part of a transaction. It deletes what reports said, never that they were
charged.
"""

import sqlite3
from typing import Final, NamedTuple

from hubbub import rows
from hubbub.contract import read_metric
from hubbub.limits import MAX_OUTBOX_AGE, MAX_OUTBOX_BYTES, MAX_OUTBOX_REPORTS
from hubbub.rows import OUTBOX, Entry, Status

_OLDEST_FIRST: Final = f"WHERE {OUTBOX} ORDER BY recorded_at, metric, round"


class OutboxTimes(NamedTuple):
    """Of what waits: seconds UTC."""

    first_due: int
    last_recorded: int
    """Of those that are not of a series; 0: there is none."""


def waiting(connection: sqlite3.Connection) -> list[Entry]:
    """What is to be sent, oldest first."""
    return rows.entries(connection, _OLDEST_FIRST)


def times(connection: sqlite3.Connection) -> OutboxTimes | None:
    """When what waits is due, and was recorded; None: nothing waits.

    Found without reading what waits: it is asked after every report.
    """
    first_due, last_recorded = connection.execute(
        "SELECT min(due_at), max(recorded_at) FILTER (WHERE charge > 0) "  # noqa: S608
        f"FROM report WHERE {OUTBOX}"
    ).fetchone()
    return None if first_due is None else OutboxTimes(first_due, last_recorded or 0)


def trim(connection: sqlite3.Connection) -> None:
    """Drop whole reports, the oldest first, until what waits is within its bounds."""
    while not within_bounds(
        *connection.execute("SELECT sum(waiting), sum(size) FROM account").fetchone()
    ):
        (oldest,) = rows.entries(connection, f"{_OLDEST_FIRST} LIMIT 1")
        _drop(connection, oldest)


def within_bounds(reports: int, size: int) -> bool:
    """Whether so many reports, of so many bytes, may wait."""
    return reports <= MAX_OUTBOX_REPORTS and size <= MAX_OUTBOX_BYTES


def settle(connection: sqlite3.Connection, entry: Entry, status: Status) -> None:
    """Note what became of a report that waited; what it said stays."""
    rows.write(connection, "report", entry._replace(status=status))
    _take_off(connection, entry)


def drop_old(connection: sqlite3.Connection) -> None:
    """Drop whole reports that waited too long, which is told by the newest that waits.

    Not by the clock: one that leaps for an hour would take everything with it. That a round is
    over is not told by it either: the aggregator says so.
    """
    entries = waiting(connection)
    for entry in entries:
        if entries[-1].recorded_at - entry.recorded_at < MAX_OUTBOX_AGE:
            return
        _drop(connection, entry)


def withdraw(connection: sqlite3.Connection) -> None:
    """Empty the outbox, and delete everything that was said: every payload, every sealed byte,
    every memo. Which rounds a device joins stays: it was drawn before there was any value."""
    for entry in waiting(connection):
        settle(connection, entry, Status.WITHDRAWN)
    for entry in rows.entries(connection, "WHERE report IS NOT NULL"):
        rows.write(connection, "report", entry._replace(report=None))
    for departure in rows.departures(connection, "WHERE sealed IS NOT NULL"):
        rows.write(connection, "departure", departure._replace(sealed=None))
    contracts = dict(connection.execute("SELECT metric, contract FROM contract"))
    for enrolment in rows.enrolments(connection, "WHERE secret IS NOT NULL"):
        if read_metric(contracts[enrolment.metric]).memoised is not None:
            rows.write(connection, "enrolment", enrolment._replace(secret=None))


def _drop(connection: sqlite3.Connection, entry: Entry) -> None:
    """What never left is deleted: nobody has it, and nobody is going to."""
    report = None if entry.status is Status.WAITING else entry.report
    rows.write(connection, "report", entry._replace(status=Status.DROPPED, report=report))
    _take_off(connection, entry)


def _take_off(connection: sqlite3.Connection, entry: Entry) -> None:
    """Note that one report fewer of its source waits."""
    (account,) = rows.accounts(connection, "WHERE source = ?", (entry.source,))
    waiting, size = account.waiting - 1, account.size - len(entry.report or b"")
    rows.write(connection, "account", account._replace(waiting=waiting, size=size))
