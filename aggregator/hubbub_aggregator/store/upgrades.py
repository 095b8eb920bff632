"""From an earlier version's schema to this one's."""

from sqlalchemy import Connection, select, update

from hubbub_aggregator.store import schema


def upgrade(connection: Connection) -> None:
    """Bring a store up to SCHEMA_VERSION, in a transaction that writes: all the way or not at all.

    Asks for the version itself: between two transactions another process may have done it.
    """
    version = connection.execute(select(schema.store.c.schema_version)).scalar_one()
    if version >= schema.SCHEMA_VERSION:
        return
    # From 1 to 2: metrics may retain their reports.
    schema.retained.create(connection)
    connection.execute(update(schema.store).values(schema_version=schema.SCHEMA_VERSION))
