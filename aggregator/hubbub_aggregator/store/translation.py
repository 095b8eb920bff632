"""The drivers' errors, turned into ours."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from hubbub_aggregator.store.errors import (
    NO_DATABASE,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
    is_no_database,
)

# PostgreSQL's classes of errors that only what is on the disk can cause: rows that contradict
# each other, and pages or indexes that cannot be read.
_DAMAGE: Final = ("23", "XX")

# An undefined table or column: while this process ran, somebody changed the schema.
_CHANGED: Final = ("42P01", "42703")


@contextmanager
def translated(location: str) -> Generator[None]:
    """Turn what SQLAlchemy and the drivers raise into StoreUnavailable or StoreDamaged."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreUnavailable(location, f"cannot be used ({error})") from error
    except DBAPIError as error:
        reason: Any = error.orig
        if hasattr(reason, "sqlstate"):
            raise _of_postgresql(location, reason) from error
        raise _of_sqlite(location, error) from error


def _of_sqlite(location: str, error: DBAPIError) -> StoreError:
    if isinstance(error, OperationalError):
        return StoreUnavailable(
            location,
            f"cannot be used ({error.orig}); is there space, and may this process write the "
            f"file and its folder?",
        )
    if is_no_database(error.orig):
        return StoreDamaged(location, NO_DATABASE)
    return StoreDamaged(location, f"is damaged ({error.orig}); restore it from a backup")


def _of_postgresql(location: str, error: Any) -> StoreError:
    # Not the details that follow the sentence: they quote rows.
    said = error.diag.message_primary or str(error)
    reason, state = " ".join(said.split()), error.sqlstate or ""
    if state.startswith(_DAMAGE):
        return StoreDamaged(location, f"is damaged ({reason}); restore it from a backup")
    if state in _CHANGED:
        return StoreUnavailable(
            location,
            f"is not as it was opened ({reason}); start the aggregator again, which checks it",
        )
    return StoreUnavailable(
        location,
        f"cannot be used ({reason}); is the server up, and may this user write the database?",
    )
