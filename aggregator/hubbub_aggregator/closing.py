"""Closing rounds: what must be done before their ids are forgotten, and what readers then learn."""

import logging
from contextlib import suppress
from pathlib import Path

from hubbub_aggregator.archive.errors import NotArchived
from hubbub_aggregator.archive.writing import Archive
from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric, RoundState
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.store import Closed, KeptReports, Store, Unpaired
from hubbub_aggregator.unarchived import Failing, Unarchived

_log = logging.getLogger(__name__)


class Closer:
    """Closes rounds of one store. Safe to use from many threads."""

    def __init__(
        self,
        catalogue: Catalogue,
        store: Store,
        archive: Archive | None,
        announcements: Announcements,
    ) -> None:
        """`archive`: where the reports go that may be kept; None: nowhere."""
        self._catalogue = catalogue
        self._store = store
        self._archive = archive
        self._announcements = announcements
        self._unarchived = Unarchived()

    @property
    def archive_folder(self) -> Path | None:
        """Where the reports go that may be kept; None: nowhere."""
        return None if self._archive is None else self._archive.folder

    @property
    def archive_failing(self) -> Failing | None:
        """What there is to say of rounds that are to be closed and cannot be archived, if any."""
        return self._unarchived.failing

    def close(self, metric: CataloguedMetric, number: int, now: float) -> Closed:
        """Archive a round, close it, and tell readers. Idempotent.

        Raises StoreError or NotArchived: it is open still, and lacks nothing.
        """
        archive = self._archive if metric.metric.retain else None
        which = metric.digest, number

        def keep(reports: KeptReports) -> None:
            if archive is not None:
                _keep(archive, metric, number, reports)

        try:
            closed = self._store.close_round(metric.digest, number, now=now, keep=keep)
        except NotArchived as error:
            overdue = metric.state(number, now) is RoundState.CLOSED
            if self._unarchived.failed(which, error, now, overdue=overdue):
                _log.error("a round was not closed: %s", error)
            raise
        if archive is not None and self._unarchived.archived(which):
            _log.warning("round %d of metric %r is archived now", number, metric.metric.name)
        self._announcements.announce()
        return closed

    def close_due(self, now: float) -> None:
        """The same of every round whose time is over; one that cannot be archived stays open.

        Raises StoreError.
        """
        open_rounds = self._store.open_rounds()
        self._unarchived.forget_all_but(open_rounds)
        for digest, number in sorted(open_rounds, key=self._unarchived.attempt):
            # A process that shares the store, and started later, may know more metrics.
            metric = self._catalogue.by_digest.get(digest)
            if metric is None or metric.state(number, now) is not RoundState.CLOSED:
                continue
            if metric.metric.retain and self._unarchived.postpone((digest, number), now):
                continue
            # The log says so, and the status.
            with suppress(NotArchived):
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
