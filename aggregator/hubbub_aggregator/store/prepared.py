"""Statements of the path that every report takes: SQLAlchemy's, run by the driver itself.

To run a statement, SQLAlchemy needs ten times as long as SQLite. What it spelled for the dialect
is kept, and handed to the driver with the parameters.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import ClauseElement, Engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

Cursor = Any
"""A cursor of the driver (PEP 249), in a transaction."""


class Prepared:
    """A statement in one dialect; its parameters are named."""

    __slots__ = ("_defaults", "text")

    def __init__(self, engine: Engine, statement: ClauseElement) -> None:
        dialect = engine.dialect
        if dialect.name == "sqlite":
            # Its own are in order, and without names.
            dialect = sqlite.dialect(paramstyle="named")
        compiled: Any = statement.compile(dialect=dialect)
        self.text: Final[str] = str(compiled)
        self._defaults: Final = {
            name: value for name, value in compiled.params.items() if value is not None
        }

    def __call__(self, cursor: Cursor, **parameters: Any) -> Cursor:
        """Run it; rows are tuples."""
        cursor.execute(self.text, {**self._defaults, **parameters})
        return cursor


@contextmanager
def writing(engine: Engine) -> Generator[Cursor]:
    """A transaction, durable when the body has ended; undone if it raises.

    Raises what SQLAlchemy raises of what the driver does.
    """
    try:
        connection = engine.raw_connection()
        try:
            cursor = connection.cursor()
            if engine.dialect.name == "sqlite":
                # One that begins as a reader can be refused half-way.
                cursor.execute("BEGIN IMMEDIATE")
            yield cursor
            connection.commit()
        except BaseException:
            # It may be broken; and what is undone is undone for certain.
            connection.invalidate()
            raise
        finally:
            connection.close()
    except engine.dialect.loaded_dbapi.Error as error:
        raise DBAPIError.instance(
            None, None, error, engine.dialect.loaded_dbapi.Error, dialect=engine.dialect
        ) from error
