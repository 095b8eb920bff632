"""Intake: open, check, commit, answer.

Checks come in the order of what they cost, so that nonsense is refused before anything is
decrypted. A request that is wrong as a whole raises ReportsRefused; else every report gets a
status of its own, and an answer means that it is durable.
"""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import numpy as np

from hubbub.limits import MAX_REPORTS_PER_REQUEST, REPORT_ID_BYTES
from hubbub.sealing import context, overhead
from hubbub.v1 import report_pb2
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric, RoundState
from hubbub_aggregator.committer import Committer
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.keys import OpeningKey
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.opening import Opening
from hubbub_aggregator.refusals import ReportsRefused
from hubbub_aggregator.sealed import Sealed
from hubbub_aggregator.store import StoreError
from hubbub_aggregator.submission import NotOpened, Submission

# Sealed bytes in hand at once: sixteen of the largest requests, and memory for them.
MAX_BYTES_IN_HAND: Final = 64 << 20

_NAMED: Final = report_pb2.ReportStatus.items()

Statuses = bytes
"""A ReportStatus of each report, a byte."""


class Intake:
    """Counts reports. Safe to use from many threads."""

    def __init__(
        self,
        catalogue: Catalogue,
        keys: Mapping[bytes, OpeningKey],
        opening: Opening,
        committer: Committer,
        *,
        counters: Counters,
        clock: Callable[[], float],
        take_plain: bool = False,
        max_bytes_in_hand: int = MAX_BYTES_IN_HAND,
        observations: Observations | None = None,
    ) -> None:
        """`keys` are those that the bundle in force lists, by key id.

        `take_plain`: whether reports may come unsealed, from whoever imports what devices
        randomised elsewhere.
        """
        self._catalogue = catalogue
        self._keys = keys
        self._opening = opening
        self._committer = committer
        self._counters = counters
        self._clock = clock
        self._take_plain = take_plain
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
            plain = bool(request.ids or request.payloads)
            with self._in_hand(len(request.sealed) + len(request.ids) + len(request.payloads)):
                statuses = (self._plain if plain else self._sealed)(metric, request)
        except ReportsRefused as refused:
            self._counters.add(report_pb2.RefusalReason.Name(refused.reason))
            raise
        for name, status in _NAMED:
            if count := statuses.count(status):
                self._counters.add(name, count)
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

    def _sealed(
        self, metric: CataloguedMetric, request: report_pb2.SubmitReportsRequest
    ) -> Statuses:
        key = self._known_key(request.key_id)
        size = metric.report_size + overhead(key.suite)
        _require_whole(len(request.sealed), size)
        info = context(metric.digest, request.round, key.key_id)
        submission = Submission(metric, request.round)
        self._opening.open(submission, Sealed(key, info, request.sealed, size))
        return self._outcome(submission)

    def _plain(
        self, metric: CataloguedMetric, request: report_pb2.SubmitReportsRequest
    ) -> Statuses:
        ids, payloads = request.ids, request.payloads
        if not self._take_plain:
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_PLAIN_NOT_TAKEN,
                "reports are taken sealed only; an aggregator started with --take-plain takes them "
                "as they are",
            )
        if request.sealed or request.key_id:
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_WRONG_LENGTH, "reports are either sealed or plain"
            )
        n = _require_whole(len(ids), REPORT_ID_BYTES)
        if len(payloads) != n * metric.oracle.payload_size:
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_WRONG_LENGTH,
                f"{len(payloads)} bytes are not {n} payloads of {metric.oracle.payload_size} bytes",
            )
        table = np.empty((n, metric.report_size), np.uint8)
        table[:, :REPORT_ID_BYTES] = np.frombuffer(ids, np.uint8).reshape(n, -1)
        table[:, REPORT_ID_BYTES:] = np.frombuffer(payloads, np.uint8).reshape(n, -1)
        submission = Submission(metric, request.round, table.tobytes())
        self._committer.commit([submission])
        return self._outcome(submission)

    def _outcome(self, submission: Submission) -> Statuses:
        """What became of it, when that is known. Raises ReportsRefused."""
        try:
            with self._observations.waits():
                statuses = submission.wait()
        except (StoreError, NotOpened) as error:
            # What is wrong is in the log, for the operator.
            stored = isinstance(error, StoreError)
            why = "since the store cannot be written" if stored else "because of a fault here"
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_STORE_UNAVAILABLE,
                f"nothing was counted, {why}; send it again later",
            ) from None
        if statuses is None:
            self._closed.add((submission.metric.digest, submission.round))
            raise _closed(submission.round)
        return statuses


def _require_whole(size: int, each: int) -> int:
    """How many reports of `each` bytes these are. Raises ReportsRefused."""
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


def _closed(number: int) -> ReportsRefused:
    return ReportsRefused(
        report_pb2.REFUSAL_REASON_ROUND_CLOSED, f"round {number} takes no more reports"
    )
