"""EstimateService: what analysts read, from snapshots alone."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import grpc

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric, RoundState
from hubbub_aggregator.listeners import PRIVATE_THREADS
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.records import TARGETS
from hubbub_aggregator.refusals import Refused, answering
from hubbub_aggregator.services.candidates import Decoder
from hubbub_aggregator.services.figures import epsilon_of, figures
from hubbub_aggregator.services.lookup import find_metric
from hubbub_aggregator.services.pooling import Pooling
from hubbub_aggregator.services.queries import (
    Side,
    differences,
    pairs_of,
    query_figures,
    weights_of,
)
from hubbub_aggregator.services.questions import STATES, Question, Questions, View
from hubbub_aggregator.services.turns import Turns
from hubbub_aggregator.store import Store

# Each watcher holds a handler thread of the private listener; half of them stay free.
MAX_WATCHERS: Final = PRIVATE_THREADS // 2

# The newest rounds of a metric that a list holds: of a million, all would not fit a message.
MAX_ROUNDS_LISTED: Final = 100

# How often a watcher looks whether its caller is still there, seconds.
_LOOK: Final = 1.0


class EstimateService(estimate_pb2_grpc.EstimateServiceServicer):
    def __init__(
        self,
        catalogue: Catalogue,
        store: Store,
        announcements: Announcements,
        clock: Callable[[], float],
        *,
        publish_step: int,
        started: float,
    ) -> None:
        """`started`: when the process began, seconds since 1970-01-01 UTC."""
        self._catalogue = catalogue
        self._store = store
        self._questions = Questions(catalogue, store, clock)
        self._announcements = announcements
        self._clock = clock
        self._publish_step = publish_step
        self._started = started
        self._decoder = Decoder(store)
        self._pooling = Pooling(store, self._questions)
        self._comparing = Turns("comparison", patience=5.0)
        self._watchers = 0
        self._lock = threading.Lock()

    def ListMetrics(
        self, request: estimate_pb2.ListMetricsRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.ListMetricsResponse:
        with answering(context):
            metrics = self._catalogue.by_name.values()
            return estimate_pb2.ListMetricsResponse(
                metrics=map(self._summary, metrics), started=self._started
            )

    def GetContract(
        self, request: estimate_pb2.GetContractRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.GetContractResponse:
        with answering(context):
            metric = find_metric(self._catalogue, request.metric)
            return estimate_pb2.GetContractResponse(contract=metric.metric.contract)

    def GetEstimates(
        self, request: estimate_pb2.GetEstimatesRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.GetEstimatesResponse:
        with answering(context):
            question = self._questions.question(request, request.target, request.level)
            view = self._questions.view(question)
            return estimate_pb2.GetEstimatesResponse(estimates=self._answer(question, view))

    def WatchEstimates(
        self, request: estimate_pb2.WatchEstimatesRequest, context: grpc.ServicerContext
    ) -> Iterator[estimate_pb2.WatchEstimatesResponse]:
        with answering(context), self._watching():
            question = self._questions.question(request, request.target, request.level)
            for view in self._changes(question, context):
                yield estimate_pb2.WatchEstimatesResponse(estimates=self._answer(question, view))

    def Query(
        self, request: estimate_pb2.QueryRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.QueryResponse:
        with answering(context):
            question = self._questions.question(request, request.target, request.level)
            weights = weights_of(question.metric, request.weights)
            view = self._questions.view(question)
            return estimate_pb2.QueryResponse(
                provenance=_provenance(question, view),
                target=TARGETS[question.target],
                level=question.level,
                **query_figures(
                    question.metric, view.snapshot, weights, question.target, question.level
                ),
            )

    def Compare(
        self, request: estimate_pb2.CompareRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.CompareResponse:
        with answering(context):
            left = self._questions.question(request.left, request.target, request.level)
            right = self._questions.question(request.right, request.target, request.level)
            same = left == right
            pairs = pairs_of(left.metric, right.metric, request.pairs, same=same)
            left_view = self._questions.view(left)
            # One look at one round: a later one might find a newer snapshot.
            right_view = left_view if same else self._questions.view(right)
            with self._comparing.taken():
                found = differences(
                    Side(left.metric, left_view.snapshot),
                    Side(right.metric, right_view.snapshot),
                    pairs,
                    left.target,
                    left.level,
                    same=same,
                )
            return estimate_pb2.CompareResponse(
                left=_provenance(left, left_view),
                right=_provenance(right, right_view),
                target=TARGETS[left.target],
                level=left.level,
                differences=found,
            )

    def Pool(
        self, request: estimate_pb2.PoolRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.PoolResponse:
        with answering(context):
            return self._pooling.answer(self._questions.span(request))

    def Decode(
        self, request: estimate_pb2.DecodeRequest, context: grpc.ServicerContext
    ) -> estimate_pb2.DecodeResponse:
        with answering(context):
            question = self._questions.question(request, request.target, request.level)
            view = self._questions.view(question)
            values = self._decoder.figures(
                question.metric,
                question.round,
                view.snapshot,
                request.candidates,
                closed=view.state is RoundState.CLOSED,
                target=question.target,
                level=question.level,
                wanted=context.is_active,
            )
            return estimate_pb2.DecodeResponse(estimates=self._estimates(question, view, values))

    def _changes(self, question: Question, context: grpc.ServicerContext) -> Iterator[View]:
        """What there is now, then every change, until the round has closed."""
        shown = None
        while context.is_active():
            seen = self._announcements.count
            view = self._questions.view(question)
            if (view.state, view.n) != shown:
                shown = (view.state, view.n)
                yield view
            if view.state is RoundState.CLOSED:
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

    def _answer(self, question: Question, view: View) -> estimate_pb2.Estimates:
        values = figures(
            question.metric,
            view.snapshot,
            closed=view.state is RoundState.CLOSED,
            target=question.target,
            level=question.level,
        )
        return self._estimates(question, view, values)

    def _estimates(
        self, question: Question, view: View, values: Sequence[estimate_pb2.ValueEstimate]
    ) -> estimate_pb2.Estimates:
        return estimate_pb2.Estimates(
            **_source(question, view),
            kind="unbiased",
            target=TARGETS[question.target],
            level=question.level,
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
            epsilon=epsilon_of(metric),
            values=metric.metric.domain.labels,
            listed=metric.listed,
            rounds=[self._questions.summary(metric, number, known.get(number)) for number in begun],
        )


def _provenance(question: Question, view: View) -> estimate_pb2.Provenance:
    return estimate_pb2.Provenance(**_source(question, view))


def _source(question: Question, view: View) -> dict[str, Any]:
    """Where figures come from, by the names that it has in every answer."""
    metric = question.metric
    return {
        "metric": metric.metric.name,
        "digest": metric.digest,
        "round": question.round,
        "state": STATES[view.state],
        "n": view.n,
        "plain": view.plain,
        "mechanism": metric.metric.mechanism.name,
        "epsilon": epsilon_of(metric),
        "as_of": view.as_of,
    }
