"""Opening sealed reports, which takes longer than all else about them."""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from hubbub_aggregator.groups import GroupThread
from hubbub_aggregator.observations import Histogram
from hubbub_aggregator.opening_pool import OpeningPool
from hubbub_aggregator.sealed import Sealed
from hubbub_aggregator.submission import NotOpened, Submission

# A request of fewer reports waits until it is its turn; one of more is opened by itself, so that
# the others need not wait for it. To hand over fewer would take longer than to open them.
MANY: Final = 16

_log = logging.getLogger(__name__)


class Opening:
    """Opens submissions and hands them on. Safe to use from many threads."""

    def __init__(
        self,
        commit: Callable[[list[Submission]], None],
        seen: Histogram,
        pool: OpeningPool | None = None,
    ) -> None:
        """`commit` is handed what is open; batches are opened in the `pool`, if there is one.

        `seen`: how long it took, by request.
        """
        self._commit = commit
        self._seen = seen
        self._pool = pool
        # One report after the other is opened in two thirds of the time that many threads take,
        # each of which finds the processor's caches full of something else.
        self._groups = GroupThread("opener", self._open_all)
        # Batches too: those who wait for a lock do not keep gRPC's thread from its work, as those
        # do who wait for the interpreter.
        self._turn = threading.Lock()

    def open(self, submission: Submission, sealed: Sealed) -> None:
        """Open a submission's reports, now or later, and hand it on."""
        if len(sealed) >= MANY:
            self._open_many(submission, sealed)
            self._commit([submission])
        elif not self._groups.put((submission, sealed)):
            # It is stopping.
            submission.fail(NotOpened())

    def close(self) -> None:
        """Open what waits, then stop."""
        self._groups.close()

    def _open_many(self, submission: Submission, sealed: Sealed) -> None:
        if self._pool is None:
            with self._turn:
                began = time.perf_counter()
                submission.open(sealed.open())
        else:
            began = time.perf_counter()
            submission.open(self._pool.open(sealed))
        self._seen.add(time.perf_counter() - began)

    def _open_all(self, group: list[tuple[Submission, Sealed]]) -> None:
        began = time.perf_counter()
        try:
            for one, sealed in group:
                one.open(sealed.open())
        except Exception:
            # A fault in one must not leave every later caller waiting for ever.
            _log.exception("reports could not be opened")
            for one, _ in group:
                one.fail(NotOpened())
        else:
            self._seen.add((time.perf_counter() - began) / len(group), len(group))
            self._commit([one for one, _ in group])
