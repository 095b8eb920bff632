"""What happened, counted: totals over all metrics since this process began.

Totals only: a count of one metric's reports between two snapshots would tell what the
snapshots hide.
"""

import threading
from collections import Counter


class Counters:
    """Counts by name; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str, count: int = 1) -> None:
        """Count something that happened `count` times."""
        with self._lock:
            self._counts[name] += count

    def totals(self) -> dict[str, int]:
        """Everything that happened at least once, by name."""
        with self._lock:
            return {name: count for name, count in sorted(self._counts.items()) if count}
