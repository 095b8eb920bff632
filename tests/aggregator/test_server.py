"""The aggregator's own clock and end, in this process, on real listeners."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import ANY

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hubbub.bundle import Bundle
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2_grpc
from hubbub_aggregator.keys import load_opening_keys
from hubbub_aggregator.listeners import Listeners
from hubbub_aggregator.server import Aggregator
from hubbub_aggregator.store import Batch, Published, Store, as_ids
from tests.bundles import Operator, make_bundle, make_metric, make_request

TIMEOUT = 30
ENDS = 1_000_000

_METRICS = (
    make_metric("short", ends=ENDS),
    make_metric("endless"),
    make_metric("daily", periodic=(86_400, 5_000, 3_600)),
)


@dataclass
class Clock:
    now: float

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def bundle(operator: Operator) -> Bundle:
    return make_bundle(operator, *_METRICS)


@pytest.fixture
def clock() -> Clock:
    return Clock(ENDS - 10)


@dataclass
class Running:
    aggregator: Aggregator
    store: Store
    reports: report_pb2_grpc.ReportServiceStub
    estimates: estimate_pb2_grpc.EstimateServiceStub
    admin: estimate_pb2_grpc.AdminServiceStub
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
        store.adopt(bundle, now=clock())
        keys = load_opening_keys(operator.folder)
        aggregator = Aggregator(bundle, keys, store, listeners, clock=clock, publish_step=100)
        aggregator.start()
        yield Running(
            aggregator,
            store,
            report_pb2_grpc.ReportServiceStub(public),
            estimate_pb2_grpc.EstimateServiceStub(private),
            estimate_pb2_grpc.AdminServiceStub(private),
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


def test_nobody_who_watches_health_delays_the_end(running: Running) -> None:
    request = health_pb2.HealthCheckRequest()
    watches = [running.health.Watch(request, timeout=TIMEOUT) for _ in range(50)]
    with pytest.raises(grpc.RpcError, match="not watched") as raised:
        next(watches.pop())
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    for watch in watches[::2]:
        watch.cancel()
    # A grace that no test would outlast: the end waits for nothing.
    end = threading.Thread(target=running.aggregator.drain, args=(3_600,), daemon=True)
    end.start()
    end.join(TIMEOUT)
    assert not end.is_alive()


def test_health_knows_its_services_only(running: Running) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        running.health.Check(health_pb2.HealthCheckRequest(service="what"), timeout=TIMEOUT)
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


def test_the_ticker_outlives_contracts_it_does_not_know(
    running: Running, operator: Operator, bundle: Bundle, clock: Clock
) -> None:
    """Another process, started later on the same store, put a larger bundle in force."""
    larger = make_bundle(operator, *_METRICS, make_metric("a.newer", ends=ENDS), revision=2)
    running.store.adopt(larger, now=clock())
    fold = np.zeros(4, np.int64)
    for name in ("a.newer", "short"):
        digest = larger.metrics[name].digest
        running.store.commit([Batch(digest, 0, as_ids(bytes(16)), lambda _: fold)], now=0)
    clock.now = ENDS
    running.aggregator.close_due_rounds()
    assert running.store.published(bundle.metrics["short"].digest, 0) == Published(
        closed=True, snapshot=ANY
    )


def test_the_ticker_outlives_a_fault(
    running: Running,
    bundle: Bundle,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    running.reports.SubmitReports(make_request(bundle, "short"), timeout=TIMEOUT)
    watch = running.estimates.WatchEstimates(
        estimate_pb2.WatchEstimatesRequest(metric="short"), timeout=TIMEOUT
    )
    next(watch)
    faults = iter((KeyError("first"), KeyError("second")))
    open_rounds = running.store.open_rounds

    def faulty() -> list[tuple[bytes, int]]:
        for fault in faults:
            raise fault
        return open_rounds()

    monkeypatch.setattr(running.store, "open_rounds", faulty)
    clock.now = ENDS
    assert [answer.estimates.state for answer in watch][-1] == estimate_pb2.ROUND_STATE_CLOSED
    assert [record.message for record in caplog.records] == ["cannot close rounds now: 'first'"]


class TestRoundsThatHaveNotBegun:
    """Their window opens 300 seconds early, for devices whose clocks are fast."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock(3 * 86_400 - 200)

    def test_are_never_the_default(self, running: Running, bundle: Bundle, clock: Clock) -> None:
        running.reports.SubmitReports(make_request(bundle, "daily", round_number=3))
        assert self._default(running) == 2
        assert self._listed(running) == [0, 1, 2]
        # What has not arrived of a round that is being answered would be lost.
        with pytest.raises(grpc.RpcError, match=r"round 2 .* or round 1, the newest that is"):
            self._close(running)
        assert self._close(running, round=2).round == 2
        clock.now += 200
        assert self._default(running) == 3
        assert self._listed(running) == [0, 1, 2, 3]

    def test_cannot_be_closed(self, running: Running, clock: Clock) -> None:
        with pytest.raises(grpc.RpcError, match=r"round 3 .* has not begun yet") as raised:
            self._close(running, round=3)
        assert raised.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        clock.now += 200
        assert self._close(running, round=3).closed_now

    def test_only_the_newest_are_listed(self, running: Running, clock: Clock) -> None:
        clock.now = 1_000 * 86_400
        assert self._listed(running) == list(range(901, 1_001))

    def _default(self, running: Running) -> int:
        request = estimate_pb2.GetEstimatesRequest(metric="daily")
        return running.estimates.GetEstimates(request, timeout=TIMEOUT).estimates.round

    def _listed(self, running: Running) -> list[int]:
        answer = running.estimates.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT)
        (daily,) = [metric for metric in answer.metrics if metric.name == "daily"]
        return [known.round for known in daily.rounds]

    def _close(self, running: Running, **which: int) -> estimate_pb2.CloseRoundResponse:
        request = estimate_pb2.CloseRoundRequest(metric="daily", **which)
        return running.admin.CloseRound(request, timeout=TIMEOUT)


_LONG = f"health.{'x' * 40}"


class TestManyMetrics:
    @pytest.fixture
    def bundle(self, operator: Operator) -> Bundle:
        return make_bundle(operator, *(make_metric(f"{_LONG}{i}") for i in range(300)))

    @pytest.mark.parametrize(
        ("asked", "named"),
        [
            (f"health.{'x' * 40}", f"health.{'x' * 40}"),
            ("", f"health.{'x' * 40}0"),
            ("y" * 9_000, ""),
        ],
        ids=["near", "empty", "long"],
    )
    def test_a_mistake_names_a_few(self, running: Running, asked: str, named: str) -> None:
        request = estimate_pb2.GetEstimatesRequest(metric=asked)
        with pytest.raises(grpc.RpcError, match="there is no metric") as raised:
            running.estimates.GetEstimates(request, timeout=TIMEOUT)
        assert raised.value.code() is grpc.StatusCode.NOT_FOUND
        details = raised.value.details() or ""
        assert details.endswith(" and 290 more")
        assert f" {named}" in details


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
