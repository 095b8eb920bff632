"""Made-up statuses of an aggregator, for pure functions."""

from typing import Any

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.status_record import status_record

NOW = 1_000_000_000.0
DAY = 86_400


def make_status(**facts: Any) -> dict[str, Any]:
    """The record of an aggregator that is well, idle and up for an hour, but for these facts."""
    store = estimate_pb2.StoreStatus(location="s", size_bytes=1 << 20, free_bytes=1 << 30)
    defaults: dict[str, Any] = {
        "version": "1.2.3",
        "as_of": NOW,
        "started": NOW - 3_600,
        "store": store,
        "archive": estimate_pb2.ArchiveStatus(),
        "certificate_expires": NOW + 300 * DAY,
        "rounds_open": 1,
        "rounds_closed": 0,
    }
    return status_record(estimate_pb2.GetStatusResponse(**(defaults | facts)))


def totals(**counts: int) -> list[estimate_pb2.Total]:
    """Totals by their names on the wire."""
    return [estimate_pb2.Total(name=name, count=count) for name, count in counts.items()]
