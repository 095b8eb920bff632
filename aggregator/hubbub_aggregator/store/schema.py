"""The tables. Every statement on them is written for SQLite and PostgreSQL alike."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

# Counts up with every change of a table; a store says which one it has.
SCHEMA_VERSION: Final = 3

metadata: Final = MetaData()

# One row.
store: Final = Table("hubbub_store", metadata, Column("schema_version", Integer, nullable=False))

# The bundle in force: one row, the highest revision seen.
bundle: Final = Table(
    "bundle",
    metadata,
    Column("operator", String, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("signed", LargeBinary, nullable=False),
)

# Every metric any bundle has listed; a name is bound to one digest for ever.
contract: Final = Table(
    "contract",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("name", String, nullable=False, unique=True),
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

# The ids of what is counted, until the round closes: afterwards it refuses, and they have no use.
# A row for each commit: of random ids each for itself, a tree slows down as it grows. A round's
# rows are written one after the other, so that their numbers are in the order of their commits.
counted_ids: Final = Table(
    "counted_ids",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("round_id", ForeignKey("round.id"), nullable=False),
    Column("writer", BigInteger, nullable=False),
    # 16 bytes each, back to back.
    Column("ids", LargeBinary, nullable=False),
    Index("counted_ids_of_round", "round_id", "id"),
)

# Reports of metrics that retain them, as they were opened, but without their ids. A row for each
# commit; n adds up over a round's rows, in the order of their ids, to every snapshot's n.
retained: Final = Table(
    "retained",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("round_id", ForeignKey("round.id"), nullable=False),
    Column("n", BigInteger, nullable=False),
    # Payloads back to back, sorted: within a commit nothing tells which came first.
    Column("payloads", LargeBinary, nullable=False),
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
    # How many of the n came unsealed.
    Column("plain", BigInteger, nullable=False, server_default="0"),
    Column("cells", LargeBinary, nullable=False),
)

# What readers see: the newest published state of a round.
snapshot: Final = Table(
    "snapshot",
    metadata,
    Column("round_id", ForeignKey("round.id"), primary_key=True),
    Column("n", BigInteger, nullable=False),
    Column("plain", BigInteger, nullable=False, server_default="0"),
    Column("cells", LargeBinary, nullable=False),
    # Seconds since 1970-01-01 UTC.
    Column("as_of", Float, nullable=False),
)
