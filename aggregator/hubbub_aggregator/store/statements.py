"""Every statement of counting and reading, built once: building one costs more than running it.

SQLAlchemy spells them by dialect, all but the INSERT that minds conflicts, of which each
dialect has its own with the same methods.
"""

from typing import Any

from sqlalchemy import BindParameter, Dialect, Table, bindparam, delete, func, select, update

from hubbub_aggregator.store import schema


def insert(dialect: Dialect, table: Table) -> Any:
    """An INSERT that can say ON CONFLICT."""
    if dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def upsert(dialect: Dialect, table: Table) -> Any:
    """An INSERT that replaces the row with the same primary key."""
    statement = insert(dialect, table)
    key = list(table.primary_key)
    replaced = {column.name: statement.excluded[column.name] for column in table.c}
    for column in key:
        del replaced[column.name]
    return statement.on_conflict_do_update(index_elements=key, set_=replaced)


class Statements:
    """The statements in one dialect; their parameters are columns' names."""

    def __init__(self, dialect: Dialect) -> None:
        round_, counted_ids, tally, snapshot, retained = (
            schema.round_,
            schema.counted_ids,
            schema.tally,
            schema.snapshot,
            schema.retained,
        )
        of_metric = round_.c.digest == bindparam("digest")
        one_round = of_metric & (round_.c.number == bindparam("number"))
        with_snapshots = round_.outerjoin(snapshot, snapshot.c.round_id == round_.c.id)
        round_id: BindParameter[int] = bindparam("round_id")

        # What writers of a round wait for; in SQLite a transaction that writes is alone anyway.
        self.lock_round = (
            None
            if dialect.name == "sqlite"
            else select(round_.c.id).where(one_round).with_for_update()
        )
        # A round as a commit finds it: with this writer's row of the tally, how many reports
        # all rows count, and how many of them the newest snapshot shows.
        own = tally.alias("own")
        counted = select(func.sum(tally.c.n)).where(tally.c.round_id == round_.c.id)
        self.standing = (
            select(
                round_.c.id,
                round_.c.closed_at,
                own.c.n,
                own.c.cells,
                func.coalesce(counted.scalar_subquery(), 0).label("counted"),
                func.coalesce(snapshot.c.n, 0).label("shown"),
            )
            .select_from(
                with_snapshots.outerjoin(
                    own, (own.c.round_id == round_.c.id) & (own.c.writer == bindparam("writer"))
                )
            )
            .where(one_round)
        )
        self.add_round = insert(dialect, round_).on_conflict_do_nothing()
        self.mark_closed = (
            update(round_).where(round_.c.id == round_id).values(closed_at=bindparam("closed_at"))
        )
        self.rounds = (
            select(round_.c.number, round_.c.closed_at, snapshot.c.n)
            .select_from(with_snapshots)
            .where(of_metric & round_.c.number.between(bindparam("first"), bindparam("last")))
        )
        self.open_rounds = select(round_.c.digest, round_.c.number).where(
            round_.c.closed_at.is_(None)
        )

        self.ids = select(counted_ids.c.ids).where(counted_ids.c.round_id == round_id)
        self.add_ids = insert(dialect, counted_ids)
        self.forget_ids = delete(counted_ids).where(counted_ids.c.round_id == round_id)

        self.retain = insert(dialect, retained)
        self.retained = (
            select(retained.c.n, retained.c.payloads)
            .join_from(retained, round_)
            .where(one_round)
            .order_by(retained.c.id)
            # PostgreSQL's driver would else fetch all of them before it gives the first.
            .execution_options(stream_results=True)
        )

        self.tallies = select(tally.c.n, tally.c.cells).where(tally.c.round_id == round_id)
        self.put_tally = upsert(dialect, tally)

        self.put_snapshot = upsert(dialect, snapshot)
        self.published = (
            select(round_.c.closed_at, snapshot.c.n, snapshot.c.cells, snapshot.c.as_of)
            .select_from(with_snapshots)
            .where(one_round)
        )
        self.snapshots = (
            select(
                round_.c.number,
                round_.c.closed_at,
                snapshot.c.n,
                snapshot.c.cells,
                snapshot.c.as_of,
            )
            .join_from(round_, snapshot)
            .where(of_metric & round_.c.number.between(bindparam("first"), bindparam("last")))
            .order_by(snapshot.c.n.desc())
        )
        self.newest_published = (
            select(func.max(round_.c.number)).join_from(round_, snapshot).where(of_metric)
        )
