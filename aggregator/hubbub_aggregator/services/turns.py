"""Calls that reckon for seconds take turns: each holds a core, and reports need it more."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import grpc

from hubbub_aggregator.refusals import Refused


class Turns:
    """One call at a time. Thread-safe."""

    def __init__(self, what: str, patience: float = 0.0) -> None:
        """`what` goes on; `patience`: seconds a call waits for its turn."""
        self._what = what
        self._patience = patience
        self._free = threading.Lock()

    @contextmanager
    def taken(self) -> Generator[None]:
        """The body's turn. Raises Refused: RESOURCE_EXHAUSTED."""
        if not self._free.acquire(timeout=self._patience):
            raise Refused(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"another {self._what} is under way; ask again in some seconds",
            )
        try:
            yield
        finally:
            self._free.release()
