"""Intake: open, check, commit, answer.

Checks come in the order of what they cost, so that nonsense is refused before anything is
decrypted. A request that is wrong as a whole raises ReportsRefused; else every report gets a
status of its own, and an answer means that it is durable.

Requests of few reports are most of all, and wait for others longer than they take: so no thread
needs to stay with one of them.
"""

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np

from hubbub.limits import MAX_REPORTS_PER_REQUEST, REPORT_ID_BYTES
from hubbub.sealing import context, overhead
from hubbub.v1 import report_pb2
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric, RoundState
from hubbub_aggregator.committer import Committer
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.keys import OpeningKey
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.opening import MANY, Opening
from hubbub_aggregator.refusals import ReportsRefused
from hubbub_aggregator.sealed import Sealed
from hubbub_aggregator.store import StoreError
from hubbub_aggregator.submission import NotOpened, Submission

# Sealed bytes in hand at once: sixteen of the largest requests, and memory for them.
MAX_BYTES_IN_HAND: Final = 64 << 20

_NAMED: Final = report_pb2.ReportStatus.items()

Statuses = bytes
"""A ReportStatus of each report, a byte."""

Then = Callable[[Submission], object]
"""Is told that it is known what became of reports."""


class _Checked(NamedTuple):
    """What a request of reports is about."""

    metric: CataloguedMetric
    key: OpeningKey | None
    """What opens them; None: they are plain."""
    n: int


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
        observations: Observations,
        clock: Callable[[], float],
        take_plain: bool = False,
        max_bytes_in_hand: int = MAX_BYTES_IN_HAND,
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
        self._observations = observations
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
        # A lock, since an Event takes ten times as long.
        settled = threading.Lock()
        settled.acquire()
        with self._refusing():
            submission = self._hand_on(self._check(request), request, lambda _: settled.release())
        settled.acquire()
        return self.end(submission)

    def begin(self, request: report_pb2.SubmitReportsRequest, then: Then) -> bool:
        """Count a request's reports, and call `then` when `end` can tell what became of them.

        By whatever thread knows it. False: they are too many for a thread that has others to
        serve, and nothing is done; `submit` them. Raises ReportsRefused.
        """
        with self._refusing():
            checked = self._check(request)
            if checked.n >= MANY:
                return False
            self._hand_on(checked, request, then)
        return True

    def end(self, submission: Submission) -> Statuses:
        """What became of reports that are settled: a status each; once. Raises ReportsRefused."""
        with self._refusing():
            statuses = self._outcome(submission)
        for name, status in _NAMED:
            if count := statuses.count(status):
                self._counters.add(name, count)
        return statuses

    @contextmanager
    def _refusing(self) -> Generator[None]:
        try:
            yield
        except ReportsRefused as refused:
            self._counters.add(report_pb2.RefusalReason.Name(refused.reason))
            raise

    def _check(self, request: report_pb2.SubmitReportsRequest) -> _Checked:
        metric = self._known_metric(request.digest)
        self._require_open(metric, request.round)
        if request.ids or request.payloads:
            return self._check_plain(metric, request)
        key = self._known_key(request.key_id)
        size = metric.report_size + overhead(key.suite)
        return _Checked(metric, key, _require_whole(len(request.sealed), size))

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

    def _check_plain(
        self, metric: CataloguedMetric, request: report_pb2.SubmitReportsRequest
    ) -> _Checked:
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
        return _Checked(metric, None, n)

    def _hand_on(
        self,
        checked: _Checked,
        request: report_pb2.SubmitReportsRequest,
        then: Then,
    ) -> Submission:
        """Open and commit reports, now or later."""
        metric, key, n = checked
        held = len(request.sealed) + len(request.ids) + len(request.payloads)
        self._hold(held)
        try:
            plain = b"" if key else _reports(request, n, metric.report_size)
            submission = Submission(metric, request.round, then, plain, held)
            if key is None:
                self._committer.commit([submission])
            else:
                info = context(metric.digest, request.round, key.key_id)
                size = len(request.sealed) // n
                self._opening.open(submission, Sealed(key, info, request.sealed, size))
        except BaseException:
            self._let_go(held)
            raise
        return submission

    def _hold(self, size: int) -> None:
        """Keep `size` bytes of a request, or refuse them while there are too many."""
        with self._lock:
            if self._bytes_in_hand + size > self._max_bytes_in_hand:
                raise ReportsRefused(
                    report_pb2.REFUSAL_REASON_OVERLOADED,
                    "more reports at once than this aggregator takes; send them again later",
                )
            self._bytes_in_hand += size
        self._observations.begin_waiting()

    def _let_go(self, size: int) -> None:
        self._observations.end_waiting()
        with self._lock:
            self._bytes_in_hand -= size

    def _outcome(self, submission: Submission) -> Statuses:
        self._let_go(submission.held)
        try:
            statuses = submission.outcome()
        except (StoreError, NotOpened) as error:
            # What is wrong is in the log, for the operator.
            stored = isinstance(error, StoreError)
            why = "since the store cannot be written" if stored else "because of a fault here"
            raise ReportsRefused(
                report_pb2.REFUSAL_REASON_STORE_UNAVAILABLE,
                f"nothing was counted, {why}; send it again later",
            ) from None
        # What failed has no latency: it would look fast.
        self._observations.commits.add(time.perf_counter() - submission.began)
        if statuses is None:
            self._closed.add((submission.metric.digest, submission.round))
            raise _closed(submission.round)
        return statuses


def _reports(request: report_pb2.SubmitReportsRequest, n: int, size: int) -> bytes:
    """Id ‖ payload of each plain report, `size` bytes, back to back."""
    if n == 1:
        return request.ids + request.payloads
    table = np.empty((n, size), np.uint8)
    table[:, :REPORT_ID_BYTES] = np.frombuffer(request.ids, np.uint8).reshape(n, -1)
    table[:, REPORT_ID_BYTES:] = np.frombuffer(request.payloads, np.uint8).reshape(n, -1)
    return table.tobytes()


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
