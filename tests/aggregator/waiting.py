"""Submissions that a test waits for."""

import threading

from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.submission import Submission

_PATIENCE = 60


class Waiting(Submission):
    """Reports, and a wait for what becomes of them."""

    __slots__ = ("_settled",)

    def __init__(self, metric: CataloguedMetric, number: int, plain: bytes = b"") -> None:
        self._settled = threading.Event()
        super().__init__(metric, number, lambda _: self._settled.set(), plain)

    def wait(self) -> bytes | None:
        """The outcome, when there is one."""
        assert self._settled.wait(_PATIENCE)
        return self.outcome()
