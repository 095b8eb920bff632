"""The status as plain data: what scripts rely on. Keys are added here, never renamed."""

from datetime import UTC, datetime
from math import isfinite
from typing import Any

from hubbub.v1 import estimate_pb2


def status_record(status: estimate_pb2.GetStatusResponse) -> dict[str, Any]:
    """The answer as `hubbub status --format json` prints it; None where nothing is known."""
    store = status.store
    return {
        "version": status.version,
        "as_of": instant(status.as_of),
        "uptime_seconds": round(status.as_of - status.started, 3),
        "stopping": status.stopping,
        "reports": {_lower(row.name, "REPORT_STATUS_"): row.count for row in status.reports},
        "requests_refused": {
            _lower(row.name, "REFUSAL_REASON_"): row.count for row in status.refused
        },
        "counted_per_second": round(status.counted_per_second, 3),
        "rate_seconds": round(status.rate_seconds, 3),
        "opening": _latency(status.opening),
        "commit": _latency(status.commit),
        "requests_waiting": status.requests_waiting,
        "bytes_in_hand": status.bytes_in_hand,
        "rounds_open": _known(status, "rounds_open"),
        "rounds_closed": _known(status, "rounds_closed"),
        "store": {
            "location": store.location,
            "size_bytes": _known(store, "size_bytes"),
            "free_bytes": _known(store, "free_bytes"),
            "writable": not store.HasField("failing_since"),
            "failing_since": _instant(store, "failing_since"),
            "last_commit": _instant(store, "last_commit"),
            "unreadable": store.unreadable or None,
        },
        "archive": _archive(status),
        "bundle": {
            "revision": status.bundle.revision,
            "metrics": [
                {"metric": metric.name, "digest": metric.digest.hex()}
                for metric in status.bundle.metrics
            ],
            "revisions": [
                {
                    "revision": known.revision,
                    "since": instant(known.since),
                    "or_earlier": known.or_earlier,
                }
                for known in status.bundle.revisions
            ],
        },
        "certificate_expires": _instant(status, "certificate_expires"),
        "listeners": [
            {"name": known.name, "address": known.address, "tls": known.tls}
            for known in status.listeners
        ],
        "snapshots": [
            {
                "metric": snapshot.metric,
                "round": snapshot.round,
                "n": snapshot.n,
                "as_of": instant(snapshot.as_of),
            }
            for snapshot in status.snapshots
        ],
    }


def _archive(status: estimate_pb2.GetStatusResponse) -> dict[str, Any] | None:
    """None from an aggregator of a version that did not tell."""
    if not status.HasField("archive"):
        return None
    archive = status.archive
    return {
        "folder": archive.folder or None,
        "failing_since": _instant(archive, "failing_since"),
        "reason": archive.reason or None,
        "rounds_overdue": archive.rounds_overdue,
    }


def _latency(latency: estimate_pb2.Latency) -> dict[str, Any]:
    """Upper bounds in seconds; None without an observation, or past the last bound."""
    return {
        "requests": latency.count,
        "p50_seconds_at_most": _finite(_known(latency, "p50")),
        "p99_seconds_at_most": _finite(_known(latency, "p99")),
    }


def _finite(seconds: float | None) -> float | None:
    return seconds if seconds is not None and isfinite(seconds) else None


def _known(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def _instant(message: Any, field: str) -> str | None:
    return instant(getattr(message, field)) if message.HasField(field) else None


def instant(timestamp: float) -> str:
    """Seconds since 1970-01-01 UTC in RFC 3339."""
    text = datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def moment(instant: str) -> float:
    """Seconds since 1970-01-01 UTC, of what `instant` made."""
    return datetime.fromisoformat(instant).timestamp()


def _lower(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()
