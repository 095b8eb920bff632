"""Statements of the path that every report takes: SQLAlchemy's, run by the driver itself.

To run a statement, SQLAlchemy needs ten times as long as SQLite. What it spelled for the dialect
is kept, and handed to the driver with the parameters.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

from sqlalchemy import ClauseElement, Engine
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import PoolProxiedConnection

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


class Writing:
    """Transactions that write, one after the other, on a connection of their own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: PoolProxiedConnection | None = None

    @contextmanager
    def transaction(self) -> Generator[Cursor]:
        """Durable when the body has ended; undone if it raises. Raises what SQLAlchemy does."""
        try:
            connection = self._connection or self._engine.raw_connection()
            self._connection = connection
            cursor = connection.cursor()
            if self._engine.dialect.name == "sqlite":
                # One that begins as a reader can be refused half-way.
                cursor.execute("BEGIN IMMEDIATE")
            yield cursor
            connection.commit()
        except BaseException as error:
            self.close()
            driver = self._engine.dialect.loaded_dbapi
            if isinstance(error, driver.Error):
                raise DBAPIError.instance(
                    None, None, error, driver.Error, dialect=self._engine.dialect
                ) from error
            raise

    def close(self) -> None:
        """Let go of the connection; the next transaction takes another one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                # Back in the pool it would do no harm, but it may be broken.
                connection.invalidate()
