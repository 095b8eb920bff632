"""Snapshots from the aggregator's private listener, as plain frozen data.

However many viewers there are, the catalogue is asked for at most once per `max_age`, and a
round's estimates only when the catalogue says that they changed. When the aggregator does not
answer, the last good answer stays, with the time it is from.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Generic, TypeVar

import grpc

from hubbub.v1 import estimate_pb2, estimate_pb2_grpc
from hubbub_aggregator.records import TARGETS, target_name
from hubbub_aggregator.status_record import status_record
from hubbub_dashboard.history import Sample, extended, sample

# Long enough for 65,536 values on a busy machine, short enough for a person who waits.
_TIMEOUT: Final = 3.0

# How many metrics and rounds are kept, so that browsing ten years of days keeps memory flat.
_MAX_KEPT: Final = 64


class Target(Enum):
    """Whose shares they are."""

    RESPONDENTS = "respondents"
    POPULATION = "population"


class RoundState(Enum):
    """Where a round stands."""

    NOT_OPEN = estimate_pb2.ROUND_STATE_NOT_OPEN
    OPEN = estimate_pb2.ROUND_STATE_OPEN
    CLOSED = estimate_pb2.ROUND_STATE_CLOSED


@dataclass(frozen=True, slots=True)
class Epsilon:
    """Decimal text: what a report is charged, and the exact worst case of its integers."""

    declared: str
    realised: str


@dataclass(frozen=True, slots=True)
class Round:
    """A round that has opened."""

    number: int
    state: RoundState
    n: int
    """Reports in its newest snapshot; 0: it has none yet."""


# Before a metric's first round opens, this stands for it.
_UNOPENED: Final = Round(0, RoundState.NOT_OPEN, 0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the catalogue."""

    name: str
    question: str
    rounds: tuple[Round, ...]
    """Rounds that have opened, oldest first."""

    @property
    def newest(self) -> Round:
        """The newest round that has a snapshot, else the newest that has opened."""
        published = [round_ for round_ in self.rounds if round_.n]
        return (published or self.rounds or (_UNOPENED,))[-1]


@dataclass(frozen=True, slots=True)
class Value:
    """One value's figures: shares (1 = everybody), never clipped."""

    label: str
    count: int
    estimate: float
    std_error: float
    low: float
    high: float
    simultaneous_low: float
    simultaneous_high: float
    rank_low: int
    rank_high: int
    influence: float
    """How far one hostile report moves the estimate."""
    consistent: float
    """The nearest share that is one of a whole: none below zero, all together everybody."""
    found: bool
    """Whether it may be called present: while the round is open, however often one looks."""


# Compared and hashed by identity: what is computed from a snapshot is kept under it, and
# hashing 65,536 values at every look would cost more than computing it again.
@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """One snapshot of one round."""

    metric: str
    digest: bytes
    round: int
    state: RoundState
    n: int
    """Reports in it; 0: there is no snapshot."""
    mechanism: str
    epsilon: Epsilon
    level: float
    """Probability that an interval covers."""
    as_of: float
    """Seconds since 1970-01-01 UTC."""
    publish_step: int
    values: tuple[Value, ...]
    """In the domain's order; empty if n = 0, or if the domain is open and lists none."""
    plain: int = 0
    """How many of the reports came unsealed."""
    target: Target = Target.RESPONDENTS
    message: estimate_pb2.Estimates = field(default_factory=estimate_pb2.Estimates, repr=False)
    """All of it, as it came."""


# By identity, as snapshots.
@dataclass(frozen=True, slots=True, eq=False)
class AggregatorStatus:
    """How the aggregator is doing, and what came to it lately."""

    record: Mapping[str, Any]
    """As `hubbub status --format json` prints it."""
    history: tuple[Sample, ...]
    """Ends with this status."""


T = TypeVar("T")


# No slots: a generic class that is frozen and has them cannot be made under its full name.
@dataclass(frozen=True)
class Reading(Generic[T]):
    """The last good answer, and whether the aggregator still gives one."""

    value: T | None = None
    answered: float | None = None
    """When the last good answer came, seconds UTC; None: there never was one."""
    asked: float | None = None
    """When it was last asked for, successfully or not."""
    failure: str | None = None
    """Why the last call failed; None: it did not."""


class Source:
    """Reads one aggregator, for all viewers of this process. Thread-safe."""

    def __init__(
        self, channel: grpc.Channel, *, max_age: float, clock: Callable[[], float]
    ) -> None:
        """Read through `channel`; an answer younger than `max_age` seconds is given again."""
        self._stub = estimate_pb2_grpc.EstimateServiceStub(channel)
        self._admin = estimate_pb2_grpc.AdminServiceStub(channel)
        self._max_age = max_age
        self._clock = clock
        self._lock = threading.Lock()
        self._metrics: Reading[tuple[Metric, ...]] = Reading()
        self._estimates: dict[tuple[str, int, Target], Reading[Estimates]] = {}
        self._status: Reading[AggregatorStatus] = Reading()

    def metrics(self) -> Reading[tuple[Metric, ...]]:
        """Return the catalogue."""
        with self._lock:
            self._metrics = self._refreshed(self._metrics, self._list_metrics)
            return self._metrics

    def estimates(
        self, metric: Metric, round_: Round, target: Target = Target.RESPONDENTS
    ) -> Reading[Estimates]:
        """Return the newest snapshot of a round, both as the catalogue has them."""
        key = (metric.name, round_.number, target)
        with self._lock:
            reading = self._estimates.pop(key, Reading())
            if not _is_of(reading.value, round_):
                reading = self._refreshed(reading, lambda: self._get_estimates(*key))
            # Taken out and put in again, so that the first is the one not used for longest.
            self._estimates[key] = reading
            if len(self._estimates) > _MAX_KEPT:
                del self._estimates[next(iter(self._estimates))]
            return reading

    def status(self) -> Reading[AggregatorStatus]:
        """Return how the aggregator is doing."""
        with self._lock:
            self._status = self._refreshed(self._status, self._get_status)
            return self._status

    def _refreshed(self, kept: Reading[T], ask: Callable[[], T]) -> Reading[T]:
        now = self._clock()
        if kept.asked is not None and 0 <= now - kept.asked < self._max_age:
            return kept
        try:
            return Reading(ask(), answered=now, asked=now)
        except grpc.RpcError as error:
            return Reading(kept.value, kept.answered, now, _code(error))

    def _list_metrics(self) -> tuple[Metric, ...]:
        answer = self._stub.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=_TIMEOUT)
        return tuple(
            Metric(
                name=metric.name,
                question=metric.question,
                rounds=tuple(
                    Round(round_.round, RoundState(round_.state), round_.n)
                    for round_ in metric.rounds
                ),
            )
            for metric in answer.metrics
        )

    def _get_estimates(self, metric: str, number: int, target: Target) -> Estimates:
        request = estimate_pb2.GetEstimatesRequest(
            metric=metric, round=number, target=TARGETS[target.value]
        )
        return _estimates(self._stub.GetEstimates(request, timeout=_TIMEOUT).estimates)

    def _get_status(self) -> AggregatorStatus:
        answer = self._admin.GetStatus(estimate_pb2.GetStatusRequest(), timeout=_TIMEOUT)
        record, kept = status_record(answer), self._status.value
        history = () if kept is None else kept.history
        return AggregatorStatus(record, extended(history, sample(record)))


def _code(error: grpc.RpcError) -> str:
    return error.code().name if isinstance(error, grpc.Call) else type(error).__name__


def _is_of(estimates: Estimates | None, round_: Round) -> bool:
    """Whether these are what the catalogue announces; snapshots of a round differ in n."""
    return estimates is not None and (estimates.state, estimates.n) == (round_.state, round_.n)


def _estimates(message: estimate_pb2.Estimates) -> Estimates:
    return Estimates(
        metric=message.metric,
        digest=message.digest,
        round=message.round,
        state=RoundState(message.state),
        n=message.n,
        mechanism=message.mechanism,
        epsilon=Epsilon(message.epsilon.declared, message.epsilon.realised),
        level=message.level,
        as_of=message.as_of,
        publish_step=message.publish_step,
        values=tuple(map(_value, message.values)) if message.n else (),
        plain=message.plain,
        target=Target(target_name(message.target)),
        message=message,
    )


def _value(message: estimate_pb2.ValueEstimate) -> Value:
    return Value(
        label=message.value,
        count=message.count,
        estimate=message.estimate,
        std_error=message.std_error,
        low=message.low,
        high=message.high,
        simultaneous_low=message.simultaneous_low,
        simultaneous_high=message.simultaneous_high,
        rank_low=message.rank_low,
        rank_high=message.rank_high,
        influence=message.influence,
        consistent=message.consistent,
        found=message.found,
    )
