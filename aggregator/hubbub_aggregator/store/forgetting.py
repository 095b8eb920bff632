"""Forgetting what was kept of a metric's closed rounds; its name stays bound to its contract.

Nobody writes to a closed round any more, so this is safe beside aggregators that count. Of an
open round nothing is forgotten: its reports would be missing where they are still to be counted.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, Select, Table, delete, func, select

from hubbub_aggregator.store import schema
from hubbub_aggregator.store.serial import one_at_a_time

_round = schema.round_
_retained = schema.retained
_COUNTS = (schema.tally, schema.snapshot)


@dataclass(frozen=True, slots=True)
class Kept:
    """What a store keeps of a metric."""

    reports: int
    """Of closed rounds."""
    counts: tuple[int, ...]
    """The closed rounds that have counts, in order."""
    open: tuple[int, ...]
    """The open rounds, in order."""


def kept(connection: Connection, digest: bytes) -> Kept:
    """What could be forgotten, and what could not."""
    closed = _closed(digest)
    reports = connection.execute(
        select(func.coalesce(func.sum(_retained.c.n), 0)).where(_retained.c.round_id.in_(closed))
    ).scalar_one()
    counts = select(_round.c.number).where(
        _round.c.id.in_(closed), _round.c.id.in_(select(schema.tally.c.round_id))
    )
    still_open = select(_round.c.number).where(
        _round.c.digest == digest, _round.c.closed_at.is_(None)
    )
    return Kept(
        # PostgreSQL's sums are decimal.
        int(reports),
        tuple(connection.execute(counts.order_by(_round.c.number)).scalars()),
        tuple(connection.execute(still_open.order_by(_round.c.number)).scalars()),
    )


def forget(connection: Connection, digest: bytes, *, counts: bool) -> Kept:
    """Delete the reports of closed rounds, and their `counts` too; returns what there was."""
    one_at_a_time(connection)
    found = kept(connection, digest)
    _empty(connection, _retained, digest)
    if counts:
        for table in _COUNTS:
            _empty(connection, table, digest)
    return found


def _empty(connection: Connection, table: Table, digest: bytes) -> None:
    connection.execute(delete(table).where(table.c.round_id.in_(_closed(digest))))


def _closed(digest: bytes) -> Select[tuple[int]]:
    return select(_round.c.id).where(_round.c.digest == digest, _round.c.closed_at.is_not(None))
