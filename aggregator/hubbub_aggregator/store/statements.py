"""Every statement of counting and reading, built once: building one costs more than running it.

SQLAlchemy spells them by dialect, all but the INSERT that minds conflicts, of which each
dialect has its own with the same methods.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Dialect,
    Engine,
    Table,
    bindparam,
    cast,
    delete,
    func,
    select,
    update,
)

from hubbub_aggregator.store import schema
from hubbub_aggregator.store.prepared import Prepared

_round: Final = schema.round_
_counted_ids: Final = schema.counted_ids
_tally: Final = schema.tally
_snapshot: Final = schema.snapshot
_retained: Final = schema.retained

_OF_METRIC: Final = _round.c.digest == bindparam("digest")
_ONE_ROUND: Final = _OF_METRIC & (_round.c.number == bindparam("number"))
_SOME_ROUNDS: Final = _OF_METRIC & _round.c.number.between(bindparam("first"), bindparam("last"))
_WITH_SNAPSHOTS: Final = _round.outerjoin(_snapshot, _snapshot.c.round_id == _round.c.id)


def insert(dialect: Dialect, table: Table, *columns: str) -> Any:
    """An INSERT that can say ON CONFLICT; of some columns, or of all."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        statement: Any = postgresql.insert(table)
    else:
        from sqlalchemy.dialects import sqlite

        statement = sqlite.insert(table)
    names = columns or [column.name for column in table.c]
    return statement.values({name: bindparam(name) for name in names})


def upsert(dialect: Dialect, table: Table) -> Any:
    """An INSERT that replaces the row with the same primary key."""
    statement = insert(dialect, table)
    key = list(table.primary_key)
    replaced = {column.name: statement.excluded[column.name] for column in table.c}
    for column in key:
        del replaced[column.name]
    return statement.on_conflict_do_update(index_elements=key, set_=replaced)


class CountingStatements:
    """What a commit and a closing run; see prepared.py."""

    def __init__(self, engine: Engine) -> None:
        dialect = engine.dialect

        def prepared(statement: Any) -> Prepared:
            return Prepared(engine, statement)

        # What writers of a round wait for; in SQLite a transaction that writes is alone anyway. A
        # statement of its own: what PostgreSQL reads beside a row that it had to wait for is as
        # old as the statement, and would lack what was waited for.
        self.lock_round = (
            None
            if dialect.name == "sqlite"
            else prepared(select(_round.c.id).where(_ONE_ROUND).with_for_update())
        )
        # A round as a commit finds it: with how many reports this writer's row of the tally
        # counts, and all rows, how many of them the newest snapshot shows, and the last row of its
        # ids.
        own = _tally.alias("own")
        # PostgreSQL's sums are decimal.
        counted = select(cast(func.sum(_tally.c.n), BigInteger)).where(
            _tally.c.round_id == _round.c.id
        )
        newest = select(func.max(_counted_ids.c.id)).where(_counted_ids.c.round_id == _round.c.id)
        self.standing = prepared(
            select(
                _round.c.id,
                _round.c.closed_at,
                func.coalesce(own.c.n, 0),
                func.coalesce(counted.scalar_subquery(), 0),
                func.coalesce(_snapshot.c.n, 0),
                func.coalesce(newest.scalar_subquery(), 0),
            )
            .select_from(
                _WITH_SNAPSHOTS.outerjoin(
                    own, (own.c.round_id == _round.c.id) & (own.c.writer == bindparam("writer"))
                )
            )
            .where(_ONE_ROUND)
        )
        add_round = insert(dialect, _round, "digest", "number")
        self.add_round = prepared(add_round.on_conflict_do_nothing())
        round_id: BindParameter[int] = bindparam("round_id")
        close = update(_round).where(_round.c.id == round_id)
        self.mark_closed = prepared(close.values(closed_at=bindparam("closed_at")))

        of_round = _counted_ids.c.round_id == round_id
        newer = of_round & (_counted_ids.c.id > bindparam("since"))
        add_ids = insert(dialect, _counted_ids, "round_id", "writer", "ids")
        self.add_ids = prepared(add_ids.returning(_counted_ids.c.id))
        self.ids_since = prepared(
            select(_counted_ids.c.id, _counted_ids.c.ids).where(newer).order_by(_counted_ids.c.id)
        )
        self.size_of_ids = prepared(
            select(func.coalesce(func.sum(func.length(_counted_ids.c.ids)), 0)).where(newer)
        )
        self.forget_ids = prepared(delete(_counted_ids).where(of_round))

        self.retain = prepared(insert(dialect, _retained, "round_id", "n", "payloads", "ids_row"))
        # So many rows after one, with their ids where they are still there.
        self.kept_since = prepared(
            select(_retained.c.id, _retained.c.n, _retained.c.payloads, _counted_ids.c.ids)
            .join_from(
                _retained,
                _counted_ids,
                (_counted_ids.c.id == _retained.c.ids_row)
                & (_counted_ids.c.round_id == _retained.c.round_id),
                isouter=True,
            )
            .where((_retained.c.round_id == round_id) & (_retained.c.id > bindparam("since")))
            .order_by(_retained.c.id)
            .limit(bindparam("most"))
        )
        # Whoever hangs while it holds a round locked is let go of; to write a file is no hanging.
        self.take_time = (
            None
            if dialect.name == "sqlite"
            else prepared(
                select(func.set_config("idle_in_transaction_session_timeout", "10min", True))
            )
        )

        of_round = _tally.c.round_id == round_id
        tallies = select(_tally.c.n, _tally.c.cells, _tally.c.plain).where(of_round)
        self.tallies = prepared(tallies)
        self.own_tally = prepared(tallies.where(_tally.c.writer == bindparam("writer")))
        self.put_tally = prepared(upsert(dialect, _tally))
        self.forget_tallies = prepared(delete(_tally).where(of_round))

        self.put_snapshot = prepared(upsert(dialect, _snapshot))


OPEN_ROUNDS: Final = select(_round.c.id, _round.c.digest, _round.c.number).where(
    _round.c.closed_at.is_(None)
)
ROUNDS: Final = (
    select(_round.c.number, _round.c.closed_at, _snapshot.c.n)
    .select_from(_WITH_SNAPSHOTS)
    .where(_SOME_ROUNDS)
)
RETAINED: Final = (
    select(_retained.c.n, _retained.c.payloads)
    .join_from(_retained, _round)
    .where(_ONE_ROUND)
    .order_by(_retained.c.id)
    # PostgreSQL's driver would else fetch all of them before it gives the first.
    .execution_options(stream_results=True)
)
_SHOWN: Final = (_snapshot.c.n, _snapshot.c.cells, _snapshot.c.plain, _snapshot.c.as_of)
PUBLISHED: Final = (
    select(_round.c.closed_at, *_SHOWN).select_from(_WITH_SNAPSHOTS).where(_ONE_ROUND)
)
SNAPSHOTS: Final = (
    select(_round.c.number, _round.c.closed_at, *_SHOWN)
    .join_from(_round, _snapshot)
    .where(_SOME_ROUNDS)
    .order_by(_snapshot.c.n.desc())
)
NEWEST_PUBLISHED: Final = (
    select(func.max(_round.c.number)).join_from(_round, _snapshot).where(_OF_METRIC)
)
