"""Every metric that reports may still arrive for, and what is needed to count them."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub.limits import CLOCK_SKEW, REPORT_ID_BYTES
from hubbub_aggregator.oracles import Oracle, oracle_for


class RoundState(Enum):
    """By the aggregator's clock, or because the operator closed it."""

    NOT_OPEN = "not open"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True)
class CataloguedMetric:
    """A metric, with what is worked out once."""

    metric: Metric
    digest: bytes
    oracle: Oracle
    listed: bool
    """Whether the bundle in force lists it."""

    @cached_property
    def realised(self) -> str:
        """The realised ε as decimal text."""
        # Not at the start: it takes milliseconds, and there may be hundreds of metrics.
        return self.metric.certificate.realised

    @property
    def report_size(self) -> int:
        """Bytes of an opened report: its id and its payload."""
        return REPORT_ID_BYTES + self.oracle.payload_size

    def has_round(self, number: int) -> bool:
        return number < self.metric.schedule.rounds

    @property
    def which_rounds(self) -> str:
        """The rounds there are, for a sentence."""
        rounds = self.metric.schedule.rounds
        return "only round 0" if rounds == 1 else f"rounds 0 to {rounds - 1}"

    def state(self, number: int, now: float) -> RoundState:
        """Where a round of the schedule stands by the clock alone."""
        window = self.metric.schedule.window(number)
        if now < window.opens:
            return RoundState.NOT_OPEN
        if window.closes is not None and now >= window.closes:
            return RoundState.CLOSED
        return RoundState.OPEN

    def begins(self, number: int) -> int:
        """When a round begins, seconds since 1970-01-01 UTC.

        Its window opens a little earlier, for devices whose clocks are fast.
        """
        return self.metric.schedule.window(number).opens + CLOCK_SKEW

    def newest_begun(self, now: float) -> int | None:
        """The last round that has begun, or None if none has."""
        begun = bisect_right(range(self.metric.schedule.rounds), now, key=self.begins)
        return begun - 1 if begun else None


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
        listed=metric.name in bundle.metrics,
    )
