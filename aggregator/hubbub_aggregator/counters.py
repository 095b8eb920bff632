"""What happened, counted: totals over all metrics since this process began.

Totals only: a count of one metric's reports between two snapshots would tell what the
snapshots hide.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

# What becomes of a report, by its status on the wire.
HAPPENED: Final = {
    "REPORT_STATUS_COUNTED": "counted",
    "REPORT_STATUS_DUPLICATE": "counted before",
    "REPORT_STATUS_NOT_OPENED": "not opened",
    "REPORT_STATUS_NOT_CANONICAL": "not canonical",
}
# Why a request full of them is refused.
REFUSED: Final = {
    "REFUSAL_REASON_UNKNOWN_DIGEST": "their metric is not known",
    "REFUSAL_REASON_ROUND_NOT_OPEN": "their round had not begun",
    "REFUSAL_REASON_ROUND_CLOSED": "their round was closed",
    "REFUSAL_REASON_NO_SUCH_ROUND": "their round does not exist",
    "REFUSAL_REASON_UNKNOWN_KEY": "the bundle does not list their key",
    "REFUSAL_REASON_WRONG_LENGTH": "their length was wrong",
    "REFUSAL_REASON_TOO_MANY_REPORTS": "they held too many reports",
    "REFUSAL_REASON_STORE_UNAVAILABLE": "the store could not be written",
    "REFUSAL_REASON_OVERLOADED": "there were too many at once",
    "REFUSAL_REASON_PLAIN_NOT_TAKEN": "they were not sealed",
    "REFUSAL_REASON_MESSAGE_TOO_LARGE": "they were too large",
}


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


def in_words(totals: Mapping[str, int]) -> str:
    """What happened to reports, and to requests full of them, for a person."""
    counted = [f"{word} {totals[name]:,}" for name, word in HAPPENED.items() if name in totals]
    refused = [
        f"requests refused {totals[name]:,}: {why}"
        for name, why in REFUSED.items()
        if name in totals
    ]
    return "; ".join([", ".join(counted) or "no reports", *refused])
