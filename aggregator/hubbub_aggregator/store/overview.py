"""What is in a store, for its operator: rounds, sizes of snapshots, revisions of the bundle."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, case, func, select

from hubbub_aggregator.store import schema

# Of rounds, too, no more are listed.
MAX_REVISIONS_LISTED: Final = 100


@dataclass(frozen=True, slots=True)
class SnapshotSize:
    """The newest snapshot of one metric, without what it says."""

    digest: bytes
    round: int
    n: int
    as_of: float
    """Seconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of the bundle that is in force, or was."""

    number: int
    since: float
    """When the first aggregator started with it, seconds since 1970-01-01 UTC."""
    or_earlier: bool
    """Whether it may have been in force before: the store did not keep times yet."""


@dataclass(frozen=True, slots=True)
class Overview:
    """All of it as it was at one instant."""

    rounds_open: int
    rounds_closed: int
    """Of the rounds that were sent a report, or closed."""
    snapshots: list[SnapshotSize]
    """Of the newest round of each metric that has one."""
    revisions: list[Revision]
    """Oldest first; of many, the newest."""


_round, _snapshot = schema.round_, schema.snapshot
_newest = (
    select(_round.c.digest, func.max(_round.c.number).label("number"))
    .join_from(_round, _snapshot)
    .group_by(_round.c.digest)
    .subquery()
)
_SNAPSHOTS = (
    select(_round.c.digest, _round.c.number, _snapshot.c.n, _snapshot.c.as_of)
    .join_from(_round, _snapshot)
    .join(_newest, (_newest.c.digest == _round.c.digest) & (_newest.c.number == _round.c.number))
)
_ROUNDS = select(
    func.count().label("all"),
    func.count(case((_round.c.closed_at.is_(None), 1))).label("open"),
).select_from(_round)


_REVISIONS = (
    select(schema.in_force).order_by(schema.in_force.c.revision.desc()).limit(MAX_REVISIONS_LISTED)
)


def read_overview(connection: Connection) -> Overview:
    """Within the caller's transaction."""
    rounds = connection.execute(_ROUNDS).one()
    snapshots = [
        SnapshotSize(row.digest, row.number, row.n, row.as_of)
        for row in connection.execute(_SNAPSHOTS)
    ]
    revisions = [
        Revision(row.revision, row.since, row.or_earlier) for row in connection.execute(_REVISIONS)
    ]
    return Overview(rounds.open, rounds.all - rounds.open, snapshots, revisions[::-1])
