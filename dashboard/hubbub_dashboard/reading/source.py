"""Where the page's figures come from: the aggregator's private listener.

However many viewers there are, the catalogue is asked for at most once per `max_age`, and a
round's figures only when the catalogue says that they changed, or that another aggregator answers.
While it is not answered, nothing is asked that it lists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message

from hubbub.contract import Metric as Contract
from hubbub.contract import parse_metric
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.records import TARGETS
from hubbub_aggregator.status_record import status_record
from hubbub_dashboard.health.history import Sample, extended, sample
from hubbub_dashboard.over_time.figures import Changes, Shares, changes_of, shares_of
from hubbub_dashboard.reading.answers import (
    Comparison,
    Estimates,
    Metric,
    Round,
    RoundOf,
    RoundState,
    Side,
    Target,
    comparison_of,
    estimates_of,
)
from hubbub_dashboard.reading.memory import Memory, Reading, Unanswered

# Long enough for 65,536 values on a busy machine, short enough for a person who waits.
_TIMEOUT: Final = 3.0

# Of a whole series of rounds, where a call about very many values may take its time.
_LONG_TIMEOUT: Final = 20.0

# What is kept, so that browsing ten years of days keeps memory flat: values of all snapshots, each
# some 400 bytes, and of all comparisons. An answer without values weighs as much as some with.
_MAX_VALUES: Final = 250_000
_EMPTY: Final = 1_000
# Of what has no values.
_MAX_KEPT: Final = 64

# Of a series of rounds: values of all of them that are kept as arrays, some 32 bytes each. What is
# kept besides weighs as much as some values.
_MAX_FIGURES: Final = 1_000_000
_ARRAYS: Final = 50

T = TypeVar("T")

Pairs = tuple[tuple[str, str], ...]
"""Labels of values, on the left and on the right."""


# By identity, as snapshots.
@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AggregatorStatus:
    """How the aggregator is doing, and what came to it lately."""

    record: Mapping[str, Any]
    """As `hubbub status --format json` prints it."""
    history: tuple[Sample, ...]
    """Ends with this status."""


class Source:
    """Reads one aggregator, for all viewers of this process. Thread-safe."""

    def __init__(
        self, channel: grpc.Channel, *, max_age: float, clock: Callable[[], float]
    ) -> None:
        """Read through `channel`; an answer younger than `max_age` seconds is given again."""
        self._stub = estimate_pb2_grpc.EstimateServiceStub(channel)
        self._admin = estimate_pb2_grpc.AdminServiceStub(channel)

        def memory(most: int, weigh: Callable[[Any], int] = lambda _: 1) -> Memory[Any, Any]:
            return Memory(most=most, max_age=max_age, clock=clock, weigh=weigh)

        # Of the aggregators that have answered: those of one store may take turns.
        self._starts: set[float] = set()
        self._metrics: Memory[None, tuple[Metric, ...]] = memory(1)
        self._domains: dict[bytes, tuple[str, ...]] = {}
        self._contracts: Memory[bytes, Contract] = memory(_MAX_KEPT)
        self._estimates: Memory[tuple[bytes, int, Target], Estimates] = memory(
            _MAX_VALUES, lambda found: _EMPTY + len(found.values)
        )
        self._comparisons: Memory[tuple[bytes, bytes, bytes], Comparison] = memory(
            _MAX_VALUES, lambda found: _EMPTY + len(found.differences)
        )
        self._shares: Memory[object, Shares] = memory(
            _MAX_FIGURES, lambda found: _ARRAYS + found.size
        )
        self._changes: Memory[object, Changes] = memory(
            _MAX_FIGURES, lambda found: _ARRAYS + found.size
        )
        self._statuses: Memory[None, AggregatorStatus] = memory(1)
        self._history: tuple[Sample, ...] = ()

    def metrics(self) -> Reading[tuple[Metric, ...]]:
        """Return the catalogue."""
        return self._metrics.read(None, self._list_metrics)

    def contract(self, metric: Metric) -> Reading[Contract]:
        """Return what a metric's bytes say, and prove; they never change.

        Raises MalformedBundle or InvalidContract where a device would refuse them.
        """
        return self._contracts.read(
            metric.digest,
            self._after_catalogue(lambda: self._get_contract(metric)),
            lambda contract: contract.digest == metric.digest,
        )

    def estimates(
        self, metric: Metric, round_: Round, target: Target = Target.RESPONDENTS
    ) -> Reading[Estimates]:
        """Return the newest snapshot of a round, both as the catalogue has them."""
        return self._estimates.read(
            (metric.digest, round_.number, target),
            self._after_catalogue(lambda: self._get_estimates(metric, round_.number, target)),
            lambda estimates: _is_of(estimates, round_),
        )

    def comparison(
        self,
        left: RoundOf,
        right: RoundOf,
        pairs: Pairs = (),
        target: Target = Target.RESPONDENTS,
        level: float = 0.0,
    ) -> Reading[Comparison]:
        """Return what differs; without `pairs`, of every value with itself.

        `level`: the probability that the simultaneous intervals cover, in (0, 1); 0: 0.95.
        """
        request = _compare_request(left, right, pairs, target, level)
        return self._comparisons.read(
            # The request names metrics, and another aggregator may know others by the same names.
            (
                left.metric.digest,
                right.metric.digest,
                request.SerializeToString(deterministic=True),
            ),
            self._after_catalogue(
                lambda: comparison_of(
                    _compared(self._stub.Compare(request, timeout=_TIMEOUT), left, right)
                )
            ),
            lambda found: _is_of(found.left, left.round) and _is_of(found.right, right.round),
        )

    def shares(self, metric: Metric, round_: Round, target: Target) -> Reading[Shares]:
        """Return the newest snapshot of a round as `estimates` does, for one round of many."""
        request = _estimates_request(metric.name, round_.number, target)
        return self._shares.read(
            (metric.digest, round_.number, target),
            self._after_catalogue(
                lambda: shares_of(
                    _estimated(self._patiently(self._stub.GetEstimates, request), metric)
                )
            ),
            lambda shares: _is_of(shares, round_),
        )

    def changes(
        self, metric: Metric, before: Round, after: Round, target: Target, level: float
    ) -> Reading[Changes]:
        """Return what changed between two rounds as `comparison` does, for one step of many."""
        later, earlier = RoundOf(metric, after), RoundOf(metric, before)
        request = _compare_request(later, earlier, (), target, level)
        return self._changes.read(
            (metric.digest, before.number, after.number, target, level),
            self._after_catalogue(
                lambda: changes_of(
                    _compared(self._patiently(self._stub.Compare, request), later, earlier)
                )
            ),
            lambda found: (
                (found.before, found.after) == ((before.state, before.n), (after.state, after.n))
            ),
        )

    def status(self) -> Reading[AggregatorStatus]:
        """Return how the aggregator is doing."""
        return self._statuses.read(None, self._get_status)

    def last_status(self) -> Reading[AggregatorStatus]:
        """Return the same, without asking again while the catalogue is not answered."""
        return self._statuses.last(None) if self.metrics().failure else self.status()

    def _after_catalogue(self, ask: Callable[[], T]) -> Callable[[], T]:
        """Ask only if the catalogue is answered: who waited for that in vain need not wait more."""

        def asking() -> T:
            self._require_catalogue()
            return ask()

        return asking

    def _require_catalogue(self) -> None:
        failure = self.metrics().failure
        if failure is not None:
            raise Unanswered(failure)

    def _patiently(self, call: Any, request: Message) -> Any:
        """Give a call the time that many values take, while the catalogue is answered meanwhile."""
        answer = call.future(request, timeout=_LONG_TIMEOUT)
        while True:
            try:
                return answer.result(timeout=_TIMEOUT)
            except grpc.FutureTimeoutError:
                try:
                    self._require_catalogue()
                except Unanswered:
                    answer.cancel()
                    raise

    def _list_metrics(self) -> tuple[Metric, ...]:
        answer = self._stub.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=_TIMEOUT)
        # Only here, and the memory lets one call at a time.
        if answer.started not in self._starts:
            self._starts.add(answer.started)
            # Its store may be another one, whose snapshots have the same numbers of reports.
            for memory in (self._estimates, self._comparisons, self._shares, self._changes):
                memory.doubt()
        return tuple(
            Metric(
                name=metric.name,
                question=metric.question,
                digest=metric.digest,
                values=self._domain(metric),
                rounds=tuple(
                    Round(round_.round, RoundState(round_.state), round_.n)
                    for round_ in metric.rounds
                ),
                source=metric.source,
            )
            for metric in answer.metrics
        )

    def _domain(self, metric: estimate_pb2.MetricSummary) -> tuple[str, ...]:
        """A metric's values, made once: there may be 65,536, and they come at every look."""
        domain = self._domains.get(metric.digest)
        if domain is None:
            domain = self._domains[metric.digest] = tuple(metric.values)
        return domain

    def _get_contract(self, metric: Metric) -> Contract:
        request = estimate_pb2.GetContractRequest(metric=metric.name)
        return parse_metric(self._stub.GetContract(request, timeout=_TIMEOUT).contract)

    def _get_estimates(self, metric: Metric, number: int, target: Target) -> Estimates:
        request = _estimates_request(metric.name, number, target)
        answer = self._stub.GetEstimates(request, timeout=_TIMEOUT)
        return estimates_of(_estimated(answer, metric))

    def _get_status(self) -> AggregatorStatus:
        answer = self._admin.GetStatus(estimate_pb2.GetStatusRequest(), timeout=_TIMEOUT)
        record = status_record(answer)
        # Only here, and the memory lets one call at a time.
        self._history = extended(self._history, sample(record))
        return AggregatorStatus(record, self._history)


def _estimates_request(
    metric: str, number: int, target: Target
) -> estimate_pb2.GetEstimatesRequest:
    return estimate_pb2.GetEstimatesRequest(
        metric=metric, round=number, target=TARGETS[target.value]
    )


def _compare_request(
    left: RoundOf, right: RoundOf, pairs: Pairs, target: Target, level: float
) -> estimate_pb2.CompareRequest:
    rounds = [
        estimate_pb2.RoundOfMetric(metric=side.metric.name, round=side.round.number)
        for side in (left, right)
    ]
    return estimate_pb2.CompareRequest(
        left=rounds[0],
        right=rounds[1],
        pairs=[estimate_pb2.ValuePair(left=one, right=other) for one, other in pairs],
        target=TARGETS[target.value],
        level=level,
    )


def _estimated(answer: estimate_pb2.GetEstimatesResponse, metric: Metric) -> estimate_pb2.Estimates:
    _require_contract(answer.estimates.digest, metric)
    return answer.estimates


def _compared(
    answer: estimate_pb2.CompareResponse, left: RoundOf, right: RoundOf
) -> estimate_pb2.CompareResponse:
    _require_contract(answer.left.digest, left.metric)
    _require_contract(answer.right.digest, right.metric)
    return answer


def _require_contract(digest: bytes, metric: Metric) -> None:
    # It was asked for by name, which may be that of another contract since the catalogue was read.
    if digest != metric.digest:
        raise Unanswered("its contract is another one now")


def _is_of(snapshot: Estimates | Side | Shares, round_: Round) -> bool:
    """Whether it is what the catalogue announces; snapshots of a round differ in n."""
    return (snapshot.state, snapshot.n) == (round_.state, round_.n)
