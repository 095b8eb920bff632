"""Schema 3: ids are packed, a row for each commit; tallies know how many came in plain form."""

from typing import Any, Final

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

# Ids a row, of 16 bytes each: a row is read whole.
_IDS: Final = 65_536
_ID_BYTES: Final = 16


def upgrade() -> None:
    packed = op.create_table(
        "counted_ids",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("round_id", sa.Integer, sa.ForeignKey("round.id"), nullable=False),
        sa.Column("writer", sa.BigInteger, nullable=False),
        sa.Column("ids", sa.LargeBinary, nullable=False),
    )
    op.create_index("counted_ids_of_round", "counted_ids", ["round_id", "id"])
    _pack(packed)
    op.drop_table("report")
    for table in ("tally", "snapshot"):
        op.add_column(
            table,
            sa.Column("plain", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        )


def _pack(packed: sa.Table) -> None:
    """The ids of every open round; a closed one refuses, and has no use for them."""
    connection = op.get_bind()
    round_ = sa.table("round", sa.column("id"), sa.column("closed_at"))
    report = sa.table("report", sa.column("round_id"), sa.column("report_id", sa.LargeBinary))
    still_open = sa.select(round_.c.id).where(round_.c.closed_at.is_(None))
    for round_id in connection.execute(still_open).scalars().all():
        ids = sa.select(report.c.report_id).where(report.c.round_id == round_id)
        # Millions: as they come, not all at once.
        streamed = connection.execute(ids, execution_options={"yield_per": _IDS})
        for some in streamed.scalars().partitions():
            connection.execute(packed.insert(), _row(round_id, list(some)))


def _row(round_id: int, ids: list[bytes]) -> dict[str, Any]:
    if set(map(len, ids)) != {_ID_BYTES}:
        raise ValueError(f"a report's id is not of {_ID_BYTES} bytes")
    # Writers are random numbers; nobody knows any more who counted these.
    return {"round_id": round_id, "writer": 0, "ids": b"".join(ids)}
