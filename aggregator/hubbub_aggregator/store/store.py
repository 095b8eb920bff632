"""What is counted, durably and exactly once.

A commit makes durable in one transaction, or not at all: which reports were new, what they add
to the tally, their payloads if the metric retains them, and, when it is due, the snapshot that
readers see. Nothing here returns a count or a payload that is not in a snapshot.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub_aggregator.store import contracts
from hubbub_aggregator.store.engine import WRITES, open_engine, translated
from hubbub_aggregator.store.errors import StoreDamaged
from hubbub_aggregator.store.identity import FileIdentity
from hubbub_aggregator.store.overview import Overview, read_overview
from hubbub_aggregator.store.retention import blocks
from hubbub_aggregator.store.statements import Statements
from hubbub_aggregator.store.types import Batch, Closed, Committed, Published, Snapshot
from hubbub_aggregator.tally import Tally


@dataclass(frozen=True, slots=True)
class _Standing:
    """A round as a transaction finds it."""

    round_id: int
    closed: bool
    own: Tally | None
    """This writer's row of the tally."""
    counted: int
    """Reports in all writers' rows."""
    shown: int
    """Reports in the newest snapshot; 0 before the first."""


class Store:
    """One database. Safe to use from many threads; several processes may share it."""

    def __init__(self, location: str, *, writer: int, publish_step: int) -> None:
        """Open or create it. Raises StoreError.

        `writer` names this process, in [0, 2^63): a fresh random number. A snapshot is due
        when it holds at least `publish_step` more reports than the one before.
        """
        self._engine = open_engine(location)
        self._writing = self._engine.execution_options(**{WRITES: True})
        self._statements = Statements(self._engine.dialect)
        self._writer = writer
        self._publish_step = publish_step
        self.location: Final = str(self._engine.url.database)
        self._file = FileIdentity(Path(self.location))

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _transaction(self, engine: Engine) -> Generator[Connection]:
        """A transaction for the body, on the very file that was opened. Raises StoreError."""
        with translated(self.location):
            # Before, since a new connection would make an empty file where none is; after,
            # since nothing may be acknowledged that went to a file which has no name any more.
            self._file.require()
            with engine.begin() as connection:
                yield connection
                self._file.require()

    def adopt(self, bundle: Bundle) -> None:
        """Put a verified bundle in force, and remember its metrics for ever.

        Raises ForeignOperator, LowerRevision or ChangedContract, having changed nothing.
        """
        with self._transaction(self._writing) as connection:
            contracts.adopt(connection, bundle)

    def metrics(self) -> list[Metric]:
        """Every metric that any bundle has listed, by name."""
        with self._transaction(self._engine) as connection:
            return contracts.metrics(connection, self.location)

    # Counting

    def commit(self, batches: Sequence[Batch], *, now: float) -> Committed:
        """Count every report whose id the round does not hold yet; the first one wins.

        When this returns, what it says is durable. Raises StoreError, having counted nothing.
        `now` dates the snapshots it may take.
        """
        with self._transaction(self._writing) as connection:
            new: list[NDArray[np.bool_] | None] = []
            published = False
            for batch in batches:
                standing = self._standing(connection, batch.digest, batch.round)
                if standing.closed:
                    new.append(None)
                    continue
                mask = self._insert_ids(connection, standing.round_id, batch.ids)
                new.append(mask)
                if mask.any():
                    more = Tally(int(mask.sum()), batch.fold(mask))
                    self._add(connection, standing, more)
                    if batch.retain is not None:
                        self._retain(connection, standing, more.n, batch.retain(mask))
                    published |= self._publish_if_due(connection, standing, more.n, now)
        return Committed(new, published)

    def close_round(self, digest: bytes, number: int, *, now: float) -> Closed:
        """Take no more reports, publish what there is, and forget the ids. Idempotent."""
        with self._transaction(self._writing) as connection:
            standing = self._standing(connection, digest, number)
            if standing.closed:
                return Closed(standing.shown, closed_now=False)
            round_id = standing.round_id
            tallies = self._tallies(connection, round_id)
            if tallies:
                self._publish(connection, round_id, tallies, now)
            connection.execute(
                self._statements.mark_closed, {"round_id": round_id, "closed_at": now}
            )
            connection.execute(self._statements.forget_ids, {"round_id": round_id})
        return Closed(sum(tally.n for tally in tallies), closed_now=True)

    def _standing(self, connection: Connection, digest: bytes, number: int) -> _Standing:
        """Where a round stands; its row is made if need be, and locked."""
        key = {"digest": digest, "number": number}
        own_key = {**key, "writer": self._writer}
        row = connection.execute(self._statements.standing, own_key).one_or_none()
        if row is None:
            connection.execute(self._statements.add_round, key)
            row = connection.execute(self._statements.standing, own_key).one()
        return _Standing(
            round_id=row.id,
            closed=row.closed_at is not None,
            own=None if row.n is None else self._tally(row.n, row.cells),
            counted=int(row.counted),
            shown=row.shown,
        )

    def _insert_ids(
        self, connection: Connection, round_id: int, ids: Sequence[bytes]
    ) -> NDArray[np.bool_]:
        """Insert the ids, and tell which were not there: bool of shape (n,)."""
        rows = [{"round_id": round_id, "report_id": report_id} for report_id in ids]
        inserted = set(connection.execute(self._statements.add_ids, rows).scalars())
        mask = np.zeros(len(ids), np.bool_)
        for place, report_id in enumerate(ids):
            # Of two equal ids in one batch, the first is the one that counts.
            if report_id in inserted:
                inserted.discard(report_id)
                mask[place] = True
        return mask

    def _add(self, connection: Connection, standing: _Standing, more: Tally) -> None:
        """Add to this writer's own row of the tally."""
        tally = more if standing.own is None else more + standing.own
        row = {"round_id": standing.round_id, "writer": self._writer}
        connection.execute(
            self._statements.put_tally, {**row, "n": tally.n, "cells": tally.to_bytes()}
        )

    def _retain(self, connection: Connection, standing: _Standing, n: int, payloads: bytes) -> None:
        row = {"round_id": standing.round_id, "n": n, "payloads": payloads}
        connection.execute(self._statements.retain, row)

    # Publishing

    def _publish_if_due(
        self, connection: Connection, standing: _Standing, more: int, now: float
    ) -> bool:
        if standing.counted + more < standing.shown + self._publish_step:
            return False
        tallies = self._tallies(connection, standing.round_id)
        self._publish(connection, standing.round_id, tallies, now)
        return True

    def _tallies(self, connection: Connection, round_id: int) -> list[Tally]:
        """Every writer's tally of a round."""
        rows = connection.execute(self._statements.tallies, {"round_id": round_id})
        return [self._tally(row.n, row.cells) for row in rows]

    def _publish(
        self, connection: Connection, round_id: int, tallies: Sequence[Tally], now: float
    ) -> None:
        total = reduce(add, tallies)
        connection.execute(
            self._statements.put_snapshot,
            {"round_id": round_id, "n": total.n, "cells": total.to_bytes(), "as_of": now},
        )

    # Reading

    def open_rounds(self) -> list[tuple[bytes, int]]:
        """Digest and number of every round that was sent a report and is not closed."""
        with self._transaction(self._engine) as connection:
            rows = connection.execute(self._statements.open_rounds)
            return [(row.digest, row.number) for row in rows]

    def overview(self) -> Overview:
        """What is in it, for its operator."""
        with self._transaction(self._engine) as connection:
            return read_overview(connection)

    def rounds(self, digest: bytes, among: range) -> dict[int, tuple[bool, int]]:
        """For every round `among` these with a row: whether it is closed, n of its snapshot.

        `among` has step 1.
        """
        with self._transaction(self._engine) as connection:
            rows = connection.execute(
                self._statements.rounds,
                {"digest": digest, "first": among.start, "last": among.stop - 1},
            )
            return {row.number: (row.closed_at is not None, row.n or 0) for row in rows}

    def newest_published(self, digest: bytes) -> int | None:
        """The last round that has a snapshot."""
        with self._transaction(self._engine) as connection:
            newest: int | None = connection.execute(
                self._statements.newest_published, {"digest": digest}
            ).scalar_one()
        return newest

    def published(self, digest: bytes, number: int) -> Published | None:
        """What readers may know of a round; None: nobody sent it a report or closed it."""
        with self._transaction(self._engine) as connection:
            row = connection.execute(
                self._statements.published, {"digest": digest, "number": number}
            ).one_or_none()
        if row is None:
            return None
        snapshot = None
        if row.n is not None:
            snapshot = Snapshot(self._tally(row.n, row.cells), row.as_of)
        return Published(row.closed_at is not None, snapshot)

    def snapshots(self, digest: bytes, among: range) -> Generator[tuple[int, bool, Snapshot]]:
        """The number, whether it is closed, and the snapshot of every round that has one.

        Of the rounds `among` these, which has step 1; those with the most reports first. All as
        they were at one instant.
        """
        with self._transaction(self._engine) as connection:
            rows = connection.execute(
                self._statements.snapshots,
                {"digest": digest, "first": among.start, "last": among.stop - 1},
            )
            for row in rows:
                snapshot = Snapshot(self._tally(row.n, row.cells), row.as_of)
                yield row.number, row.closed_at is not None, snapshot

    def retained(
        self, digest: bytes, number: int, n: int, size: int
    ) -> Generator[NDArray[np.uint8]]:
        """The payloads, of `size` bytes each, that a round's snapshot of n reports counts.

        In arrays of some MiB, shape (some, size), of a metric that retains its reports.
        """
        with self._transaction(self._engine) as connection:
            rows = connection.execute(
                self._statements.retained, {"digest": digest, "number": number}
            )
            try:
                yield from blocks(rows, n, size)
            except ValueError as error:
                raise self._damaged(f"what it retained is {error}") from error

    def _tally(self, n: int, cells: bytes) -> Tally:
        try:
            return Tally.from_bytes(n, cells)
        except ValueError as error:
            raise self._damaged(f"a tally is {error}") from error

    def _damaged(self, what: str) -> StoreDamaged:
        return StoreDamaged(self.location, f"is damaged ({what}); restore it from a backup")
