"""Schema 2: metrics may retain their reports."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "retained",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("round_id", sa.Integer, sa.ForeignKey("round.id"), nullable=False),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("payloads", sa.LargeBinary, nullable=False),
    )
    op.create_index("retained_of_round", "retained", ["round_id", "id"])
