"""What is counted, durably and exactly once.

A commit makes durable in one transaction, or not at all: which reports were new, what they add
to the tally, their payloads if the metric retains them, and, when it is due, the snapshot that
readers see. Nothing here returns a count or a payload that is not in a snapshot.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub_aggregator.store import contracts, sqlite, statements
from hubbub_aggregator.store.counting import Counting, damaged, read_tally
from hubbub_aggregator.store.engine import (
    WRITES,
    identity_of,
    location_of,
    open_engine,
    translated,
)
from hubbub_aggregator.store.errors import ReportsForgotten, StoreDamaged
from hubbub_aggregator.store.forgetting import Kept, forget, kept
from hubbub_aggregator.store.overview import Overview, read_overview
from hubbub_aggregator.store.prepared import Cursor, writing
from hubbub_aggregator.store.retention import blocks
from hubbub_aggregator.store.types import (
    Batch,
    Closed,
    Committed,
    KeptReports,
    Published,
    Snapshot,
)
from hubbub_aggregator.tally import Tally


class Store:
    """One database. Safe to use from many threads; several processes may share it."""

    def __init__(self, location: str, *, writer: int, publish_step: int) -> None:
        """Open or create it. Raises StoreError.

        `writer` names this process, in [0, 2^63): a fresh random number. A snapshot is due
        when it holds at least `publish_step` more reports than the one before.
        """
        self._engine = open_engine(location)
        self.location: Final = location_of(self._engine)
        self._opened = identity_of(self._engine)
        self._counting = Counting(
            self._engine,
            self._count,
            self.location,
            writer=writer,
            publish_step=publish_step,
        )

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _transaction(self, engine: Engine) -> Generator[Connection]:
        """A transaction for the body, on the very file that was opened. Raises StoreError."""
        with translated(self.location):
            # Before, since a new connection would make an empty file where none is; after,
            # since nothing may be acknowledged that went to a file which has no name any more.
            self._opened.require()
            with engine.begin() as connection:
                yield connection
                self._opened.require()

    @contextmanager
    def _count(self) -> Generator[Cursor]:
        """The same, to count in: one at a time."""
        with translated(self.location):
            self._opened.require()
            with writing(self._engine) as cursor:
                yield cursor
                self._opened.require()

    def adopt(self, bundle: Bundle, *, now: float) -> None:
        """Put a verified bundle in force, and remember its metrics for ever, and since when.

        Raises ForeignOperator, LowerRevision or ChangedContract, having changed nothing.
        """
        with self._transaction(self._engine.execution_options(**{WRITES: True})) as connection:
            contracts.adopt(connection, bundle, now)

    def metrics(self) -> list[Metric]:
        """Every metric that any bundle has listed, by name."""
        with self._transaction(self._engine) as connection:
            return contracts.metrics(connection, self.location)

    # Counting

    def commit(self, batches: Sequence[Batch], *, now: float) -> Committed:
        """Count every report whose id the round does not hold yet; the first one wins.

        When this returns, what it says is durable. Raises StoreError, having counted nothing;
        what was counted all the same, where that cannot be known, is found at the next commit.
        `now` dates the snapshots it may take. No two batches are of one round.
        """
        return self._counting.commit(batches, now)

    def close_round(
        self,
        digest: bytes,
        number: int,
        *,
        now: float,
        keep: Callable[[KeptReports], None] | None = None,
    ) -> Closed:
        """Take no more reports, publish what there is, and forget the ids. Idempotent.

        `keep` is called first, of a metric that retains its reports, with those of a round that
        is not closed yet and has any; nobody can count into it meanwhile. What it raises leaves
        the round open, with all it holds.
        """
        return self._counting.close_round(digest, number, now, keep)

    def load_open_rounds(self) -> None:
        """Learn the ids of every open round, so that no report has to wait for it later."""
        for digest, number in self.open_rounds():
            self._counting.load(digest, number)

    # Reading

    def open_rounds(self) -> list[tuple[bytes, int]]:
        """Digest and number of every round that was sent a report and is not closed."""
        with self._transaction(self._engine) as connection:
            rows = connection.execute(statements.OPEN_ROUNDS).all()
        # Others close rounds, too.
        self._counting.forget_all_but({row.id for row in rows})
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
                statements.ROUNDS,
                {"digest": digest, "first": among.start, "last": among.stop - 1},
            )
            return {row.number: (row.closed_at is not None, row.n or 0) for row in rows}

    def newest_published(self, digest: bytes) -> int | None:
        """The last round that has a snapshot."""
        with self._transaction(self._engine) as connection:
            newest: int | None = connection.execute(
                statements.NEWEST_PUBLISHED, {"digest": digest}
            ).scalar_one()
        return newest

    def published(self, digest: bytes, number: int) -> Published | None:
        """What readers may know of a round; None: nobody sent it a report or closed it."""
        with self._transaction(self._engine) as connection:
            row = connection.execute(
                statements.PUBLISHED, {"digest": digest, "number": number}
            ).one_or_none()
        if row is None:
            return None
        snapshot = None
        if row.n is not None:
            snapshot = Snapshot(self._tally(row.n, row.cells, row.plain), row.as_of)
        return Published(row.closed_at is not None, snapshot)

    def snapshots(self, digest: bytes, among: range) -> Generator[tuple[int, bool, Snapshot]]:
        """The number, whether it is closed, and the snapshot of every round that has one.

        Of the rounds `among` these, which has step 1; those with the most reports first. All as
        they were at one instant.
        """
        with self._transaction(self._engine) as connection:
            rows = connection.execute(
                statements.SNAPSHOTS,
                {"digest": digest, "first": among.start, "last": among.stop - 1},
            )
            for row in rows:
                snapshot = Snapshot(self._tally(row.n, row.cells, row.plain), row.as_of)
                yield row.number, row.closed_at is not None, snapshot

    def retained(
        self, digest: bytes, number: int, n: int, size: int
    ) -> Generator[NDArray[np.uint8]]:
        """The payloads, of `size` bytes each, that a round's snapshot of n reports counts.

        In arrays of some MiB, shape (some, size), of a metric that retains its reports. Raises
        ReportsForgotten if there are none any more.
        """
        empty = True
        key = {"digest": digest, "number": number}
        with (
            self._transaction(self._engine) as connection,
            # Rows of later commits are not asked for: the server is told that this was all.
            connection.execute(statements.RETAINED, key) as rows,
        ):
            try:
                for block in blocks(rows, n, size):
                    empty = False
                    yield block
            except ValueError as error:
                published = self.published(digest, number)
                if empty and published is not None and published.closed:
                    raise ReportsForgotten(self.location, number) from None
                raise self._damaged(f"what it retained is {error}") from error

    # Forgetting

    def kept(self, digest: bytes) -> Kept:
        """What it keeps of a metric, which `forget` would delete."""
        with self._transaction(self._engine) as connection:
            return kept(connection, digest)

    def forget(self, digest: bytes, *, counts: bool) -> Kept:
        """Delete the reports, and if so asked the `counts`, of a metric's closed rounds.

        Returns what there was. These rounds stay closed, and take no report again.
        """
        with self._transaction(self._engine.execution_options(**{WRITES: True})) as connection:
            return forget(connection, digest, counts=counts)

    def scrub(self) -> bool:
        """See to it that no byte of what was deleted is left; False: some may be, for a while."""
        if self._engine.dialect.name != "sqlite":
            # The server has means of its own, at times of its own.
            return False
        with translated(self.location):
            self._opened.require()
            return sqlite.empty_log(self._engine)

    def _tally(self, n: int, cells: bytes, plain: int) -> Tally:
        return read_tally(self.location, n, cells, plain)

    def _damaged(self, what: str) -> StoreDamaged:
        return damaged(self.location, what)
