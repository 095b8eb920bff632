"""The health page's HTML. Pure; every text from outside is escaped.

Every figure carries its exact `value`, and in `data-figure` the name that
`hubbub status --format json` has for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from hubbub_aggregator.counters import HAPPENED, REFUSED
from hubbub_aggregator.quantities import seconds_at_most, size, span
from hubbub_aggregator.status_record import moment
from hubbub_aggregator.troubles import Trouble
from hubbub_dashboard import markup, parts, text
from hubbub_dashboard.health import health_text
from hubbub_dashboard.health.history import Interval
from hubbub_dashboard.parts import Row
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.reading.source import AggregatorStatus
from hubbub_dashboard.states import Status, Tone


def verdict(status: Status, troubles: Sequence[Trouble]) -> str:
    """Whether all is well; what is not, as `hubbub status` says it.

    What a screen reader tells when it changes has no age in it, which would change at every tick.
    """
    listed = _listed(troubles)
    sentence = f"<p>{parts.code(status.sentence)}</p>" if status.sentence else ""
    if status.tone is Tone.AWAY:
        then = f"<p>When it last answered:</p>{listed}" if listed else ""
        told, more = "", f"{sentence}{then}"
    else:
        told, more = f"{listed}{sentence}", ""
    return (
        f'<section class="hubbub status verdict" data-state="{escape(status.word)}">'
        f'<div role="status"><p class="facts">{markup.badge(status)}</p>{told}</div>{more}'
        f"</section>"
    )


def _listed(troubles: Sequence[Trouble]) -> str:
    if not troubles:
        return ""
    items = "".join(
        f"<li><strong>{escape(found.what)}</strong>{escape(found.more)}</li>" for found in troubles
    )
    return f"<ul>{items}</ul>"


def facts(record: Mapping[str, Any], age: float | None) -> str:
    """What runs since when, and when it said so: `age` seconds ago; None: the page is paused."""
    taken = moment(record["as_of"])
    then = "paused" if age is None else f"{text.age(age)} ago"
    said = (
        f"version {_figure('version', record['version'])}",
        f"up {span(record['uptime_seconds'])}, since "
        f"{text.day_and_clock(taken - record['uptime_seconds'])}",
        f"as of {text.clock(taken)} ({then})",
    )
    spans = "".join(f"<span>{fact}</span>" for fact in said)
    return f'<p class="hubbub facts">{spans}</p>'


@derived
def tiles(status: AggregatorStatus) -> str:
    """The figures that tell most, large."""
    record = status.record
    reports, refused = record["reports"], record["requests_refused"]
    faulty = sum(reports.get(name, 0) for name in ("not_opened", "not_canonical"))
    figures = (
        (
            "Reports counted",
            text.count(reports.get("counted", 0)),
            f"{health_text.per_second(record['counted_per_second'])} each second, "
            f"over {record['rate_seconds']:.0f} s",
        ),
        ("Counted before", text.count(reports.get("duplicate", 0)), "duplicates, counted once"),
        ("Reports rejected", text.count(faulty), "not opened, or not canonical"),
        ("Requests refused", text.count(sum(refused.values())), "as a whole, by reason below"),
        (
            "Requests waiting",
            _number("requests_waiting", record["requests_waiting"]),
            f"{_figure('bytes_in_hand', record['bytes_in_hand'], size)} in hand",
        ),
    )
    items = "".join(
        f"<div><dt>{name}</dt><dd>{figure}<small>{note}</small></dd></div>"
        for name, figure, note in figures
    )
    return f'<dl class="hubbub tiles">{items}</dl>'


def history_table(intervals: Iterable[Interval]) -> str:
    """The charts' figures, newest first."""
    rows = [
        (
            f"{text.clock(interval.begins)[:8]} to {text.clock(interval.ends)}",
            health_text.per_second(interval.counted),
            health_text.per_second(interval.rejected),
        )
        for interval in reversed(list(intervals))
    ]
    return _table("Lately", ("Between", "Counted each second", "Rejected each second"), rows)


@derived
def details(status: AggregatorStatus) -> str:
    """Everything else that the aggregator tells of itself."""
    record = status.record
    return "".join(
        (
            '<div class="hubbub health">',
            _became(record),
            _refused(record),
            _work(record),
            _holdings(record),
            _digests(record),
            "</div>",
        )
    )


def _became(record: Mapping[str, Any]) -> str:
    reports = record["reports"]
    if not reports:
        return _section("Reports", _said("No report has come since it started."))
    total = sum(reports.values())
    rows = [
        (
            escape(_words(HAPPENED, "REPORT_STATUS_", name)),
            _number(f"reports.{name}", count),
            health_text.share(count, total),
        )
        for name, count in _in_order(reports, HAPPENED, "REPORT_STATUS_")
    ]
    table = _table("Reports", ("What became of them", "Reports", "Share"), rows, short=True)
    return _section("Reports", table)


def _refused(record: Mapping[str, Any]) -> str:
    refused = record["requests_refused"]
    title = "Requests refused"
    if not refused:
        return _section(title, _said("No request was refused."))
    total = sum(refused.values())
    rows = [
        (
            escape(_words(REFUSED, "REFUSAL_REASON_", name)),
            _number(f"requests_refused.{name}", count),
            health_text.share(count, total),
        )
        for name, count in sorted(refused.items(), key=lambda item: (-item[1], item[0]))
    ]
    return _section(title, _table(title, ("Because", "Requests", "Share"), rows, short=True))


def _words(words: Mapping[str, str], prefix: str, name: str) -> str:
    """One that a newer aggregator has and these words do not, by its name."""
    return words.get(prefix + name.upper(), name.replace("_", " "))


def _in_order(
    counts: Mapping[str, int], words: Mapping[str, str], prefix: str
) -> list[tuple[str, int]]:
    """Those that there are words for in their order, then others."""
    known = [name.removeprefix(prefix).lower() for name in words]
    names = [name for name in known if name in counts]
    return [(name, counts[name]) for name in [*names, *(counts.keys() - names)]]


def _work(record: Mapping[str, Any]) -> str:
    rows = [
        (words, *_latency(name, record[name]))
        for name, words in (
            ("opening", "Opening its reports"),
            ("commit", "Until they are on disk"),
        )
    ]
    columns = ("A request's", "p50 at most", "p99 at most", "Requests")
    table = _table("How long it takes", columns, rows)
    return _section("How long it takes", table + _said(health_text.QUANTILES))


def _latency(name: str, latency: Mapping[str, Any]) -> tuple[str, ...]:
    requests = latency["requests"]
    bounds = ("p50_seconds_at_most", "p99_seconds_at_most")
    return (
        *(
            _figure(f"{name}.{bound}", latency[bound], seconds_at_most) if requests else "none yet"
            for bound in bounds
        ),
        _number(f"{name}.requests", requests),
    )


def _holdings(record: Mapping[str, Any]) -> str:
    store, archive = record["store"], record["archive"]
    facts = [
        ("Store", _figure("store.location", store["location"])),
        ("Its size", _known("store.size_bytes", store["size_bytes"], size)),
        ("Free there", _known("store.free_bytes", store["free_bytes"], size)),
        (
            "Last commit",
            _known("store.last_commit", store["last_commit"], _clock, "none since it started"),
        ),
        ("Rounds open", _known("rounds_open", record["rounds_open"], text.count)),
        ("Rounds closed", _known("rounds_closed", record["rounds_closed"], text.count)),
        ("Archive", _archive(archive)),
        (
            "Certificate",
            _known(
                "certificate_expires",
                record["certificate_expires"],
                lambda expires: health_text.until(expires, record["as_of"]),
                "none: no listener speaks TLS",
            ),
        ),
        *(
            (
                f"{escape(known['name']).capitalize()} listener",
                f"{escape(known['address'])}, {'TLS' if known['tls'] else 'plaintext'}",
            )
            for known in record["listeners"]
        ),
    ]
    items = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts)
    return _section("What it holds", f'<dl class="hubbub provenance">{items}</dl>')


def _archive(archive: Mapping[str, Any] | None) -> str:
    if archive is None:
        return "not known"
    return _known("archive.folder", archive["folder"], str, "none: no round is archived")


def _digests(record: Mapping[str, Any]) -> str:
    """The bundle's metrics, each with its newest snapshot; then snapshots of others."""
    snapshots = {snapshot["metric"]: snapshot for snapshot in record["snapshots"]}
    listed = [
        (
            escape(metric["metric"]),
            f"<code>{escape(metric['digest'][:16])}</code>…",
            *_snapshot(snapshots.pop(metric["metric"], None), record),
        )
        for metric in record["bundle"]["metrics"]
    ]
    others = [
        (escape(name), "not in the bundle", *_snapshot(snapshot, record))
        for name, snapshot in snapshots.items()
    ]
    columns = ("Metric", "Digest", "Round", "Reports in it", "Newest snapshot")
    revision = _number("bundle.revision", record["bundle"]["revision"])
    said = _said(
        f"The bundle in force has revision {revision}. "
        f"{health_text.unknown_digests(record['requests_refused'])}"
    )
    table = _table("Digests", columns, [*listed, *others])
    return _section("Digests in the field", said + table)


def _snapshot(snapshot: Mapping[str, Any] | None, record: Mapping[str, Any]) -> tuple[str, ...]:
    if snapshot is None:
        return ("", "", "not known" if record["store"]["unreadable"] else "none yet")
    now = moment(record["as_of"])
    taken = moment(snapshot["as_of"])
    return (
        text.count(snapshot["round"]),
        _number(f"snapshots.{snapshot['metric']}", snapshot["n"]),
        f"{text.day_and_clock(taken)} ({text.age(now - taken)} old)",
    )


def _section(title: str, content: str) -> str:
    return f"<section><h2>{title}</h2>{content}</section>"


def _said(sentence: str) -> str:
    return f"<p>{sentence}</p>"


def _table(
    label: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, short: bool = False
) -> str:
    """The first of each row's cells names it."""
    return parts.table(label, columns, (Row(row[0], row[1:]) for row in rows), short=short)


def _clock(instant: str) -> str:
    return text.day_and_clock(moment(instant))


def _known(name: str, value: Any, shown: Callable[[Any], str], otherwise: str = "not known") -> str:
    return otherwise if value is None else _figure(name, value, shown)


def _number(name: str, value: int) -> str:
    return _figure(name, value, text.count)


def _figure(name: str, value: Any, shown: Callable[[Any], str] = str) -> str:
    exact = escape(str(value))
    return f'<data data-figure="{escape(name)}" value="{exact}">{escape(shown(value))}</data>'
