"""The aggregator's own clock and end, in this process, on real listeners."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.contract import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2_grpc
from hubbub_aggregator.keys import load_opening_keys
from hubbub_aggregator.listeners import Listeners
from hubbub_aggregator.server import Aggregator
from hubbub_aggregator.store import Store
from tests.bundles import Operator, make_bundle, make_metric, make_request

TIMEOUT = 30
ENDS = 1_000_000


@dataclass
class Clock:
    now: float

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def bundle(operator: Operator) -> Bundle:
    return make_bundle(operator, make_metric("short", ends=ENDS), make_metric("endless"))


@pytest.fixture
def clock() -> Clock:
    return Clock(ENDS - 10)


@dataclass
class Running:
    aggregator: Aggregator
    reports: report_pb2_grpc.ReportServiceStub
    estimates: estimate_pb2_grpc.EstimateServiceStub
    health: health_pb2_grpc.HealthStub


@pytest.fixture
def running(operator: Operator, bundle: Bundle, clock: Clock, tmp_path: Path) -> Iterator[Running]:
    listeners = Listeners.take(
        "127.0.0.1:0",
        "127.0.0.1:0",
        public_credentials=None,
        private_credentials=None,
        threads=4,
    )
    with (
        closing(Store(str(tmp_path / "s"), writer=1, publish_step=100)) as store,
        grpc.insecure_channel(listeners.public_address) as public,
        grpc.insecure_channel(listeners.private_address) as private,
    ):
        store.adopt(bundle)
        keys = load_opening_keys(operator.folder)
        aggregator = Aggregator(bundle, keys, store, listeners, clock=clock, publish_step=100)
        aggregator.start()
        yield Running(
            aggregator,
            report_pb2_grpc.ReportServiceStub(public),
            estimate_pb2_grpc.EstimateServiceStub(private),
            health_pb2_grpc.HealthStub(public),
        )
        aggregator.drain(grace=5)


def test_a_round_closes_by_itself_when_its_time_is_over(
    running: Running, bundle: Bundle, clock: Clock
) -> None:
    request = make_request(bundle, "short")
    assert len(running.reports.SubmitReports(request, timeout=TIMEOUT).statuses) == 1
    watch = running.estimates.WatchEstimates(
        estimate_pb2.WatchEstimatesRequest(metric="short"), timeout=TIMEOUT
    )
    first = next(watch).estimates
    assert (first.n, first.state) == (0, estimate_pb2.ROUND_STATE_OPEN)
    clock.now = ENDS
    last = [answer.estimates for answer in watch][-1]
    assert (last.n, last.state) == (1, estimate_pb2.ROUND_STATE_CLOSED)
    assert last.as_of == ENDS


def test_an_unanswered_round_is_closed_by_the_clock_alone(running: Running, clock: Clock) -> None:
    clock.now = ENDS
    answer = running.estimates.GetEstimates(
        estimate_pb2.GetEstimatesRequest(metric="short"), timeout=TIMEOUT
    )
    assert answer.estimates.state == estimate_pb2.ROUND_STATE_CLOSED


def test_watchers_are_sent_away_at_the_end(running: Running) -> None:
    watch = running.estimates.WatchEstimates(
        estimate_pb2.WatchEstimatesRequest(metric="endless"), timeout=TIMEOUT
    )
    next(watch)
    running.aggregator.drain(grace=5)
    with pytest.raises(grpc.RpcError) as raised:
        next(watch)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "the aggregator is stopping" in str(raised.value.details())


def test_health_says_first_that_the_end_is_near(running: Running) -> None:
    watch = running.health.Watch(health_pb2.HealthCheckRequest(), timeout=TIMEOUT)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    running.aggregator.drain(grace=1)
    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING


def test_counters_are_totals_over_all_metrics(running: Running, bundle: Bundle) -> None:
    for metric in ("short", "endless"):
        request = make_request(bundle, metric)
        for _ in range(2):
            running.reports.SubmitReports(request, timeout=TIMEOUT)
    request.digest = b"x" * 32
    with pytest.raises(grpc.RpcError):
        running.reports.SubmitReports(request, timeout=TIMEOUT)
    assert running.aggregator.counters.totals() == {
        "REFUSAL_REASON_UNKNOWN_DIGEST": 1,
        "REPORT_STATUS_COUNTED": 2,
        "REPORT_STATUS_DUPLICATE": 2,
    }
