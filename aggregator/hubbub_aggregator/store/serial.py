"""One at a time, among all processes that share a store."""

from typing import Final

from sqlalchemy import Connection, func, select

# "hubbub" in ASCII. PostgreSQL keeps such locks apart by database.
_KEY: Final = 0x687562627562


def one_at_a_time(connection: Connection) -> None:
    """Wait for every other transaction that called this; hold them up until this one ends.

    For what reads before anything is there to be locked. In SQLite a transaction that writes
    is alone anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_KEY)))
