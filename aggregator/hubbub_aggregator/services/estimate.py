"""EstimateService: what analysts read, from snapshots alone."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric, RoundState
from hubbub_aggregator.listeners import PRIVATE_THREADS
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.refusals import Refused, answering
from hubbub_aggregator.services.candidates import Decoder
from hubbub_aggregator.services.figures import figures
from hubbub_aggregator.services.lookup import find_metric, require_round
from hubbub_aggregator.services.queries import (
    Side,
    differences,
    pairs_of,
    query_figures,
    weights_of,
)
from hubbub_aggregator.store import Snapshot, Store

if TYPE_CHECKING:
    from hubbub_aggregator.intervals import Target

DEFAULT_LEVEL: Final = 0.95

# Each watcher holds a handler thread of the private listener; half of them stay free.
MAX_WATCHERS: Final = PRIVATE_THREADS // 2

# The newest rounds of a metric that a list holds: of a million, all would not fit a message.
MAX_ROUNDS_LISTED: Final = 100

# How often a watcher looks whether its caller is still there, seconds.
_LOOK: Final = 1.0

_TARGETS: Final[dict[int, "Target"]] = {
    estimate_pb2.TARGET_RESPONDENTS: "respondents",
    estimate_pb2.TARGET_POPULATION: "population",
}
_STATES: Final = {
    RoundState.NOT_OPEN: estimate_pb2.ROUND_STATE_NOT_OPEN,
    RoundState.OPEN: estimate_pb2.ROUND_STATE_OPEN,
    RoundState.CLOSED: estimate_pb2.ROUND_STATE_CLOSED,
}


_NamesARound = (
    estimate_pb2.GetEstimatesRequest
    | estimate_pb2.WatchEstimatesRequest
    | estimate_pb2.QueryRequest
    | estimate_pb2.DecodeRequest
    | estimate_pb2.RoundOfMetric
)


@dataclass(frozen=True, slots=True)
class _Question:
    """A request, with its defaults filled in."""

    metric: CataloguedMetric
    round: int
    target: estimate_pb2.Target.ValueType
    level: float


class EstimateService(estimate_pb2_grpc.EstimateServiceServicer):
    def __init__(
        self,
        catalogue: Catalogue,
        store: Store,
        announcements: Announcements,
        clock: Callable[[], float],
        *,
        publish_step: int,
    ) -> None:
        self._catalogue = catalogue
        self._store = store
        self._announcements = announcements
        self._clock = clock
        self._publish_step = publish_step
        self._decoder = Decoder(store)
        self._watchers = 0
        self._lock = threading.Lock()

    def ListMetrics(
        self, request: estimate_pb2.ListMetricsRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.ListMetricsResponse:
        with answering(context):
            metrics = self._catalogue.by_name.values()
            return estimate_pb2.ListMetricsResponse(metrics=map(self._summary, metrics))

    def GetEstimates(
        self, request: estimate_pb2.GetEstimatesRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.GetEstimatesResponse:
        with answering(context):
            question = self._question(request, request.target, request.level)
            state, snapshot = self._read(question)
            return estimate_pb2.GetEstimatesResponse(
                estimates=self._answer(question, state, snapshot)
            )

    def WatchEstimates(
        self, request: estimate_pb2.WatchEstimatesRequest, context: grpc.ServicerContext
    ) -> Iterator[estimate_pb2.WatchEstimatesResponse]:
        with answering(context), self._watching():
            question = self._question(request, request.target, request.level)
            for state, snapshot in self._changes(question, context):
                yield estimate_pb2.WatchEstimatesResponse(
                    estimates=self._answer(question, state, snapshot)
                )

    def Query(
        self, request: estimate_pb2.QueryRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.QueryResponse:
        with answering(context):
            question = self._question(request, request.target, request.level)
            weights = weights_of(question.metric, request.weights)
            state, snapshot = self._read(question)
            target = _TARGETS[question.target]
            return estimate_pb2.QueryResponse(
                provenance=_provenance(question, state, snapshot),
                target=question.target,
                level=question.level,
                **query_figures(question.metric, snapshot, weights, target, question.level),
            )

    def Compare(
        self, request: estimate_pb2.CompareRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.CompareResponse:
        with answering(context):
            left = self._question(request.left, request.target, request.level)
            right = self._question(request.right, request.target, request.level)
            same = left == right
            pairs = pairs_of(left.metric, right.metric, request.pairs, same=same)
            left_state, left_snapshot = self._read(left)
            # One read for one round: a later one might find a newer snapshot.
            right_state, right_snapshot = (left_state, left_snapshot) if same else self._read(right)
            return estimate_pb2.CompareResponse(
                left=_provenance(left, left_state, left_snapshot),
                right=_provenance(right, right_state, right_snapshot),
                target=left.target,
                level=left.level,
                differences=differences(
                    Side(left.metric, left_snapshot),
                    Side(right.metric, right_snapshot),
                    pairs,
                    _TARGETS[left.target],
                    left.level,
                    same=same,
                ),
            )

    def Decode(
        self, request: estimate_pb2.DecodeRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.DecodeResponse:
        with answering(context):
            question = self._question(request, request.target, request.level)
            state, snapshot = self._read(question)
            values = self._decoder.figures(
                question.metric,
                question.round,
                snapshot,
                request.candidates,
                target=_TARGETS[question.target],
                level=question.level,
                wanted=context.is_active,
            )
            return estimate_pb2.DecodeResponse(
                estimates=self._estimates(question, state, snapshot, values)
            )

    def _changes(
        self, question: _Question, context: grpc.ServicerContext
    ) -> Iterator[tuple[RoundState, Snapshot | None]]:
        """What there is now, then every change, until the round has closed."""
        shown = None
        while context.is_active():
            seen = self._announcements.count
            state, snapshot = self._read(question)
            if (state, _n(snapshot)) != shown:
                shown = (state, _n(snapshot))
                yield state, snapshot
            if state is RoundState.CLOSED:
                return
            if self._announcements.ended:
                raise Refused(grpc.StatusCode.UNAVAILABLE, "the aggregator is stopping")
            self._announcements.wait(seen, _LOOK)

    @contextmanager
    def _watching(self) -> Generator[None]:
        with self._lock:
            if self._watchers >= MAX_WATCHERS:
                raise Refused(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"{MAX_WATCHERS} watch already, which is the most; use GetEstimates",
                )
            self._watchers += 1
        try:
            yield
        finally:
            with self._lock:
                self._watchers -= 1

    def _question(
        self, of: _NamesARound, target: estimate_pb2.Target.ValueType, level: float
    ) -> _Question:
        metric = find_metric(self._catalogue, of.metric)
        if of.HasField("round"):
            number = require_round(metric, of.round)
        else:
            number = self._default_round(metric)
        target = target or estimate_pb2.TARGET_RESPONDENTS
        if target not in _TARGETS:
            raise Refused(
                grpc.StatusCode.INVALID_ARGUMENT, "the target is respondents or population"
            )
        level = level or DEFAULT_LEVEL
        if not 0 < level < 1:
            raise Refused(
                grpc.StatusCode.INVALID_ARGUMENT, f"the level is between 0 and 1, not {level}"
            )
        return _Question(metric, number, target, level)

    def _default_round(self, metric: CataloguedMetric) -> int:
        newest = self._store.newest_published(metric.digest)
        if newest is None:
            newest = metric.newest_begun(self._clock())
        return newest or 0

    def _read(self, question: _Question) -> tuple[RoundState, Snapshot | None]:
        published = self._store.published(question.metric.digest, question.round)
        closed = None if published is None else published.closed
        snapshot = None if published is None else published.snapshot
        return self._state(question.metric, question.round, closed), snapshot

    def _state(self, metric: CataloguedMetric, number: int, closed: bool | None) -> RoundState:
        """`closed`: what the store says of the round, None if it knows none."""
        by_clock = metric.state(number, self._clock())
        if closed is None or by_clock is RoundState.NOT_OPEN:
            return by_clock
        # A round whose time is over is closed once its last reports are published.
        return RoundState.CLOSED if closed else RoundState.OPEN

    def _answer(
        self, question: _Question, state: RoundState, snapshot: Snapshot | None
    ) -> estimate_pb2.Estimates:
        target = _TARGETS[question.target]
        values = figures(question.metric, snapshot, target, question.level)
        return self._estimates(question, state, snapshot, values)

    def _estimates(
        self,
        question: _Question,
        state: RoundState,
        snapshot: Snapshot | None,
        values: Sequence[estimate_pb2.ValueEstimate],
    ) -> estimate_pb2.Estimates:
        metric = question.metric
        return estimate_pb2.Estimates(
            metric=metric.metric.name,
            digest=metric.digest,
            round=question.round,
            state=_STATES[state],
            n=_n(snapshot),
            mechanism=metric.metric.mechanism.name,
            epsilon=_epsilon(metric),
            kind="unbiased",
            target=question.target,
            level=question.level,
            as_of=0 if snapshot is None else snapshot.as_of,
            publish_step=self._publish_step,
            values=values,
        )

    def _summary(self, metric: CataloguedMetric) -> estimate_pb2.MetricSummary:
        newest = metric.newest_begun(self._clock())
        end = 0 if newest is None else newest + 1
        begun = range(max(0, end - MAX_ROUNDS_LISTED), end)
        known = self._store.rounds(metric.digest, begun)
        return estimate_pb2.MetricSummary(
            name=metric.metric.name,
            digest=metric.digest,
            question=metric.metric.question,
            source=metric.metric.source,
            mechanism=metric.metric.mechanism.name,
            epsilon=_epsilon(metric),
            values=metric.metric.domain.labels,
            listed=metric.listed,
            rounds=[self._round_summary(metric, number, known.get(number)) for number in begun],
        )

    def _round_summary(
        self, metric: CataloguedMetric, number: int, known: tuple[bool, int] | None
    ) -> estimate_pb2.RoundSummary:
        closed, n = (None, 0) if known is None else known
        state = self._state(metric, number, closed)
        return estimate_pb2.RoundSummary(round=number, state=_STATES[state], n=n)


def _provenance(
    question: _Question, state: RoundState, snapshot: Snapshot | None
) -> estimate_pb2.Provenance:
    return estimate_pb2.Provenance(
        metric=question.metric.metric.name,
        digest=question.metric.digest,
        round=question.round,
        state=_STATES[state],
        n=_n(snapshot),
        mechanism=question.metric.metric.mechanism.name,
        epsilon=_epsilon(question.metric),
        as_of=0 if snapshot is None else snapshot.as_of,
    )


def _n(snapshot: Snapshot | None) -> int:
    return 0 if snapshot is None else snapshot.tally.n


def _epsilon(metric: CataloguedMetric) -> estimate_pb2.Epsilon:
    return estimate_pb2.Epsilon(declared=metric.metric.epsilon.decimal, realised=metric.realised)
