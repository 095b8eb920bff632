"""Closing what an app left open when its program ends, within two seconds in all."""

import atexit
import time
from typing import Final, Protocol
from weakref import WeakSet

SECONDS: Final = 2.0


class Closes(Protocol):
    """What can be closed within some seconds."""

    def close_within(self, seconds: float) -> None:
        """Close; never raises."""
        ...


_open: Final = WeakSet[Closes]()


def close_at_exit(what: Closes) -> None:
    """Close it when the program ends, if it still is there."""
    if not _open:
        atexit.register(_close_all)
    _open.add(what)


def _close_all() -> None:
    deadline = time.monotonic() + SECONDS
    for what in list(_open):
        what.close_within(max(0.0, deadline - time.monotonic()))
