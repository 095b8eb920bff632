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


class View(NamedTuple):
    """What there is to see of a round."""

    state: RoundState
    snapshot: Snapshot | None

    @property
    def n(self) -> int:
        return 0 if self.snapshot is None else self.snapshot.tally.n

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
        if target not in _TARGETS:
            raise Refused(
                grpc.StatusCode.INVALID_ARGUMENT, "the target is respondents or population"
            )
        level = level or DEFAULT_LEVEL
        if not 0 < level < 1:
            raise Refused(
                grpc.StatusCode.INVALID_ARGUMENT, f"the level is between 0 and 1, not {level}"
            )
        return Question(metric, number, _TARGETS[target], level)

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

    def _default_round(self, metric: CataloguedMetric) -> int:
        newest = self._store.newest_published(metric.digest)
        if newest is None:
            newest = metric.newest_begun(self._clock())
        return newest or 0
