"""Closing rounds: what must be done before their ids are forgotten, and what readers then learn."""

import logging
import time
from typing import Final

from hubbub_aggregator.archive.errors import ArchiveError
from hubbub_aggregator.archive.writing import Archive
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.store import Closed, KeptReports, Store, Unpaired

_log = logging.getLogger(__name__)

# How long rounds whose time is over wait after one that could not be archived: a full disk is
# seldom freed sooner, and each attempt reads the round again while nothing is counted. Seconds.
_REST: Final = 60.0


class Closer:
    """Closes rounds of one store. Safe to use from many threads."""

    def __init__(self, store: Store, archive: Archive | None, announcements: Announcements) -> None:
        """`archive`: where the reports go that may be kept; None: nowhere."""
        self._store = store
        self._archive = archive
        self._announcements = announcements
        self._failed: tuple[float, ArchiveError] | None = None

    def close(self, metric: CataloguedMetric, number: int, now: float) -> Closed:
        """Archive a round, close it, and tell readers. Idempotent.

        Raises StoreError or ArchiveError: it is open still, and lacks nothing.
        """
        archive = self._archive if metric.metric.retain else None

        def keep(reports: KeptReports) -> None:
            if archive is not None:
                _keep(archive, metric, number, reports)

        try:
            closed = self._store.close_round(metric.digest, number, now=now, keep=keep)
        except ArchiveError as error:
            self._failed = time.monotonic(), error
            raise
        if archive is not None:
            self._failed = None
        self._announcements.announce()
        return closed

    def close_due(self, metric: CataloguedMetric, number: int, now: float) -> None:
        """The same of one whose time is over; raises the last ArchiveError for a while."""
        failed = self._failed
        if metric.metric.retain and failed is not None and time.monotonic() < failed[0] + _REST:
            raise failed[1]
        self.close(metric, number, now)


def _keep(archive: Archive, metric: CataloguedMetric, number: int, reports: KeptReports) -> None:
    try:
        archive.write(metric.metric, number, reports)
    except Unpaired:
        _log.warning(
            "round %d of metric %r is not archived: some of its reports were counted by an "
            "earlier version of Hubbub, which did not note whose id is whose",
            number,
            metric.metric.name,
        )
