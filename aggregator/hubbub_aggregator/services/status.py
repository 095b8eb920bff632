"""How the aggregator is doing: everything that its operator may know of it.

Counts are totals over all metrics. Of one metric there is only its newest snapshot's n, which
every reader sees: a count between two snapshots would tell what they hide.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hubbub.v1 import estimate_pb2, report_pb2
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.closing import Closer
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.observations import Observations, Timings
from hubbub_aggregator.services.health import Health
from hubbub_aggregator.store import Store, StoreError
from hubbub_aggregator.version import VERSION

_COUNTED: Final = report_pb2.ReportStatus.Name(report_pb2.REPORT_STATUS_COUNTED)
_OF_REPORTS: Final = "REPORT_STATUS_"

# What a store's file may have beside it.
_SQLITE_FILES: Final = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class ListenerInfo:
    """Where somebody is answered."""

    name: str
    address: str
    """host:port."""
    tls: bool


class StatusBoard:
    """Puts the answer together from where each part is known. Safe to use from many threads."""

    def __init__(
        self,
        catalogue: Catalogue,
        store: Store,
        counters: Counters,
        observations: Observations,
        health: Health,
        *,
        closer: Closer,
        bytes_in_hand: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        """`bytes_in_hand`: sealed bytes of the requests that are being answered."""
        self._catalogue = catalogue
        self._store = store
        self._counters = counters
        self._observations = observations
        self._health = health
        self._closer = closer
        self._bytes_in_hand = bytes_in_hand
        self._clock = clock
        self.started: Final = clock()
        """When the process began, seconds since 1970-01-01 UTC."""
        self.listeners: Sequence[ListenerInfo] = ()
        """Set once they listen."""
        self.certificate_expires: Callable[[], float] | None = None
        """Seconds since 1970-01-01 UTC; None: no listener speaks TLS."""

    @property
    def counted(self) -> int:
        """Reports counted since the process began."""
        return self._counters.totals().get(_COUNTED, 0)

    def status(self) -> estimate_pb2.GetStatusResponse:
        """As of now; answers, and says so, when the store cannot be read."""
        totals = [
            estimate_pb2.Total(name=name, count=count)
            for name, count in self._counters.totals().items()
        ]
        seen, expires = self._observations, self.certificate_expires
        rate = seen.rate()
        answer = estimate_pb2.GetStatusResponse(
            version=VERSION,
            as_of=self._clock(),
            started=self.started,
            stopping=self._health.leaving,
            reports=[total for total in totals if total.name.startswith(_OF_REPORTS)],
            refused=[total for total in totals if not total.name.startswith(_OF_REPORTS)],
            counted_per_second=rate.per_second,
            rate_seconds=rate.seconds,
            opening=_latency(seen.opening.timings()),
            commit=_latency(seen.commits.timings()),
            requests_waiting=seen.requests_waiting,
            bytes_in_hand=self._bytes_in_hand(),
            store=self._store_status(),
            archive=self._archive_status(),
            bundle=self._bundle_status(),
            certificate_expires=None if expires is None else expires(),
            listeners=[
                estimate_pb2.ListenerStatus(name=known.name, address=known.address, tls=known.tls)
                for known in self.listeners
            ],
        )
        self._add_overview(answer)
        return answer

    def _store_status(self) -> estimate_pb2.StoreStatus:
        location = self._store.location
        return estimate_pb2.StoreStatus(
            location=location,
            size_bytes=_size(location),
            free_bytes=_free(location),
            failing_since=self._observations.failing_since,
            last_commit=self._observations.last_commit,
        )

    def _archive_status(self) -> estimate_pb2.ArchiveStatus:
        folder, failing = self._closer.archive_folder, self._closer.archive_failing
        answer = estimate_pb2.ArchiveStatus(folder="" if folder is None else str(folder))
        if failing is not None:
            answer.failing_since, answer.reason = failing.since, failing.reason
            answer.rounds_overdue = failing.overdue
        return answer

    def _bundle_status(self) -> estimate_pb2.BundleStatus:
        bundle = self._catalogue.bundle
        return estimate_pb2.BundleStatus(
            revision=bundle.revision,
            metrics=[
                estimate_pb2.MetricDigest(name=metric.name, digest=metric.digest)
                for metric in bundle.metrics.values()
            ],
        )

    def _add_overview(self, answer: estimate_pb2.GetStatusResponse) -> None:
        try:
            overview = self._store.overview()
        except StoreError as error:
            answer.store.unreadable = str(error)
            return
        answer.rounds_open = overview.rounds_open
        answer.rounds_closed = overview.rounds_closed
        for revision in overview.revisions:
            answer.bundle.revisions.add(
                revision=revision.number, since=revision.since, or_earlier=revision.or_earlier
            )
        for snapshot in overview.snapshots:
            # A process that shares the store, and started later, may know more metrics.
            metric = self._catalogue.by_digest.get(snapshot.digest)
            if metric is not None:
                answer.snapshots.add(
                    metric=metric.metric.name,
                    round=snapshot.round,
                    n=snapshot.n,
                    as_of=snapshot.as_of,
                )


def _latency(timings: Timings) -> estimate_pb2.Latency:
    return estimate_pb2.Latency(
        count=timings.count, p50=timings.quantile(0.5), p99=timings.quantile(0.99)
    )


def _size(location: str) -> int | None:
    """Bytes that a store in a file takes; None: it is in none, or the file is gone."""
    sizes = [_size_of_file(location + suffix) for suffix in _SQLITE_FILES]
    return None if sizes[0] is None else sum(size or 0 for size in sizes)


def _size_of_file(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


def _free(location: str) -> int | None:
    """Bytes that this process may still write where the store's file is."""
    try:
        disk = os.statvfs(location)
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize
