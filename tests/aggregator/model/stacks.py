"""Aggregators without a network: all that counts, and a store whose transactions can be made to
fail."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, cast

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, report_pb2
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.closing import Closer
from hubbub_aggregator.committer import Committer
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.intake import Intake
from hubbub_aggregator.keys import OpeningKey
from hubbub_aggregator.observations import Observations
from hubbub_aggregator.opening import Opening
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.refusals import ReportsRefused
from hubbub_aggregator.services.admin import AdminService
from hubbub_aggregator.store import Store, StoreUnavailable


class Fault(Enum):
    """What happens to a transaction that counts."""

    NOT_BEGUN = "it does not begin"
    UNDONE = "it fails when all is done but the commit"
    DONE = "it is durable, and nobody is told"


class FaultyStore(Store):
    """A store whose next transactions that count fail, for as long as there is a `fault`."""

    fault: Fault | None = None

    @contextmanager
    def _count(self) -> Iterator[Any]:
        fault = self.fault
        failed = StoreUnavailable(self.location, str(fault))
        if fault is Fault.NOT_BEGUN:
            raise failed
        with super()._count() as cursor:
            yield cursor
            if fault is Fault.UNDONE:
                raise failed
        if fault is Fault.DONE:
            raise failed


class Stack:
    """An aggregator from its start on, as `hubbub serve` puts it together."""

    def __init__(
        self,
        location: str,
        bundle: Bundle,
        keys: Mapping[bytes, OpeningKey],
        clock: Callable[[], float],
        *,
        writer: int,
        step: int,
        take_plain: bool,
    ) -> None:
        """Raises LowerRevision, ChangedContract or ForeignOperator, leaving nothing open."""
        self.bundle = bundle
        self.store = FaultyStore(location, writer=writer, publish_step=step)
        try:
            self.store.adopt(bundle, now=clock())
            self.store.load_open_rounds()
            self._catalogue = Catalogue(bundle, self.store.metrics())
        except BaseException:
            self.store.close()
            raise
        self._clock = clock
        self._announcements = Announcements()
        self.counters = Counters()
        self._closer = Closer(self._catalogue, self.store, None, self._announcements)
        observations = Observations(clock)
        self._committer = Committer(self.store, self._announcements, clock, observations)
        self._opening = Opening(self._committer.commit, observations.opening)
        self._intake = Intake(
            self._catalogue,
            keys,
            self._opening,
            self._committer,
            counters=self.counters,
            observations=observations,
            clock=clock,
            take_plain=take_plain,
        )
        self._admin = AdminService(self._catalogue, self._closer, clock, cast(Any, None))

    @property
    def digests(self) -> frozenset[bytes]:
        return frozenset(self._catalogue.by_digest)

    @property
    def announced(self) -> int:
        """How often those who watch were woken."""
        return self._announcements.count

    def submit(self, request: report_pb2.SubmitReportsRequest) -> bytes | str:
        """A status each, or the reason for which it is refused."""
        try:
            return self._intake.submit(request)
        except ReportsRefused as refused:
            name = report_pb2.RefusalReason.Name(refused.reason)
            return name.removeprefix("REFUSAL_REASON_")

    def close_round(self, metric: str, number: int) -> estimate_pb2.CloseRoundResponse:
        """As `hubbub close` does it. Raises Refused or StoreError."""
        request = estimate_pb2.CloseRoundRequest(metric=metric, round=number)
        return self._admin._close_round(request)

    def close_due_rounds(self) -> None:
        """What an aggregator does every second. Raises StoreError."""
        self._closer.close_due(self._clock())

    def close(self) -> None:
        self._opening.close()
        self._committer.close()
        self.store.close()
