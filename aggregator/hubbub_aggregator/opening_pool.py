"""Processes that open sealed reports, and do nothing else.

To open one holds the interpreter: only other processes use other processors. They know the
sealing keys and nothing more: no store, no port, no counts.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from hubbub_aggregator.keys import OpeningKey, load_opening_keys
from hubbub_aggregator.sealed import Opened, Sealed


class OpeningPool:
    """So many processes. Safe to use from many threads."""

    def __init__(self, keys: Path, workers: int) -> None:
        """Start them, and wait until they are ready; every one reads the `keys` folder itself."""
        self._keys = keys
        self._workers = workers
        self._pool = self._started()
        futures: list[Future[None]] = [self._pool.submit(_idle) for _ in range(workers)]
        for future in futures:
            future.result()

    def open(self, sealed: Sealed) -> Opened:
        """Open reports in one of them."""
        pool = self._pool
        # Not the key itself: each has its own.
        key, info, reports, size = sealed
        try:
            return pool.submit(_open, key.key_id, info, reports, size).result()
        except BrokenProcessPool:
            # One of them was killed. Whoever comes first makes a new pool.
            if self._pool is pool:
                self._pool = self._started()
                pool.shutdown(wait=False)
            return sealed.open()

    def close(self) -> None:
        """End them."""
        self._pool.shutdown(cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        # Not forked: gRPC's threads would be missing in the child.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._workers, context, _begin, (self._keys,))


# In a process of the pool.

_loaded: Mapping[bytes, OpeningKey] = {}


def _begin(keys: Path) -> None:
    global _loaded  # noqa: PLW0603
    # A terminal sends Ctrl-C to all of them: who started them ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_whoever_started_it, daemon=True).start()
    _loaded = load_opening_keys(keys)


def _end_with_whoever_started_it() -> None:
    # Killed, it would not tell; and the queue that work comes by stays open.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _open(key_id: bytes, info: bytes, reports: bytes, size: int) -> Opened:
    return Sealed(_loaded[key_id], info, reports, size).open()


def _idle() -> None:
    """Show that it has begun."""
