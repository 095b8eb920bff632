"""Schema 4: a commit's retained reports name the row of their ids, for the archive."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    # Null for what is there: its ids and payloads were each in an order of their own.
    op.add_column("retained", sa.Column("ids_row", sa.BigInteger))
