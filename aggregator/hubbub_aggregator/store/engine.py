"""Opening a store, of whichever kind its location says."""

from pathlib import Path

from sqlalchemy import Engine

from hubbub_aggregator.store import postgresql, sqlite
from hubbub_aggregator.store.errors import StoreUnavailable
from hubbub_aggregator.store.identity import FileIdentity, Identity, ServerIdentity
from hubbub_aggregator.store.location import parse, shown
from hubbub_aggregator.store.sqlite import WRITES
from hubbub_aggregator.store.translation import translated

__all__ = ["WRITES", "identity_of", "location_of", "open_engine", "translated"]


def open_engine(location: str) -> Engine:
    """Open a store, creating it if nothing is there; `location` is a path or a URL.

    One that an earlier version made is brought up to this one's schema.

    Raises StoreUnavailable, NotAStore, NewerSchema or StoreDamaged.
    """
    if "://" not in location:
        return sqlite.open_file(Path(location).absolute())
    url = parse(location)
    match url.get_backend_name():
        case "sqlite":
            return sqlite.open_file(sqlite.path_of(url))
        case "postgresql":
            return postgresql.open_database(url)
        case _:
            raise StoreUnavailable(
                shown(url), "a store is kept in an SQLite file or a PostgreSQL database"
            )


def location_of(engine: Engine) -> str:
    """What messages call an open store: a file's path, or a URL without the password."""
    return str(engine.url.database) if _is_file(engine) else shown(engine.url)


def identity_of(engine: Engine) -> Identity:
    """By which to notice that the store is not there any more. Raises StoreUnavailable."""
    return FileIdentity(Path(str(engine.url.database))) if _is_file(engine) else ServerIdentity()


def _is_file(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"
