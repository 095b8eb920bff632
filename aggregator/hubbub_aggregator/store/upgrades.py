"""Which schema a store has, and how it comes to this version's: whole or not at all.

Two marks say it. `hubbub_store.schema_version` counts up with every change, and is what every
version of Hubbub, from the first, refuses a later one's store by. Alembic's own table names the
last migration; the migration to schema 4 is called "0004".
"""

import threading
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, select, update

from hubbub_aggregator.store import schema
from hubbub_aggregator.store.errors import NewerSchema, NotAStore, StoreDamaged
from hubbub_aggregator.store.serial import one_at_a_time

MIGRATIONS: Final = Path(__file__).with_name("migrations")

# Alembic keeps the migration in hand in variables of its modules.
_migrating = threading.Lock()


def revision(version: int) -> str:
    """What Alembic calls the migration to this schema."""
    return f"{version:04}"


def version(connection: Connection, location: str) -> int | None:
    """The schema of the store that is there; None if there is no table at all.

    Raises NotAStore, NewerSchema or StoreDamaged.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    if schema.store.name not in tables:
        raise NotAStore(location)
    found = connection.execute(select(schema.store.c.schema_version)).scalars().all()
    if len(found) != 1:
        raise StoreDamaged(
            location, f"is damaged (it says {len(found)} times which schema it has); restore it"
        )
    number: int = found[0]
    if number > schema.SCHEMA_VERSION:
        raise NewerSchema(location, schema.SCHEMA_VERSION, number)
    if schema.migrated.name in tables:
        revisions = connection.execute(select(schema.migrated.c.version_num)).scalars().all()
        if revisions != [revision(number)]:
            raise StoreDamaged(
                location,
                f"is damaged (schema {number}, but migrations {revisions}); "
                f"restore it from a backup",
            )
    return number


def bring_up(connection: Connection, location: str) -> None:
    """Create the tables or migrate them, in a transaction that writes.

    Asks for the version itself: between two transactions another process may have done it.
    Raises NotAStore, NewerSchema or StoreDamaged.
    """
    one_at_a_time(connection)
    found = version(connection, location)
    if found is None:
        create(connection)
    elif found < schema.SCHEMA_VERSION:
        try:
            migrate(connection, found, schema.SCHEMA_VERSION)
        except ValueError as error:
            raise StoreDamaged(
                location, f"is damaged ({error}); restore it from a backup"
            ) from error


def create(connection: Connection) -> None:
    """The newest schema in an empty database, without the detour through the older ones."""
    schema.metadata.create_all(connection)
    now = schema.SCHEMA_VERSION
    connection.execute(schema.store.insert().values(schema_version=now))
    connection.execute(schema.migrated.insert().values(version_num=revision(now)))


def migrate(connection: Connection, found: int, wanted: int) -> None:
    """From one schema to a later one; from 0 it makes the tables of schema 1 first.

    Raises ValueError if the rows are not what an earlier version wrote.
    """
    # A store is migrated once in its life; every start else does without Alembic's import.
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with _migrating:
        if found and not inspect(connection).has_table(schema.migrated.name):
            # Schemas 1 and 2 were before Alembic.
            command.stamp(config, revision(found))
        command.upgrade(config, revision(wanted))
    connection.execute(update(schema.store).values(schema_version=wanted))
