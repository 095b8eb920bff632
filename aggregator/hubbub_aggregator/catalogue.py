"""Every metric that reports may still arrive for, and what is needed to count them."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from hubbub.contract import Bundle, Metric
from hubbub_aggregator.oracles import Oracle, oracle_for


class RoundState(Enum):
    """By the aggregator's clock, or because the operator closed it."""

    NOT_OPEN = "not open"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class CataloguedMetric:
    """A metric, with what is worked out once."""

    metric: Metric
    digest: bytes
    oracle: Oracle
    realised: str
    """The realised ε as decimal text."""
    listed: bool
    """Whether the bundle in force lists it."""

    def has_round(self, number: int) -> bool:
        return number < self.metric.schedule.rounds

    def state(self, number: int, now: float) -> RoundState:
        """Where a round of the schedule stands by the clock alone."""
        window = self.metric.schedule.window(number)
        if now < window.opens:
            return RoundState.NOT_OPEN
        if window.closes is not None and now >= window.closes:
            return RoundState.CLOSED
        return RoundState.OPEN

    def newest_opened(self, now: float) -> int | None:
        """The last round that has opened, or None if none has."""
        low, high = 0, self.metric.schedule.rounds
        # Rounds open in order: the number of those that have opened, by bisection.
        while low < high:
            middle = (low + high) // 2
            if self.state(middle, now) is RoundState.NOT_OPEN:
                high = middle
            else:
                low = middle + 1
        return low - 1 if low else None


class Catalogue:
    """Metrics by digest, for reports, and by name, for people. Immutable."""

    def __init__(self, bundle: Bundle, metrics: Iterable[Metric]) -> None:
        """`metrics`: all that any bundle has listed, the one in force included."""
        catalogued = [_catalogue(metric, bundle) for metric in metrics]
        self.bundle: Final = bundle
        self.by_digest: Final = {metric.digest: metric for metric in catalogued}
        self.by_name: Final = {metric.metric.name: metric for metric in catalogued}


def _catalogue(metric: Metric, bundle: Bundle) -> CataloguedMetric:
    return CataloguedMetric(
        metric=metric,
        digest=metric.digest,
        oracle=oracle_for(metric.mechanism),
        realised=metric.certificate.realised,
        listed=metric.name in bundle.metrics,
    )
