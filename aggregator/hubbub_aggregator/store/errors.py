"""What opening or using a store can meet. Each sentence says which store, and what to do."""

import sqlite3
from typing import Final

NO_DATABASE: Final = (
    "is no SQLite database, and so no store; give --store another path, or restore it from a "
    "backup if it was one"
)


def is_no_database(error: BaseException | None) -> bool:
    """Whether SQLite says of a file that it never was one of its own, or begins with damage."""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB


class StoreError(Exception):
    """The base of all of them."""

    def __init__(self, location: str, reason: str) -> None:
        super().__init__(f"store {location}: {reason}")
        self.location = location
        self.reason = reason


class StoreUnavailable(StoreError):
    """Cannot be written or read now: rights, a full disk, no server, a lock."""


class StoreDamaged(StoreError):
    """Holds something it cannot hold. Never mended by starting afresh."""


class ReportsForgotten(StoreError):
    """Reports of a closed round were kept once, and are not any more."""

    def __init__(self, location: str, number: int) -> None:
        super().__init__(
            location, f"the reports of round {number} were forgotten; an archive may have them"
        )


class NotAStore(StoreError):
    """A database that something else made."""

    def __init__(self, location: str) -> None:
        super().__init__(
            location, "is not a Hubbub store; give --store another path, or a database of its own"
        )


class NewerSchema(StoreError):
    """Made by a later version of Hubbub."""

    def __init__(self, location: str, known: int, found: int) -> None:
        super().__init__(
            location,
            f"has schema {found}, and this version knows only up to {known}; run a newer Hubbub",
        )
        self.known = known
        self.found = found
