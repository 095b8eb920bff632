"""Progress on the terminal: one line that changes, or a line now and then in a log."""

import sys
import time
from typing import Final

_TERMINAL_SECONDS: Final = 0.2
_LOG_SECONDS: Final = 5.0


class Progress:
    """Counts devices that have reported."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._started = self._shown = time.monotonic()
        self._terminal = sys.stdout.isatty()

    def add(self, count: int) -> None:
        """Note that so many more are done, and show it if it is time."""
        self._done += count
        now = time.monotonic()
        pause = _TERMINAL_SECONDS if self._terminal else _LOG_SECONDS
        if now - self._shown >= pause or self._done == self._total:
            self._shown = now
            self._show(now)

    def _show(self, now: float) -> None:
        rate = self._done / max(now - self._started, 1e-9)
        line = f"{self._done:,} of {self._total:,} devices have reported, {rate:,.0f} a second"
        last = self._done == self._total
        if self._terminal:
            print(f"\r{line}\x1b[K", end="\n" if last else "", flush=True)
        else:
            print(line, flush=True)
