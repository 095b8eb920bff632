"""What an operator may know of a real process: by command, and as Prometheus scrapes it."""

import http.client
import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from hubbub.bundle import Bundle
from hubbub.randomness import SYSTEM
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2_grpc
from hubbub_aggregator.status_record import moment
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeFailed, ServeProcess
from tests.typed import typed

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 30
STEP = 100


@pytest.fixture
def bundle(operator: Operator) -> Bundle:
    return make_bundle(operator, make_metric("often"), make_metric("seldom"), revision=7)


@pytest.fixture
def serve(operator: Operator, bundle: Bundle, tmp_path: Path) -> Iterator[ServeProcess]:
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    with ServeProcess(operator, path, tmp_path / "s", flags=["--metrics-listen", "0"]) as serve:
        yield serve


def send(serve: ServeProcess, bundle: Bundle, name: str, n: int) -> None:
    metric = bundle.metrics[name]
    reports = [(os.urandom(16), metric.mechanism.randomise(0, SYSTEM)) for _ in range(n)]
    with serve.public_channel() as channel:
        stub = report_pb2_grpc.ReportServiceStub(channel)
        stub.SubmitReports(make_request(bundle, name, reports), timeout=TIMEOUT)


def send_nonsense(serve: ServeProcess, bundle: Bundle) -> None:
    request = make_request(bundle, "often")
    request.digest = b"?" * 32
    with serve.public_channel() as channel, pytest.raises(grpc.RpcError):
        report_pb2_grpc.ReportServiceStub(channel).SubmitReports(request, timeout=TIMEOUT)


def status(serve: ServeProcess) -> dict[str, Any]:
    run = typed("status", "--aggregator", serve.private, "--format", "json")
    assert run.returncode == 0, run.stderr
    record: dict[str, Any] = json.loads(run.stdout)
    return record


def scrape(serve: ServeProcess) -> dict[str, Metric]:
    """Every family that a scrape finds, by name."""
    address = serve.address("metrics")
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        assert response.status == 200
        text = response.read().decode()
    finally:
        connection.close()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_a_scrape_is_at_its_path_alone_in_the_newer_format_too(
    serve: ServeProcess, bundle: Bundle
) -> None:
    send(serve, bundle, "often", STEP)
    connection = http.client.HTTPConnection(serve.address("metrics"), timeout=TIMEOUT)
    with closing(connection):
        headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
        connection.request("GET", "/metrics", headers=headers)
        response = connection.getresponse()
        assert "openmetrics" in response.headers["Content-Type"]
        families = {
            family.name
            for family in openmetrics.text_string_to_metric_families(response.read().decode())
        }
    assert {"hubbub_reports", "hubbub_commit_seconds", "hubbub_build"} <= families
    for path in ("/", "/metric", "/metrics/more", "/favicon.ico"):
        with closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            assert (response.status, response.read()) == (404, b"the metrics are at /metrics\n")


def samples(family: Metric) -> dict[tuple[str, ...], float]:
    """Values by the values of the labels, in the order of their names."""
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for sample in family.samples
    }


def test_status_says_what_happened(serve: ServeProcess, bundle: Bundle) -> None:
    send(serve, bundle, "often", STEP + 1)
    send(serve, bundle, "seldom", 3)
    send_nonsense(serve, bundle)
    seen = status(serve)
    assert seen["reports"] == {"counted": STEP + 4}
    assert seen["requests_refused"] == {"unknown_digest": 1}
    assert (seen["rounds_open"], seen["rounds_closed"]) == (2, 0)
    assert (seen["requests_waiting"], seen["bytes_in_hand"]) == (0, 0)
    assert seen["opening"]["requests"] == seen["commit"]["requests"] == 2
    assert 0 < seen["commit"]["p50_seconds_at_most"] <= seen["commit"]["p99_seconds_at_most"]
    assert seen["store"]["writable"]
    assert seen["store"]["last_commit"] is not None
    assert 0 < seen["store"]["size_bytes"] < seen["store"]["free_bytes"]
    assert seen["bundle"]["revision"] == 7
    (in_force,) = seen["bundle"]["revisions"]
    assert (in_force["revision"], in_force["or_earlier"]) == (7, False)
    # Before its uptime is counted from, but for what both are rounded by.
    started = moment(seen["as_of"]) - seen["uptime_seconds"]
    assert moment(in_force["since"]) <= started + 0.002
    assert {row["metric"]: row["digest"] for row in seen["bundle"]["metrics"]} == {
        name: metric.digest.hex() for name, metric in bundle.metrics.items()
    }
    assert [(row["name"], row["tls"]) for row in seen["listeners"]] == [
        ("public", True),
        ("private", False),
        ("metrics", False),
    ]
    assert seen["certificate_expires"] > seen["as_of"]
    assert seen["uptime_seconds"] > 0
    text = typed("status", "--aggregator", serve.private).stdout
    assert "reports      counted 104\n" in text
    assert "seldom" in text


def test_of_one_metric_only_the_newest_snapshot_is_told(
    serve: ServeProcess, bundle: Bundle
) -> None:
    """What has come since then must be in no figure that names the metric, or its round."""
    send(serve, bundle, "often", STEP + 1)
    before = _about_metrics(serve)
    assert [row["n"] for row in before[0]] == [STEP + 1]
    send(serve, bundle, "often", STEP - 1)
    send(serve, bundle, "seldom", STEP - 1)
    assert _about_metrics(serve) == before


def _about_metrics(serve: ServeProcess) -> tuple[Any, Any]:
    """Whatever names a metric, in both places."""
    families = {
        name: samples(family)
        for name, family in scrape(serve).items()
        if any("often" in sample.labels.values() for sample in family.samples)
    }
    return status(serve)["snapshots"], families


def test_a_scrape_says_the_same(serve: ServeProcess, bundle: Bundle) -> None:
    before = scrape(serve)
    assert samples(before["hubbub_reports"])["counted",] == 0
    send(serve, bundle, "often", STEP)
    send_nonsense(serve, bundle)
    families = scrape(serve)
    reports = families["hubbub_reports"]
    assert reports.type == "counter"
    assert {sample.name for sample in reports.samples} == {"hubbub_reports_total"}
    outcomes = {"counted": STEP, "duplicate": 0, "not_opened": 0, "not_canonical": 0}
    assert samples(reports) == {(name,): count for name, count in outcomes.items()}
    assert samples(families["hubbub_requests_refused"])["unknown_digest",] == 1
    assert samples(families["hubbub_snapshot_reports"]) == {("often", "0"): STEP}
    assert samples(families["hubbub_rounds"]) == {("open",): 1, ("closed",): 0}
    assert samples(families["hubbub_bundle_revision"]) == {(): 7}
    commits = families["hubbub_commit_seconds"]
    assert commits.type == "histogram"
    buckets = {
        sample.labels["le"]: sample.value
        for sample in commits.samples
        if sample.name.endswith("_bucket")
    }
    assert buckets["+Inf"] == 1
    assert list(buckets.values()) == sorted(buckets.values())
    for gauge in ("process_resident_memory_bytes", "process_open_fds"):
        assert samples(families[gauge])[()] > 0
    names = {sample.name for family in families.values() for sample in family.samples}
    assert all(name.startswith(("hubbub_", "process_")) for name in names)
    # What the documentation lists, and no more.
    named = {re.sub("_(bucket|count|sum)$", "", name) for name in names if name[0] == "h"}
    listed = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(hubbub_[a-z_]+)[`{]", listed)) == named


def test_a_store_that_is_gone_is_told(serve: ServeProcess, bundle: Bundle, tmp_path: Path) -> None:
    send(serve, bundle, "often", 1)
    (tmp_path / "s").rename(tmp_path / "elsewhere")
    with pytest.raises(grpc.RpcError):
        send(serve, bundle, "often", 1)
    seen = status(serve)
    assert not seen["store"]["writable"]
    assert seen["store"]["failing_since"] > seen["store"]["last_commit"]
    assert "put back the file that was opened" in seen["store"]["unreadable"]
    assert (seen["rounds_open"], seen["store"]["size_bytes"]) == (None, None)
    families = scrape(serve)
    assert samples(families["hubbub_store_failing"]) == {(): 1}
    assert samples(families["hubbub_store_unreadable"]) == {(): 1}
    text = typed("status", "--aggregator", serve.private).stdout
    assert text.startswith("NOTHING IS COUNTED since 20")
    (tmp_path / "elsewhere").rename(tmp_path / "s")
    send(serve, bundle, "often", 1)
    assert status(serve)["store"]["writable"]


def test_devices_cannot_ask(serve: ServeProcess) -> None:
    with serve.public_channel() as channel:
        stub = estimate_pb2_grpc.AdminServiceStub(channel)
        with pytest.raises(grpc.RpcError) as raised:
            stub.GetStatus(estimate_pb2.GetStatusRequest(), timeout=TIMEOUT)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_taken_port_is_refused_before_the_store_is_made(
    serve: ServeProcess, operator: Operator, tmp_path: Path
) -> None:
    taken = serve.address("metrics")
    with pytest.raises(ServeFailed, match=f"cannot listen on {taken}"):
        ServeProcess(
            operator,
            tmp_path / "metrics.hubbub",
            tmp_path / "another",
            flags=["--metrics-listen", taken],
        )
    assert not (tmp_path / "another").exists()


def test_a_metrics_port_alone_is_on_loopback(serve: ServeProcess) -> None:
    assert serve.address("metrics").startswith("127.0.0.1:")


def test_health_is_an_exit_status(serve: ServeProcess) -> None:
    run = typed("health", "--aggregator", serve.private)
    assert (run.returncode, run.stdout) == (0, "serving\n")
    serve.terminate()
    run = typed("health", "--aggregator", serve.private)
    assert run.returncode == 1
    assert "no aggregator answers" in run.stderr
