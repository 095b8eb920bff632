"""The status as a terminal shows it: what is wrong first, then figures."""

from collections.abc import Mapping
from typing import Any

from hubbub_aggregator.doctor.findings import Level
from hubbub_aggregator.quantities import seconds_at_most, size, span
from hubbub_aggregator.text_table import text_table
from hubbub_aggregator.troubles import troubles


def status_text(record: Mapping[str, Any]) -> str:
    """Lines for a person, from `status_record`."""
    store, bundle = record["store"], record["bundle"]
    rows = [
        ("state", "stopping" if record["stopping"] else "serving"),
        ("version", record["version"]),
        ("as of", f"{record['as_of']}, {span(record['uptime_seconds'])} after it started"),
        ("reports", _counts(record["reports"]) or "none"),
        ("refused", _counts(record["requests_refused"]) or "no request"),
        (
            "rate",
            f"{record['counted_per_second']:,g} reports/s over {record['rate_seconds']:.0f} s",
        ),
        ("opening", _latency(record["opening"])),
        ("commit", _latency(record["commit"])),
        (
            "in hand",
            f"{record['requests_waiting']:,} requests waiting, {size(record['bytes_in_hand'])}",
        ),
        ("rounds", _rounds(record)),
        ("store", f"{store['location']}{_sizes(store)}"),
        ("last commit", store["last_commit"] or "none since it started"),
        ("archive", _archive(record["archive"])),
        ("bundle", f"revision {bundle['revision']}, {len(bundle['metrics'])} metrics"),
        ("certificate", _until(record["certificate_expires"])),
        *(
            (known["name"], f"{known['address']}, {'TLS' if known['tls'] else 'plaintext'}")
            for known in record["listeners"]
        ),
    ]
    lines = [*_trouble(record), text_table(("", ""), rows, left=2).lstrip("\n ")]
    return "\n".join([*lines, *_metrics(record)])


def _trouble(record: Mapping[str, Any]) -> list[str]:
    lines = [
        f"{found.what.upper() if found.level is Level.PROBLEM else found.what}{found.more}"
        for found in troubles(record)
    ]
    return [*lines, ""] if lines else []


def _metrics(record: Mapping[str, Any]) -> list[str]:
    """A row for each metric of the bundle: what its newest snapshot holds."""
    newest = {snapshot["metric"]: snapshot for snapshot in record["snapshots"]}
    rows: list[tuple[str, ...]] = []
    for metric in record["bundle"]["metrics"]:
        named = (metric["metric"], f"{metric['digest'][:16]}…")
        snapshot = newest.get(metric["metric"])
        if snapshot is None:
            rows.append((*named, "", "", "no snapshot"))
        else:
            rows.append((*named, str(snapshot["round"]), f"{snapshot['n']:,}", snapshot["as_of"]))
    if not rows:
        return []
    header = ("metric", "digest", "round", "n", "newest snapshot")
    return ["", text_table(header, rows, left=2)]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items())


def _latency(latency: Mapping[str, Any]) -> str:
    if not latency["requests"]:
        return "no request yet"
    p50, p99 = latency["p50_seconds_at_most"], latency["p99_seconds_at_most"]
    return (
        f"p50 at most {seconds_at_most(p50)}, p99 at most {seconds_at_most(p99)}, "
        f"of {latency['requests']:,} requests"
    )


def _rounds(record: Mapping[str, Any]) -> str:
    if record["rounds_open"] is None:
        return "not known"
    return f"{record['rounds_open']:,} open, {record['rounds_closed']:,} closed"


def _sizes(store: Mapping[str, Any]) -> str:
    sizes = [
        f"{size(store[name])}{words}"
        for name, words in (("size_bytes", ""), ("free_bytes", " free"))
        if store[name] is not None
    ]
    return f" ({', '.join(sizes)})" if sizes else ""


def _archive(archive: Mapping[str, Any] | None) -> str:
    if archive is None:
        return "not known"
    return archive["folder"] or "none: no round is archived"


def _until(expires: str | None) -> str:
    return "none: no listener speaks TLS" if expires is None else f"until {expires}"
