"""Group commit: one thread makes durable whatever waits, all of it at once.

A commit starts when the last one ends, and there is no timer: alone, a request waits for
one flush of the disk; among many, it shares one with all that came meanwhile.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.oracles import Payloads
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.store import Batch, Store, StoreError, StoreUnavailable

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Reports:
    """Opened, canonical reports of one request, and what became of them."""

    metric: CataloguedMetric
    round: int
    ids: list[bytes]
    payloads: Payloads
    done: threading.Event = field(default_factory=threading.Event)
    new: NDArray[np.bool_] | None = None
    """Which were counted for the first time; None: the round is closed."""
    error: StoreError | None = None


class Committer:
    """The only thread of this process that counts."""

    def __init__(
        self, store: Store, announcements: Announcements, clock: Callable[[], float]
    ) -> None:
        self._store = store
        self._announcements = announcements
        self._clock = clock
        self._condition = threading.Condition()
        self._waiting: list[Reports] = []
        self._closing = False
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    def commit(self, reports: Reports) -> NDArray[np.bool_] | None:
        """Return when the reports are durable: which are new, or None for a closed round.

        Raises StoreError if nothing was counted.
        """
        with self._condition:
            if self._closing:
                raise StoreUnavailable(self._store.location, "the aggregator is stopping")
            self._waiting.append(reports)
            self._condition.notify()
        reports.done.wait()
        if reports.error is not None:
            raise reports.error
        return reports.new

    def close(self) -> None:
        """Commit what waits, then stop."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._waiting or self._closing)
                group, self._waiting = self._waiting, []
            if not group:
                return
            try:
                self._commit(group)
            except StoreError as error:
                self._report_failure(str(error))
                _fail(group, error)
            except Exception:
                # A fault in one commit must not leave every later caller waiting for ever.
                _log.exception("a commit failed")
                _fail(group, StoreUnavailable(self._store.location, "a commit failed"))
            else:
                self._report_recovery()

    def _report_failure(self, sentence: str) -> None:
        # Once, not with every group: a log may be on the very disk that is full.
        if not self._failing:
            _log.error("nothing is counted now: %s", sentence)
        self._failing = True

    def _report_recovery(self) -> None:
        if self._failing:
            _log.warning("reports are counted again")
        self._failing = False

    def _commit(self, group: list[Reports]) -> None:
        together: dict[tuple[bytes, int], list[Reports]] = {}
        for reports in group:
            together.setdefault((reports.metric.digest, reports.round), []).append(reports)
        batches = [_batch(members) for members in together.values()]
        committed = self._store.commit(batches, now=self._clock())
        for members, new in zip(together.values(), committed.new, strict=True):
            _share(members, new)
        if committed.published:
            self._announcements.announce()


def _batch(members: list[Reports]) -> Batch:
    """All reports of one metric and round, in the order they came."""
    round_number, metric = members[0].round, members[0].metric
    payloads = np.concatenate([reports.payloads for reports in members])
    return Batch(
        digest=metric.digest,
        round=round_number,
        ids=[report_id for reports in members for report_id in reports.ids],
        fold=lambda new: metric.oracle.fold(payloads[new]),
        retain=(lambda new: _unordered(payloads[new])) if metric.metric.retain else None,
    )


def _unordered(payloads: Payloads) -> bytes:
    """Back to back, sorted, so that nothing tells which came first."""
    whole = np.ascontiguousarray(payloads).view(f"V{payloads.shape[1]}")
    return np.sort(whole, axis=None).tobytes()


def _share(members: list[Reports], new: NDArray[np.bool_] | None) -> None:
    start = 0
    for reports in members:
        end = start + len(reports.ids)
        reports.new = None if new is None else new[start:end]
        start = end
        reports.done.set()


def _fail(group: list[Reports], error: StoreError) -> None:
    for reports in group:
        reports.error = error
        reports.done.set()
