"""Opening sealed reports: here, or in processes that do nothing else.

To open one takes longer than all else about it, and holds the interpreter: only other processes
use other processors. They know the sealing keys and nothing more: no store, no port, no counts.
"""

import logging
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

from hubbub.sealing import overhead
from hubbub_aggregator.groups import GroupThread
from hubbub_aggregator.keys import OpeningKey, load_opening_keys
from hubbub_aggregator.observations import Histogram
from hubbub_aggregator.submission import NotOpened, Submission

# A request of fewer reports waits until it is its turn; one of more is opened by itself, so that
# the others need not wait for it. To hand over fewer would take longer than to open them.
_MANY: Final = 16

_log = logging.getLogger(__name__)

Opened = list[bytes | None]
"""Report id ‖ payload of each report; None: it does not open."""


class Opening:
    """Opens submissions and hands them on. Safe to use from many threads."""

    def __init__(
        self,
        commit: Callable[[list[Submission]], None],
        seen: Histogram,
        pool: "OpeningPool | None" = None,
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

    def open(self, submission: Submission) -> None:
        """Open a submission, now or later, and hand it on."""
        if len(submission.sealed) >= _MANY * _size(submission):
            began = time.perf_counter()
            open_ = _opened if self._pool is None else self._pool.open
            submission.open(open_(submission))
            self._seen.add(time.perf_counter() - began)
            self._commit([submission])
        elif not self._groups.put(submission):
            # It is stopping: so is whoever commits, and says so.
            self._commit([submission])

    def close(self) -> None:
        """Open what waits, then stop."""
        self._groups.close()

    def _open_all(self, group: list[Submission]) -> None:
        began = time.perf_counter()
        try:
            for one in group:
                one.open(_opened(one))
        except Exception:
            # A fault in one must not leave every later caller waiting for ever.
            _log.exception("reports could not be opened")
            for one in group:
                one.fail(NotOpened())
        else:
            self._seen.add((time.perf_counter() - began) / len(group), len(group))
            self._commit(group)


class OpeningPool:
    """Processes that open batches."""

    def __init__(self, keys: Path, workers: int) -> None:
        """Start them, and wait until they are ready; every one reads the `keys` folder itself."""
        self._keys = keys
        self._workers = workers
        self._pool = self._started()
        futures: list[Future[None]] = [self._pool.submit(_idle) for _ in range(workers)]
        for future in futures:
            future.result()

    def open(self, submission: Submission) -> Opened:
        pool, key = self._pool, _key(submission)
        what = key.key_id, submission.info, submission.sealed, _size(submission)
        try:
            return pool.submit(_open_with, *what).result()
        except BrokenProcessPool:
            # One of them was killed. Whoever comes first makes a new pool.
            if self._pool is pool:
                self._pool = self._started()
                pool.shutdown(wait=False)
            return _opened(submission)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        # Not forked: gRPC's threads would be missing in the child.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._workers, context, _begin, (self._keys,))


def _key(submission: Submission) -> OpeningKey:
    if submission.key is None:
        raise ValueError("not sealed")
    return submission.key


def _size(submission: Submission) -> int:
    return submission.metric.report_size + overhead(_key(submission).suite)


def _opened(submission: Submission) -> Opened:
    return _open(_key(submission), submission.info, submission.sealed, _size(submission))


def _open(key: OpeningKey, info: bytes, sealed: bytes, size: int) -> Opened:
    return [key.open(info, sealed[at : at + size]) for at in range(0, len(sealed), size)]


# In a process of the pool.

_loaded: Mapping[bytes, OpeningKey] = {}


def _begin(keys: Path) -> None:
    global _loaded  # noqa: PLW0603
    # A terminal sends Ctrl-C to all of them: who started them ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _loaded = load_opening_keys(keys)


def _open_with(key_id: bytes, info: bytes, sealed: bytes, size: int) -> Opened:
    return _open(_loaded[key_id], info, sealed, size)


def _idle() -> None:
    """Show that it has begun."""
