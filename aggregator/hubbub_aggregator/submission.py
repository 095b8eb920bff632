"""A request's reports on their way: from sealed bytes to a status each."""

import logging
import time
from collections.abc import Callable
from typing import Final

from hubbub.v1 import report_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.sealed import Opened
from hubbub_aggregator.store import StoreError

_log = logging.getLogger(__name__)

_NOT_OPENED: Final = report_pb2.REPORT_STATUS_NOT_OPENED


class NotOpened(Exception):
    """A fault here, and none of the reports."""


class Submission:
    """Reports of one metric and round, and what became of them."""

    __slots__ = (
        "_error",
        "_opens",
        "_statuses",
        "_then",
        "began",
        "held",
        "metric",
        "n",
        "opened",
        "plain",
        "round",
    )

    def __init__(
        self,
        metric: CataloguedMetric,
        number: int,
        then: Callable[["Submission"], object],
        plain: bytes = b"",
        held: int = 0,
    ) -> None:
        """Of `plain` reports, id ‖ payload back to back, or of those that `open` will tell.

        `then` is called when it is known what became of them, by the thread that knows it, which
        it must not keep; `held`: bytes of the request that are kept until then.
        """
        self.began = time.perf_counter()
        """Seconds, from anywhere on."""
        self.held = held
        self.metric = metric
        self.round = number
        self.plain = bool(plain)
        self.opened = plain
        """Report id ‖ payload of each that opens, back to back."""
        self.n = len(plain) // metric.report_size
        """How many of these there are."""
        self._statuses: bytes | None = None
        self._error: StoreError | NotOpened | None = None
        # Which of the sealed ones open; None: all.
        self._opens: list[bool] | None = None
        self._then: Callable[[Submission], object] | None = then

    def open(self, opened: Opened) -> None:
        """Take over what became of the sealed reports; None: it does not open."""
        reports = [report for report in opened if report is not None]
        if len(reports) < len(opened):
            self._opens = [report is not None for report in opened]
        self.n = len(reports)
        self.opened = b"".join(reports)

    def settle(self, statuses: bytes | None) -> None:
        """Tell what became of those that are opened."""
        if statuses is not None and self._opens is not None:
            left = iter(statuses)
            statuses = bytes(next(left) if opens else _NOT_OPENED for opens in self._opens)
        self._statuses = statuses
        self._tell()

    def fail(self, error: StoreError | NotOpened) -> None:
        """Tell that nothing was counted, unless it is settled."""
        if self._then is not None:
            self._error = error
            self._tell()

    def _tell(self) -> None:
        # What it would keep is a call, which is over; and that, most likely, keeps us.
        then, self._then = self._then, None
        if then is not None:
            try:
                then(self)
            except Exception:
                # A fault in one must not end the thread that tells all the others.
                _log.exception("what became of reports could not be told")

    def outcome(self) -> bytes | None:
        """A ReportStatus of every report, a byte; None: the round is closed.

        Raises StoreError or NotOpened.
        """
        if self._error is not None:
            raise self._error
        return self._statuses
