"""A request's reports on their way: from sealed bytes to a status each."""

import threading
from typing import Final

from hubbub.v1 import report_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.sealed import Opened
from hubbub_aggregator.store import StoreError

_NOT_OPENED: Final = report_pb2.REPORT_STATUS_NOT_OPENED


class NotOpened(Exception):
    """A fault here, and none of the reports."""


class Submission:
    """Reports of one metric and round, and what became of them."""

    __slots__ = (
        "_opens",
        "_settled",
        "_told",
        "error",
        "metric",
        "n",
        "opened",
        "plain",
        "round",
        "statuses",
    )

    def __init__(self, metric: CataloguedMetric, number: int, plain: bytes = b"") -> None:
        """Of `plain` reports, id ‖ payload back to back, or of those that `open` will tell."""
        self.metric = metric
        self.round = number
        self.plain = bool(plain)
        self.opened = plain
        """Report id ‖ payload of each that opens, back to back."""
        self.n = len(plain) // metric.report_size
        """How many of these there are."""
        self.statuses: bytes | None = None
        """A ReportStatus of every report, a byte; None: the round is closed."""
        self.error: StoreError | NotOpened | None = None
        # Which of the sealed ones open; None: all.
        self._opens: list[bool] | None = None
        # A lock, since an Event takes ten times as long.
        self._settled = threading.Lock()
        self._settled.acquire()
        self._told = False

    def open(self, opened: Opened) -> None:
        """Take over what became of the sealed reports; None: it does not open."""
        reports = [report for report in opened if report is not None]
        if len(reports) < len(opened):
            self._opens = [report is not None for report in opened]
        self.n = len(reports)
        self.opened = b"".join(reports)

    def settle(self, statuses: bytes | None) -> None:
        """Tell what became of those that are opened, and let whoever waits go on."""
        if statuses is not None and self._opens is not None:
            left = iter(statuses)
            statuses = bytes(next(left) if opens else _NOT_OPENED for opens in self._opens)
        self.statuses = statuses
        self._let_go()

    def fail(self, error: StoreError | NotOpened) -> None:
        """Tell that nothing was counted, unless it is settled, and let whoever waits go on."""
        if not self._told:
            self.error = error
            self._let_go()

    def _let_go(self) -> None:
        self._told = True
        self._settled.release()

    def wait(self) -> bytes | None:
        """Return the statuses when there are some; once. Raises StoreError or NotOpened."""
        self._settled.acquire()
        if self.error is not None:
            raise self.error
        return self.statuses
