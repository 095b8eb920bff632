"""Run by Alembic around the migrations; `hubbub_aggregator.store.upgrades` is what calls it.

The connection, and the transaction that all of it happens in, are the caller's.
"""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
