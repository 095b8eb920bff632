"""The one statement that SQLAlchemy spells by dialect."""

from typing import Any

from sqlalchemy import Connection, Table


def insert(connection: Connection, table: Table) -> Any:
    """An INSERT that can say ON CONFLICT: the same methods in both dialects."""
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)
