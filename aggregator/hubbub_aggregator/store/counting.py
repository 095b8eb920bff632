"""Counting: which reports are new, what they add, and the snapshot that is then due."""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Engine

from hubbub_aggregator.store.errors import StoreDamaged
from hubbub_aggregator.store.prepared import Cursor
from hubbub_aggregator.store.retention import paired, unordered
from hubbub_aggregator.store.round_ids import RoundIds
from hubbub_aggregator.store.statements import CountingStatements
from hubbub_aggregator.store.types import Batch, Closed, Committed, KeptReports
from hubbub_aggregator.tally import Tally


@dataclass(frozen=True, slots=True)
class _Standing:
    """A round as a transaction finds it."""

    round_id: int
    closed_at: float | None
    own: int
    """Reports in this writer's row of the tally."""
    counted: int
    """Reports in all writers' rows."""
    shown: int
    """Reports in the newest snapshot; 0 before the first."""
    newest_ids: int
    """The last row of its ids."""

    @property
    def closed(self) -> bool:
        return self.closed_at is not None


def _nothing() -> None:
    """Nothing was counted."""


@dataclass(frozen=True, slots=True)
class _Counted:
    """What a transaction does with a batch."""

    new: NDArray[np.bool_] | None
    """Which reports are counted; None: the round is closed."""
    published: bool = False
    when_durable: Callable[[], None] = _nothing
    """To be called then."""


class Counting:
    """Counts for one process. Safe to use from many threads."""

    def __init__(
        self,
        engine: Engine,
        begin: Callable[[], AbstractContextManager[Cursor]],
        location: str,
        *,
        writer: int,
        publish_step: int,
    ) -> None:
        """`begin` a transaction that writes; for the rest see Store."""
        self._statements = CountingStatements(engine)
        self._begin = begin
        self._location = location
        self._writer = writer
        self._publish_step = publish_step
        # By the round's row. Under the lock, which is held for as long as a transaction is.
        self._ids: dict[int, RoundIds] = {}
        self._lock = threading.Lock()

    def commit(self, batches: Sequence[Batch], now: float) -> Committed:
        """See Store.commit."""
        if len({(batch.digest, batch.round) for batch in batches}) < len(batches):
            raise ValueError("two batches of one round")
        counted: dict[int, _Counted] = {}
        with self._lock:
            with self._begin() as cursor:
                # Rounds are locked in one order by everybody, so that no two wait for each other.
                order = sorted(
                    range(len(batches)), key=lambda i: (batches[i].digest, batches[i].round)
                )
                for place in order:
                    counted[place] = self._count(cursor, batches[place], now)
            for one in counted.values():
                one.when_durable()
        return Committed(
            [counted[place].new for place in range(len(batches))],
            any(one.published for one in counted.values()),
        )

    def close_round(
        self,
        digest: bytes,
        number: int,
        now: float,
        keep: Callable[[KeptReports], None] | None = None,
    ) -> Closed:
        """See Store.close_round."""
        run = self._statements
        with self._lock, self._begin() as cursor:
            standing = self._standing(cursor, digest, number)
            round_id = standing.round_id
            if standing.closed:
                self._ids.pop(round_id, None)
                return Closed(standing.shown, closed_now=False)
            tallies = self._tallies(cursor, round_id)
            if keep is not None and standing.counted:
                # Before anything is forgotten; if it cannot be kept, the round stays as it was.
                self._keep(cursor, round_id, reduce(add, tallies), keep)
            if tallies:
                self._publish(cursor, round_id, tallies, now)
            if len(tallies) > 1:
                # One row in place of one for each process that there ever was.
                run.forget_tallies(cursor, round_id=round_id)
                self._put_tally(cursor, round_id, reduce(add, tallies))
            run.mark_closed(cursor, round_id=round_id, closed_at=now)
            run.forget_ids(cursor, round_id=round_id)
        with self._lock:
            self._ids.pop(round_id, None)
        return Closed(sum(tally.n for tally in tallies), closed_now=True)

    def load(self, digest: bytes, number: int) -> None:
        """Learn a round's ids."""
        with self._lock, self._begin() as cursor:
            # Nobody counts it meanwhile: it is locked.
            standing = self._standing(cursor, digest, number)
            if not standing.closed:
                self._known(cursor, standing)

    def forget_all_but(self, open_rounds: Collection[int]) -> None:
        """Forget the ids of rounds that others closed, given the rows of those that are open."""
        with self._lock:
            for closed in self._ids.keys() - open_rounds:
                del self._ids[closed]

    def _count(self, cursor: Cursor, batch: Batch, now: float) -> _Counted:
        """Count a batch, as part of a transaction."""
        standing = self._standing(cursor, batch.digest, batch.round)
        round_id = standing.round_id
        if standing.closed:
            self._ids.pop(round_id, None)
            return _Counted(None)
        ids = self._known(cursor, standing)
        new = ids.known.new(batch.ids)
        n = int(np.count_nonzero(new))
        if not n:
            return _Counted(new)
        plain = 0 if batch.plain is None else int(np.count_nonzero(batch.plain & new))
        own = self._own(cursor, standing, ids)
        more = Tally(n, batch.fold(new), plain)
        own = more if own is None else own + more
        self._put_tally(cursor, round_id, own)
        added, payloads = batch.ids[new], None
        if batch.retain is not None:
            added, payloads = unordered(added, batch.retain(new))
        (row,) = self._statements.add_ids(
            cursor, round_id=round_id, writer=self._writer, ids=added.tobytes()
        ).fetchone()
        if payloads is not None:
            self._statements.retain(cursor, round_id=round_id, n=n, payloads=payloads, ids_row=row)
        published = standing.counted + n >= standing.shown + self._publish_step
        if published:
            alone = standing.counted == standing.own
            tallies = [own] if alone else self._tallies(cursor, round_id)
            self._publish(cursor, round_id, tallies, now)
        return _Counted(new, published, partial(ids.committed, added, row, own))

    def _keep(
        self, cursor: Cursor, round_id: int, total: Tally, keep: Callable[[KeptReports], None]
    ) -> None:
        run = self._statements
        if run.take_time is not None:
            run.take_time(cursor)

        def rows(since: int, most: int) -> list[Any]:
            key = {"round_id": round_id, "since": since, "most": most}
            found: list[Any] = run.kept_since(cursor, **key).fetchall()
            return found

        def read(size: int) -> Iterator[NDArray[np.uint8]]:
            try:
                yield from paired(rows, total.n, size)
            except ValueError as error:
                raise damaged(self._location, f"what it retained is {error}") from error

        keep(KeptReports(total.n, total.plain, read))

    def _standing(self, cursor: Cursor, digest: bytes, number: int) -> _Standing:
        """Where a round stands; its row is made if need be, and locked."""
        run, key = self._statements, {"digest": digest, "number": number}
        if run.lock_round is not None and not run.lock_round(cursor, **key).fetchone():
            run.add_round(cursor, **key)
            run.lock_round(cursor, **key)
        row = run.standing(cursor, **key, writer=self._writer).fetchone()
        if row is None:
            run.add_round(cursor, **key)
            row = run.standing(cursor, **key, writer=self._writer).fetchone()
        return _Standing(*row)

    def _known(self, cursor: Cursor, standing: _Standing) -> RoundIds:
        """The ids of a round, as of now."""
        ids = self._ids.setdefault(standing.round_id, RoundIds())
        if standing.newest_ids > ids.up_to:
            ids.catch_up(cursor, self._statements, standing.round_id)
        return ids

    def _own(self, cursor: Cursor, standing: _Standing, ids: RoundIds) -> Tally | None:
        """This writer's row of the tally."""
        if not standing.own:
            return None
        # Nobody else writes it, and it only grows: with n, all that is known of it holds.
        if ids.own is not None and ids.own.n == standing.own:
            return ids.own
        row = self._statements.own_tally(
            cursor, round_id=standing.round_id, writer=self._writer
        ).fetchone()
        return read_tally(self._location, *row)

    def _put_tally(self, cursor: Cursor, round_id: int, tally: Tally) -> None:
        self._statements.put_tally(
            cursor,
            round_id=round_id,
            writer=self._writer,
            n=tally.n,
            plain=tally.plain,
            cells=tally.to_bytes(),
        )

    def _tallies(self, cursor: Cursor, round_id: int) -> list[Tally]:
        """Every writer's tally of a round."""
        rows = self._statements.tallies(cursor, round_id=round_id).fetchall()
        return [read_tally(self._location, *row) for row in rows]

    def _publish(self, cursor: Cursor, round_id: int, tallies: Sequence[Tally], now: float) -> None:
        total = reduce(add, tallies)
        self._statements.put_snapshot(
            cursor,
            round_id=round_id,
            n=total.n,
            plain=total.plain,
            cells=total.to_bytes(),
            as_of=now,
        )


def read_tally(location: str, n: int, cells: bytes, plain: int) -> Tally:
    """A tally, as its row says. Raises StoreDamaged."""
    try:
        return Tally.from_bytes(n, cells, plain)
    except ValueError as error:
        raise damaged(location, f"a tally is {error}") from error


def damaged(location: str, what: str) -> StoreDamaged:
    """What to say of a store that holds what it cannot hold."""
    return StoreDamaged(location, f"is damaged ({what}); restore it from a backup")
