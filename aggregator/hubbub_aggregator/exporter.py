"""For Prometheus: the status as metrics, over plain HTTP on a port of their own.

The same totals as `hubbub status`, and nothing that it does not tell. Whoever reaches the port
reads them, so it belongs on the operator's network alone.
"""

from collections.abc import Callable, Iterable
from typing import Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
)
from prometheus_client.registry import Collector

from hubbub.v1 import estimate_pb2, report_pb2
from hubbub_aggregator.listeners import AddressTaken
from hubbub_aggregator.observations import BUCKETS, Observations, Timings

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | InfoMetricFamily

_PATH: Final = "/metrics"

_EDGES: Final = (*(f"{bound:.6g}" for bound in BUCKETS), "+Inf")


class StatusCollector(Collector):
    """Gathers the status when it is scraped."""

    def __init__(
        self, status: Callable[[], estimate_pb2.GetStatusResponse], observations: Observations
    ) -> None:
        self._status = status
        self._observations = observations

    def collect(self) -> Iterable[Family]:
        status = self._status()
        yield InfoMetricFamily(
            "hubbub_build", "The aggregator's version.", {"version": status.version}
        )
        yield from _counts(status)
        yield from _work(status)
        yield _histogram(
            "hubbub_open_seconds",
            "Opening the reports of one request.",
            self._observations.opening.timings(),
        )
        yield _histogram(
            "hubbub_commit_seconds",
            "One request's wait until its reports are on disk.",
            self._observations.commits.timings(),
        )
        yield from _store(status)
        yield from _archive(status)
        yield from _snapshots(status)


def _counts(status: estimate_pb2.GetStatusResponse) -> Iterable[Family]:
    reports = CounterMetricFamily(
        "hubbub_reports", "Reports of all metrics, by what became of them.", labels=["outcome"]
    )
    for name, count in _all_of(report_pb2.ReportStatus.keys(), status.reports).items():
        reports.add_metric([_label(name, "REPORT_STATUS_")], count)
    yield reports
    refused = CounterMetricFamily(
        "hubbub_requests_refused", "Requests refused as a whole, by why.", labels=["reason"]
    )
    for name, count in _all_of(report_pb2.RefusalReason.keys(), status.refused).items():
        refused.add_metric([_label(name, "REFUSAL_REASON_")], count)
    yield refused


def _all_of(names: Iterable[str], totals: Iterable[estimate_pb2.Total]) -> dict[str, int]:
    """With a zero for what has not happened: a rate needs to see where it began."""
    counts = {name: 0 for name in names if not name.endswith("_UNSPECIFIED")}
    return counts | {total.name: total.count for total in totals}


def _work(status: estimate_pb2.GetStatusResponse) -> Iterable[Family]:
    yield GaugeMetricFamily(
        "hubbub_requests_waiting", "Requests that wait for a commit.", status.requests_waiting
    )
    yield GaugeMetricFamily(
        "hubbub_in_hand_bytes",
        "Sealed bytes of the requests that are being answered.",
        status.bytes_in_hand,
    )
    yield GaugeMetricFamily(
        "hubbub_stopping", "1 from SIGTERM on, while what is in hand is finished.", status.stopping
    )
    yield GaugeMetricFamily(
        "hubbub_bundle_revision", "Revision of the bundle in force.", status.bundle.revision
    )
    if status.HasField("certificate_expires"):
        yield GaugeMetricFamily(
            "hubbub_certificate_expiry_timestamp_seconds",
            "When the listeners' certificate ends.",
            status.certificate_expires,
        )


def _store(status: estimate_pb2.GetStatusResponse) -> Iterable[Family]:
    store = status.store
    yield GaugeMetricFamily(
        "hubbub_store_failing",
        "1 while commits fail.",
        store.HasField("failing_since"),
    )
    yield GaugeMetricFamily(
        "hubbub_store_unreadable", "1 while the store cannot be read.", bool(store.unreadable)
    )
    if store.HasField("last_commit"):
        yield GaugeMetricFamily(
            "hubbub_last_commit_timestamp_seconds",
            "When reports were last made durable.",
            store.last_commit,
        )
    if store.HasField("size_bytes"):
        yield GaugeMetricFamily(
            "hubbub_store_size_bytes", "What the store takes on disk.", store.size_bytes
        )
    if store.HasField("free_bytes"):
        yield GaugeMetricFamily(
            "hubbub_store_free_bytes", "What is free on the store's disk.", store.free_bytes
        )
    if status.HasField("rounds_open"):
        rounds = GaugeMetricFamily(
            "hubbub_rounds", "Rounds that were sent a report or closed.", labels=["state"]
        )
        rounds.add_metric(["open"], status.rounds_open)
        rounds.add_metric(["closed"], status.rounds_closed)
        yield rounds


def _archive(status: estimate_pb2.GetStatusResponse) -> Iterable[Family]:
    archive = status.archive
    yield GaugeMetricFamily(
        "hubbub_archive_failing",
        "1 while a round is to be closed and cannot be archived.",
        archive.HasField("failing_since"),
    )
    yield GaugeMetricFamily(
        "hubbub_archive_rounds_overdue",
        "Rounds whose time is over, and that stay open since they cannot be archived.",
        archive.rounds_overdue,
    )


def _snapshots(status: estimate_pb2.GetStatusResponse) -> Iterable[Family]:
    """Of each metric what its newest snapshot says, and never what came after it."""
    labels = ["metric", "round"]
    n = GaugeMetricFamily(
        "hubbub_snapshot_reports", "Reports in a metric's newest snapshot.", labels=labels
    )
    taken = GaugeMetricFamily(
        "hubbub_snapshot_timestamp_seconds", "When that snapshot was taken.", labels=labels
    )
    for snapshot in status.snapshots:
        named = [snapshot.metric, str(snapshot.round)]
        n.add_metric(named, snapshot.n)
        taken.add_metric(named, snapshot.as_of)
    yield n
    yield taken


def _histogram(name: str, meaning: str, timings: Timings) -> HistogramMetricFamily:
    buckets = list(zip(_EDGES, timings.cumulative, strict=True))
    return HistogramMetricFamily(name, meaning, buckets=buckets, sum_value=timings.seconds)


def _label(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()


class Exporter:
    """Answers scrapes from the moment it is made, with nothing until it is told what to show."""

    def __init__(self, address: str) -> None:
        """Listen on host:port, for GET /metrics. Raises AddressTaken."""
        # Not the library's global one: whatever else runs in this process is not ours to tell.
        self._registry = CollectorRegistry(auto_describe=False)
        host, _, port = address.rpartition(":")
        try:
            self._server, self._thread = start_http_server(
                int(port), _bare(host), registry=self._registry
            )
        except OSError:
            raise AddressTaken(address) from None
        self._server.set_app(_at_its_path(make_wsgi_app(self._registry)))
        self.address: Final = f"{host}:{self._server.server_port}"

    def show(self, collector: StatusCollector) -> None:
        """The status, and what the system knows of this process: memory, files, time."""
        self._registry.register(collector)
        ProcessCollector(registry=self._registry)

    def close(self) -> None:
        """May be called again."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _at_its_path(metrics: WSGIApplication) -> WSGIApplication:
    """The library's own answers to every path: a scrape of a mistyped one would seem to work."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == _PATH:
            return metrics(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [f"the metrics are at {_PATH}\n".encode()]

    return answer


def _bare(host: str) -> str:
    """Without brackets; localhost as the other listeners take it, its IPv4 address."""
    return "127.0.0.1" if host == "localhost" else host.strip("[]")
