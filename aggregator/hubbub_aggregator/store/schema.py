"""The tables. Every statement on them is written for SQLite and PostgreSQL alike."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    UniqueConstraint,
    text,
)

# Counts up with every change of a table; a store says which one it has. Each change needs a
# migration in migrations/versions/, and a test compares what both come to.
SCHEMA_VERSION: Final = 5

metadata: Final = MetaData()

_RowId: Final = BigInteger().with_variant(Integer, "sqlite")
"""Counts up by itself; SQLite does that for this type only."""

_ByBytes: Final = String().with_variant(String(collation="C"), "postgresql")
"""Sorted by its bytes in UTF-8, as SQLite does, whatever language the database is in."""

# One row.
store: Final = Table("hubbub_store", metadata, Column("schema_version", Integer, nullable=False))

# One row, Alembic's: the last migration, or the one that a new store would have ended with.
migrated: Final = Table(
    "alembic_version",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

# The bundle in force: one row, the highest revision seen.
bundle: Final = Table(
    "bundle",
    metadata,
    Column("operator", String, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("signed", LargeBinary, nullable=False),
)

# Every revision that has been in force.
in_force: Final = Table(
    "in_force",
    metadata,
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    # When the first aggregator started with it, seconds since 1970-01-01 UTC.
    Column("since", Float, nullable=False),
    # Whether it may have been in force before: an earlier version kept no time, and `since` is
    # when its store was brought up to date.
    Column("or_earlier", Boolean, nullable=False),
)

# Every metric any bundle has listed; a name is bound to one digest for ever.
contract: Final = Table(
    "contract",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("name", _ByBytes, nullable=False, unique=True),
    Column("contract", LargeBinary, nullable=False),
)

# Rounds that have been sent a report, or were closed.
round_: Final = Table(
    "round",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("digest", ForeignKey("contract.digest"), nullable=False),
    Column("number", Integer, nullable=False),
    # Seconds since 1970-01-01 UTC; null while it takes reports.
    Column("closed_at", Float),
    UniqueConstraint("digest", "number"),
)

# What is counted, until the round closes: afterwards the round refuses, and ids have no use. A
# row for each commit, and rows of many for what an earlier version counted.
counted_ids: Final = Table(
    "counted_ids",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("round_id", ForeignKey("round.id"), nullable=False),
    # The process that counted them; 0: an earlier version.
    Column("writer", BigInteger, nullable=False),
    # Report ids of 16 bytes, back to back.
    Column("ids", LargeBinary, nullable=False),
    Index("counted_ids_of_round", "round_id", "id"),
)

# Reports of metrics that retain them, as they were opened. A row for each commit; n adds up over a
# round's rows, in the order of their ids, to every snapshot's n.
retained: Final = Table(
    "retained",
    metadata,
    Column("id", _RowId, primary_key=True),
    Column("round_id", ForeignKey("round.id"), nullable=False),
    Column("n", BigInteger, nullable=False),
    # Payloads back to back, sorted: within a commit nothing tells which came first.
    Column("payloads", LargeBinary, nullable=False),
    # The row of `counted_ids` that has their ids, in the same order, while the round is open; null
    # for what an earlier version counted, which kept no such order.
    Column("ids_row", BigInteger),
    Index("retained_of_round", "round_id", "id"),
)

# Each process writes rows of its own, so that processes never wait for each other's counts;
# a round's tally is the sum of its rows.
tally: Final = Table(
    "tally",
    metadata,
    Column("round_id", ForeignKey("round.id"), primary_key=True),
    Column("writer", BigInteger, primary_key=True),
    Column("n", BigInteger, nullable=False),
    Column("cells", LargeBinary, nullable=False),
    # How many of n came already randomised, in plain form.
    Column("plain", BigInteger, nullable=False, server_default=text("0")),
)

# What readers see: the newest published state of a round.
snapshot: Final = Table(
    "snapshot",
    metadata,
    Column("round_id", ForeignKey("round.id"), primary_key=True),
    Column("n", BigInteger, nullable=False),
    Column("cells", LargeBinary, nullable=False),
    # Seconds since 1970-01-01 UTC.
    Column("as_of", Float, nullable=False),
    # As in `tally`.
    Column("plain", BigInteger, nullable=False, server_default=text("0")),
)
