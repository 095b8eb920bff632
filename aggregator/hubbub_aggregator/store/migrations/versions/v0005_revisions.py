"""Schema 5: since when each revision of the bundle has been in force."""

import time

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    in_force = op.create_table(
        "in_force",
        sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("or_earlier", sa.Boolean, nullable=False),
    )
    # When the present one came, and which ones came before, nobody wrote down.
    present = sa.select(
        sa.table("bundle", sa.column("revision", sa.BigInteger)).c.revision,
        sa.literal(time.time(), sa.Float),
        sa.literal(True, sa.Boolean),
    )
    op.execute(in_force.insert().from_select(["revision", "since", "or_earlier"], present))
