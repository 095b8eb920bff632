"""The total: what the checksums of all rows add up to, in the row that counts the changes.

A checksum tells a row that was altered. It cannot tell one that is missing, or an older one,
as where a sound page of the file's past stands in the place of a newer. The total can; and the
row that holds it cannot be an older one itself, since it would count too few changes. How the
tables are made is in it too.
"""

import sqlite3
from collections.abc import Sequence
from typing import Final

from hubbub import rows

_CHANGES: Final = {
    "INSERT": "total + NEW.checksum",
    "DELETE": "total - OLD.checksum",
    "UPDATE": "total + NEW.checksum - OLD.checksum",
}


def keep(connection: sqlite3.Connection, tables: Sequence[str], number: int) -> None:
    """From now on add up these tables, whoever writes them; `number`: of changes so far.

    Inside a transaction. Where a row is replaced, that its old one is taken off hangs on the
    setting recursive_triggers, which is the connection's and not the file's.
    """
    for table in tables:
        for event, total in _CHANGES.items():
            connection.execute(
                f"CREATE TRIGGER total_{table}_{event.lower()} AFTER {event} ON {table} "  # noqa: S608
                f"BEGIN UPDATE generation SET total = {total}; END"
            )
    _write(connection, number, found(connection, tables))


def advance(connection: sqlite3.Connection) -> int:
    """Count a change, inside its transaction; return how many there have been."""
    number, total = connection.execute("SELECT number, total FROM generation").fetchone()
    _write(connection, number + 1, total)
    return int(number) + 1


def said(connection: sqlite3.Connection) -> int:
    """The total that a ledger has written down."""
    (total,) = connection.execute("SELECT total FROM generation").fetchone()
    return int(total)


def found(connection: sqlite3.Connection, tables: Sequence[str]) -> int:
    """What everything adds up to."""
    made = connection.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema")
    total = sum(rows.checksum(list(row)) for row in made)
    for table in tables:
        (checksums,) = connection.execute(
            f"SELECT coalesce(sum(checksum), 0) FROM {table}"  # noqa: S608
        ).fetchone()
        total += checksums
    return total


def _write(connection: sqlite3.Connection, number: int, total: int) -> None:
    rows.overwrite(connection, "generation", {"number": number, "total": total})
