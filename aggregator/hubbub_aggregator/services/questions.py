"""What a request asks about, and what readers may see of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import grpc

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric, RoundState
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services.lookup import find_metric, require_round
from hubbub_aggregator.store import Snapshot, Store

if TYPE_CHECKING:
    from hubbub_aggregator.estimation.intervals import Target

DEFAULT_LEVEL: Final = 0.95

_TARGETS: Final[dict[int, "Target"]] = {
    estimate_pb2.TARGET_UNSPECIFIED: "respondents",
    estimate_pb2.TARGET_RESPONDENTS: "respondents",
    estimate_pb2.TARGET_POPULATION: "population",
}

STATES: Final = {
    RoundState.NOT_OPEN: estimate_pb2.ROUND_STATE_NOT_OPEN,
    RoundState.OPEN: estimate_pb2.ROUND_STATE_OPEN,
    RoundState.CLOSED: estimate_pb2.ROUND_STATE_CLOSED,
}

NamesARound = (
    estimate_pb2.GetEstimatesRequest
    | estimate_pb2.WatchEstimatesRequest
    | estimate_pb2.QueryRequest
    | estimate_pb2.DecodeRequest
    | estimate_pb2.RoundOfMetric
)


class Question(NamedTuple):
    """A request, with its defaults filled in."""

    metric: CataloguedMetric
    round: int
    target: "Target"
    level: float


class Span(NamedTuple):
    """A request about several rounds, with its defaults filled in."""

    metric: CataloguedMetric
    rounds: range
    target: "Target"
    level: float


class View(NamedTuple):
    """What there is to see of a round."""

    state: RoundState
    snapshot: Snapshot | None

    @property
    def n(self) -> int:
        return 0 if self.snapshot is None else self.snapshot.tally.n

    @property
    def plain(self) -> int:
        """How many of them came unsealed."""
        return 0 if self.snapshot is None else self.snapshot.tally.plain

    @property
    def as_of(self) -> float:
        return 0.0 if self.snapshot is None else self.snapshot.as_of


class Questions:
    """Understands requests, and looks up what they ask about."""

    def __init__(self, catalogue: Catalogue, store: Store, clock: Callable[[], float]) -> None:
        self._catalogue = catalogue
        self._store = store
        self._clock = clock

    def question(
        self, of: NamesARound, target: estimate_pb2.Target.ValueType, level: float
    ) -> Question:
        """Raises Refused."""
        metric = find_metric(self._catalogue, of.metric)
        if of.HasField("round"):
            number = require_round(metric, of.round)
        else:
            number = self._default_round(metric)
        return Question(metric, number, *_how(target, level))

    def span(self, of: estimate_pb2.PoolRequest) -> Span:
        """Raises Refused."""
        metric = find_metric(self._catalogue, of.metric)
        first = require_round(metric, of.first)
        if of.HasField("last"):
            last = require_round(metric, of.last)
        else:
            last = max(first, self._default_round(metric))
        if last < first:
            raise Refused(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"rounds are named from the first to the last, not {first} to {last}",
            )
        return Span(metric, range(first, last + 1), *_how(of.target, of.level))

    def view(self, question: Question) -> View:
        published = self._store.published(question.metric.digest, question.round)
        closed = None if published is None else published.closed
        snapshot = None if published is None else published.snapshot
        return View(self.state(question.metric, question.round, closed), snapshot)

    def state(self, metric: CataloguedMetric, number: int, closed: bool | None) -> RoundState:
        """`closed`: what the store says of the round, None if it knows none."""
        by_clock = metric.state(number, self._clock())
        if closed is None or by_clock is RoundState.NOT_OPEN:
            return by_clock
        # A round whose time is over is closed once its last reports are published.
        return RoundState.CLOSED if closed else RoundState.OPEN

    def summary(
        self, metric: CataloguedMetric, number: int, known: tuple[bool, int] | None
    ) -> estimate_pb2.RoundSummary:
        """`known`: whether the round is closed and n of its snapshot; None: nothing is stored."""
        closed, n = (None, 0) if known is None else known
        state = STATES[self.state(metric, number, closed)]
        return estimate_pb2.RoundSummary(round=number, state=state, n=n)

    def _default_round(self, metric: CataloguedMetric) -> int:
        newest = self._store.newest_published(metric.digest)
        if newest is None:
            newest = metric.newest_begun(self._clock())
        return newest or 0


def _how(target: estimate_pb2.Target.ValueType, level: float) -> tuple["Target", float]:
    """Raises Refused."""
    if target not in _TARGETS:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, "the target is respondents or population")
    level = level or DEFAULT_LEVEL
    if not 0 < level < 1:
        raise Refused(
            grpc.StatusCode.INVALID_ARGUMENT, f"the level is between 0 and 1, not {level}"
        )
    return _TARGETS[target], level
