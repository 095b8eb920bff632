"""A store in a PostgreSQL database, over connections that keep what a commit promises."""

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, text

from hubbub_aggregator.store import schema, upgrades
from hubbub_aggregator.store.errors import StoreUnavailable
from hubbub_aggregator.store.location import shown
from hubbub_aggregator.store.serial import one_at_a_time
from hubbub_aggregator.store.translation import translated

if TYPE_CHECKING:
    import psycopg

_DRIVER: Final = "postgresql+psycopg"

# The oldest major version that the tests run on.
_OLDEST: Final = 15

# One commits, the others read for a moment each. A server takes 100 connections unless told
# otherwise, which is five replicas of these and some for its administrators.
_CONNECTIONS: Final = 16

# What a connection starts with, unless the URL's options say otherwise. A server that vanished
# without a word is noticed within some 20 seconds: at most so long goes what was sent without
# an answer from its kernel, or an idle line without a sign of life.
_CONNECT: Final = {
    "application_name": "hubbub",
    "connect_timeout": 5,  # seconds, for each host
    "keepalives_idle": 5,  # seconds
    "keepalives_interval": 5,  # seconds
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # milliseconds
    # Not a standby, which takes no report; of several hosts, the one that writes.
    "target_session_attrs": "read-write",
}

# What each session sets, whatever the server's, the database's or the user's defaults are.
# A process that hangs while it holds a lock is let go of before those that wait give up.
_SESSION: Final = """
SELECT set_config('lock_timeout', '20s', false),
       set_config('idle_in_transaction_session_timeout', '15s', false),
       set_config('statement_timeout', '0', false),
       set_config('synchronous_commit', CASE current_setting('synchronous_commit')
                  WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false),
       current_setting('fsync')
"""

# Another process may be bringing millions of rows up to date, in a single transaction.
_WAIT_FOR_UPGRADE: Final = "SET LOCAL lock_timeout = '30min'"


def open_database(url: URL) -> Engine:
    """Open the store in the database that the URL names, creating it if the database is empty.

    Raises StoreUnavailable, NotAStore, NewerSchema or StoreDamaged.
    """
    location = shown(url)
    engine = _engine(_checked(url, location), location)
    try:
        with translated(location):
            with engine.connect() as connection:
                version = upgrades.version(connection, location)
            if version != schema.SCHEMA_VERSION:
                with engine.begin() as connection:
                    _bring_up(connection, location)
    except Exception:
        engine.dispose()
        raise
    return engine


def _checked(url: URL, location: str) -> URL:
    if url.drivername not in {"postgresql", _DRIVER}:
        raise StoreUnavailable(
            location, f"is reached through another driver; write {_DRIVER}://user@host/database"
        )
    if not url.database:
        raise StoreUnavailable(location, "names no database; put its name after the host and a /")
    return url.set(drivername=_DRIVER)


def _bring_up(connection: Connection, location: str) -> None:
    """Create the store or bring it up to date, of all processes that want to only one."""
    connection.execute(text(_WAIT_FOR_UPGRADE))
    one_at_a_time(connection)
    upgrades.bring_up(connection, location)


def _engine(url: URL, location: str) -> Engine:
    options = {name: value for name, value in _CONNECT.items() if name not in url.query}
    try:
        engine = create_engine(
            url,
            connect_args=options,
            isolation_level="READ COMMITTED",
            # After the server was away, its old connections are found out and replaced at once.
            pool_pre_ping=True,
            pool_size=_CONNECTIONS // 2,
            max_overflow=_CONNECTIONS - _CONNECTIONS // 2,
            use_native_hstore=False,  # would ask the server for a type that no column has
        )
    except ImportError as error:
        raise StoreUnavailable(
            location, f"this needs psycopg: pip install 'hubbub[postgresql]' ({error})"
        ) from None

    def prepare(connection: "psycopg.Connection[Any]", _record: Any) -> None:
        try:
            _prepare(connection, location)
        except BaseException:
            connection.close()
            raise

    event.listen(engine, "connect", prepare)
    return engine


def _prepare(connection: "psycopg.Connection[Any]", location: str) -> None:
    """Refuse a server that would lose what it says is durable; set what the session needs."""
    major = connection.info.server_version // 10_000
    if major < _OLDEST:
        raise StoreUnavailable(
            location, f"the server is PostgreSQL {major}, and Hubbub needs {_OLDEST} or later"
        )
    connection.autocommit = True
    *_, fsync = connection.execute(_SESSION).fetchone() or ("",)
    connection.autocommit = False
    if fsync != "on":
        raise StoreUnavailable(
            location,
            "the server has fsync = off, and would lose reports that it said were durable; "
            "switch it on and reload the server",
        )
