"""Schema 1: reports are counted once, by a row for each id of an open round."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    store = op.create_table("hubbub_store", sa.Column("schema_version", sa.Integer, nullable=False))
    op.bulk_insert(store, [{"schema_version": 1}])
    op.create_table(
        "bundle",
        sa.Column("operator", sa.String, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("signed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "contract",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        sa.Column(
            "name",
            sa.String().with_variant(sa.String(collation="C"), "postgresql"),
            nullable=False,
            unique=True,
        ),
        sa.Column("contract", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "round",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.LargeBinary, sa.ForeignKey("contract.digest"), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("closed_at", sa.Float),
        sa.UniqueConstraint("digest", "number"),
    )
    op.create_table(
        "report",
        sa.Column("round_id", sa.Integer, sa.ForeignKey("round.id"), primary_key=True),
        sa.Column("report_id", sa.LargeBinary, primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tally",
        sa.Column("round_id", sa.Integer, sa.ForeignKey("round.id"), primary_key=True),
        sa.Column("writer", sa.BigInteger, primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("cells", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "snapshot",
        sa.Column("round_id", sa.Integer, sa.ForeignKey("round.id"), primary_key=True),
        sa.Column("n", sa.BigInteger, nullable=False),
        sa.Column("cells", sa.LargeBinary, nullable=False),
        sa.Column("as_of", sa.Float, nullable=False),
    )
