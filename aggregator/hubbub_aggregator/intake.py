"""Intake: open, check, commit, answer.

Checks come in the order of what they cost, so that nonsense is refused before anything is
decrypted. A request that is wrong as a whole raises ReportsRefused; else every report gets a
status of its own, and an answer means that it is durable.
"""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hubbub.limits import MAX_REPORTS_PER_REQUEST, REPORT_ID_BYTES
from hubbub.sealing import context, overhead
from hubbub.v1 import report_pb2
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric, RoundState
from hubbub_aggregator.committer import Committer, Reports
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.keys import OpeningKey
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.refusals import ReportsRefused
from hubbub_aggregator.store import StoreError

# Sealed bytes in hand at once: sixteen of the largest requests, and memory for them.
MAX_BYTES_IN_HAND: Final = 64 << 20

_COUNTED: Final = report_pb2.REPORT_STATUS_COUNTED
_DUPLICATE: Final = report_pb2.REPORT_STATUS_DUPLICATE
_NOT_OPENED: Final = report_pb2.REPORT_STATUS_NOT_OPENED
_NOT_CANONICAL: Final = report_pb2.REPORT_STATUS_NOT_CANONICAL

Statuses = list[report_pb2.ReportStatus.ValueType]


class Intake:
    """Counts sealed reports. Safe to use from many threads."""

    def __init__(
        self,
        catalogue: Catalogue,
        keys: Mapping[bytes, OpeningKey],
        committer: Committer,
        counters: Counters,
        clock: Callable[[], float],
        *,
        max_bytes_in_hand: int = MAX_BYTES_IN_HAND,
        observations: Observations | None = None,
    ) -> None:
        """`keys` are those that the bundle in force lists, by key id."""
        self._catalogue = catalogue
        self._keys = keys
        self._committer = committer
        self._counters = counters
        self._clock = clock
        self._max_bytes_in_hand = max_bytes_in_hand
        self._observations = observations or Observations(clock)
        self._bytes_in_hand = 0
        self._lock = threading.Lock()
        # Rounds the store has refused; none ever opens again. It has the last word, this
        # only saves opening reports in vain.
        self._closed: set[tuple[bytes, int]] = set()

    @property
    def bytes_in_hand(self) -> int:
        """Sealed bytes of the requests that are being answered."""
        return self._bytes_in_hand

    def submit(self, request: report_pb2.SubmitReportsRequest) -> Statuses:
        """Count a request's reports: a status each. Raises ReportsRefused."""
        try:
            metric = self._known_metric(request.digest)
            self._require_open(metric, request.round)
            key = self._known_key(request.key_id)
            n = _number_of_reports(metric, key, len(request.sealed))
            with self._in_hand(len(request.sealed)):
                statuses = self._count(metric, key, request, n)
        except ReportsRefused as refused:
            self._counters.add(report_pb2.RefusalReason.Name(refused.reason))
            raise
        for status in set(statuses):
            self._counters.add(report_pb2.ReportStatus.Name(status), statuses.count(status))
        return statuses

    def _known_metric(self, digest: bytes) -> CataloguedMetric:
        metric = self._catalogue.by_digest.get(digest)
        if metric is None:
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_UNKNOWN_DIGEST, "no metric has this digest"
            )
        return metric

    def _require_open(self, metric: CataloguedMetric, number: int) -> None:
        if not metric.has_round(number):
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_NO_SUCH_ROUND,
                f"the schedule has {metric.which_rounds}, not {number}",
            )
        state = metric.state(number, self._clock())
        if state is RoundState.NOT_OPEN:
            opens = datetime.fromtimestamp(metric.metric.schedule.window(number).opens, UTC)
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_ROUND_NOT_OPEN,
                f"round {number} takes reports from {opens:%Y-%m-%d %H:%M:%S} UTC",
            )
        if state is RoundState.CLOSED or (metric.digest, number) in self._closed:
            raise _closed(number)

    def _known_key(self, key_id: bytes) -> OpeningKey:
        key = self._keys.get(key_id)
        if key is None:
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_UNKNOWN_KEY,
                "the bundle in force does not list this sealing key; seal again to one it lists",
            )
        return key

    @contextmanager
    def _in_hand(self, size: int) -> Generator[None]:
        """Hold `size` sealed bytes, or refuse them while there are too many."""
        with self._lock:
            if self._bytes_in_hand + size > self._max_bytes_in_hand:
                raise ReportsRefused(
                    report_pb2.REFUSAL_REASON_OVERLOADED,
                    "more reports at once than this aggregator takes; send them again later",
                )
            self._bytes_in_hand += size
        try:
            yield
        finally:
            with self._lock:
                self._bytes_in_hand -= size

    def _count(
        self,
        metric: CataloguedMetric,
        key: OpeningKey,
        request: report_pb2.SubmitReportsRequest,
        n: int,
    ) -> Statuses:
        statuses: Statuses = [_NOT_OPENED] * n
        with self._observations.opens():
            opened = list(_open(metric, request, key))
        table = np.frombuffer(b"".join(report for _, report in opened), np.uint8)
        table = table.reshape(len(opened), REPORT_ID_BYTES + metric.oracle.payload_size)
        canonical = metric.oracle.canonical(table[:, REPORT_ID_BYTES:])
        for (place, _), good in zip(opened, canonical, strict=True):
            if not good:
                statuses[place] = _NOT_CANONICAL
        good_ones = list(compress(opened, canonical))
        if not good_ones:
            return statuses
        new = self._commit(
            Reports(
                metric=metric,
                round=request.round,
                ids=[report[:REPORT_ID_BYTES] for _, report in good_ones],
                payloads=table[canonical, REPORT_ID_BYTES:],
            )
        )
        for (place, _), is_new in zip(good_ones, new, strict=True):
            statuses[place] = _COUNTED if is_new else _DUPLICATE
        return statuses

    def _commit(self, reports: Reports) -> NDArray[np.bool_]:
        try:
            with self._observations.waits():
                new = self._committer.commit(reports)
        except StoreError:
            # What is wrong with the store is in the log, for the operator.
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_STORE_UNAVAILABLE,
                "nothing was counted, since the store cannot be written; send it again later",
            ) from None
        if new is None:
            self._closed.add((reports.metric.digest, reports.round))
            raise _closed(reports.round)
        return new


def _number_of_reports(metric: CataloguedMetric, key: OpeningKey, size: int) -> int:
    each = _sealed_size(metric, key)
    n, rest = divmod(size, each)
    if rest or not n:
        raise ReportsRefused(
            report_pb2.REFUSAL_REASON_WRONG_LENGTH,
            f"{size} bytes are not one or more reports of {each} bytes",
        )
    if n > MAX_REPORTS_PER_REQUEST:
        raise ReportsRefused(
            report_pb2.REFUSAL_REASON_TOO_MANY_REPORTS,
            f"{n} reports are more than the {MAX_REPORTS_PER_REQUEST:,} a request may hold",
        )
    return n


def _sealed_size(metric: CataloguedMetric, key: OpeningKey) -> int:
    return REPORT_ID_BYTES + metric.oracle.payload_size + overhead(key.suite)


def _open(
    metric: CataloguedMetric, request: report_pb2.SubmitReportsRequest, key: OpeningKey
) -> Iterator[tuple[int, bytes]]:
    """Place and plaintext of every report that opens."""
    info = context(metric.digest, request.round, key.key_id)
    sealed, size = request.sealed, _sealed_size(metric, key)
    for place, start in enumerate(range(0, len(sealed), size)):
        report = key.open(info, sealed[start : start + size])
        if report is not None:
            yield place, report


def _closed(number: int) -> ReportsRefused:
    return ReportsRefused(
        report_pb2.REFUSAL_REASON_ROUND_CLOSED, f"round {number} takes no more reports"
    )
