"""Group commit: one thread makes durable whatever waits, all of it at once.

Alone, a request waits for one flush of the disk; among many, it shares one with all that came
during the last. What there is to do for a report, beyond opening it, is done here for all of them
together, in numpy.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.limits import REPORT_ID_BYTES
from hubbub.v1 import report_pb2
from hubbub_aggregator.groups import GroupThread
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.oracles import Payloads
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.store import Batch, Ids, Store, StoreError, StoreUnavailable
from hubbub_aggregator.submission import Submission

_log = logging.getLogger(__name__)

# How long to rest after a commit that several shared, as a multiple of what it took; and at most,
# in seconds. Alone, nobody waits.
_REST: Final = 3.0
_LONGEST_REST: Final = 0.005

# How much of the newest goes into what a commit takes lately.
_NEWEST: Final = 0.5

_COUNTED = np.uint8(report_pb2.REPORT_STATUS_COUNTED)
_DUPLICATE = np.uint8(report_pb2.REPORT_STATUS_DUPLICATE)
_NOT_CANONICAL = np.uint8(report_pb2.REPORT_STATUS_NOT_CANONICAL)


class Committer:
    """The only thread of this process that counts."""

    def __init__(
        self,
        store: Store,
        announcements: Announcements,
        clock: Callable[[], float],
        observations: Observations,
    ) -> None:
        self._store = store
        self._announcements = announcements
        self._clock = clock
        self._observations = observations
        self._seconds = 0.0
        self._groups = GroupThread("committer", self._work)

    @property
    def seconds(self) -> float:
        """What a commit takes lately."""
        return self._seconds

    def commit(self, submissions: list[Submission]) -> None:
        """Settle submissions, later: when what they say is durable, or cannot be made so."""
        if not self._groups.put_all(submissions):
            stopping = StoreUnavailable(self._store.location, "the aggregator is stopping")
            _fail(submissions, stopping)

    def close(self) -> None:
        """Commit what waits, then stop."""
        self._groups.close()

    def _work(self, group: list[Submission]) -> None:
        began = time.monotonic()
        self._commit_or_fail(group)
        if len(group) > 1:
            # Where there are many, more come: those who share a commit share what it costs.
            time.sleep(min(_REST * (time.monotonic() - began), _LONGEST_REST))

    def _commit_or_fail(self, group: list[Submission]) -> None:
        try:
            self._commit(group)
        except StoreError as error:
            # Once, not with every group: a log may be on the very disk that is full.
            if self._observations.failing_since is None:
                _log.error("nothing is counted now: %s", error)
            self._observations.failed()
            _fail(group, error)
        except Exception:
            # A fault in one commit must not leave every later caller waiting for ever.
            _log.exception("a commit failed")
            self._observations.failed()
            _fail(group, StoreUnavailable(self._store.location, "a commit failed"))

    def _commit(self, group: list[Submission]) -> None:
        together: dict[tuple[bytes, int], list[Submission]] = {}
        for one in group:
            together.setdefault((one.metric.digest, one.round), []).append(one)
        tables = [_Table(members) for members in together.values()]
        # Nonsense costs no flush of the disk, and leaves no round behind.
        for table in tables:
            if not table.n:
                table.settle(np.zeros(0, np.bool_))
        tables = [table for table in tables if table.n]
        if not tables:
            return
        batches = [table.batch() for table in tables]
        began = time.monotonic()
        committed = self._store.commit(batches, now=self._clock())
        self._seconds += _NEWEST * (time.monotonic() - began - self._seconds)
        for table, new in zip(tables, committed.new, strict=True):
            table.settle(new)
        if self._observations.failing_since is not None:
            _log.warning("reports are counted again")
        self._observations.committed()
        if committed.published:
            self._announcements.announce()


class _Table:
    """All reports of one metric and round that are committed together, in the order they came."""

    def __init__(self, members: list[Submission]) -> None:
        first = members[0]
        self._members = members
        self._metric, self._round = first.metric, first.round
        joined = b"".join([one.opened for one in members])
        table = np.frombuffer(joined, np.uint8).reshape(-1, first.metric.report_size)
        self._canonical = first.metric.oracle.canonical(table[:, REPORT_ID_BYTES:])
        self._table = table if self._canonical.all() else table[self._canonical]

    @property
    def n(self) -> int:
        """How many reports of it a device can have made."""
        return len(self._table)

    def batch(self) -> Batch:
        """What is counted of it."""
        oracle, retain = self._metric.oracle, self._metric.metric.retain
        return Batch(
            digest=self._metric.digest,
            round=self._round,
            ids=self._ids(),
            fold=lambda new: oracle.fold(self._payloads(new)),
            retain=(lambda new: self._payloads(new).tobytes()) if retain else None,
            plain=self._plain(),
        )

    def settle(self, new: NDArray[np.bool_] | None) -> None:
        """Tell everybody what became of their reports, given which were new; None: closed."""
        codes = None
        if new is not None:
            statuses = np.full(len(self._canonical), _NOT_CANONICAL)
            statuses[self._canonical] = np.where(new, _COUNTED, _DUPLICATE)
            codes = statuses.tobytes()
        start = 0
        for one in self._members:
            end = start + one.n
            one.settle(None if codes is None else codes[start:end])
            start = end

    def _ids(self) -> Ids:
        ids = np.ascontiguousarray(self._table[:, :REPORT_ID_BYTES])
        return ids.view(np.uint64)

    def _payloads(self, new: NDArray[np.bool_]) -> Payloads:
        table = self._table if new.all() else self._table[new]
        return np.ascontiguousarray(table[:, REPORT_ID_BYTES:])

    def _plain(self) -> NDArray[np.bool_] | None:
        if not any(one.plain for one in self._members):
            return None
        plain = np.repeat([one.plain for one in self._members], [one.n for one in self._members])
        return plain[self._canonical]


def _fail(group: list[Submission], error: StoreError) -> None:
    for one in group:
        one.fail(error)
