"""Snapshots from a real aggregator: read once for all viewers, kept when it goes away."""

import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest

from hubbub.bundle import Bundle
from hubbub_dashboard.over_time.figures import Changes, Shares
from hubbub_dashboard.reading.answers import Metric, Round, RoundOf, RoundState, Target
from hubbub_dashboard.reading.source import Source
from tests.bundles import Operator, make_metric
from tests.dashboard.crowd import answer, close_round, read_estimates
from tests.processes import PATIENCE, ServeProcess, until

NAME = "health.self_rated"
DAY = 86_400


class CallCounter(grpc.UnaryUnaryClientInterceptor):
    """Counts the calls that go out."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.before: dict[str, Callable[[], object]] = {}
        """What is done before a call of that name goes out."""

    def intercept_unary_unary(
        self, continuation: Callable[..., Any], details: Any, request: Any
    ) -> Any:
        self.calls.append(details.method.rpartition("/")[2])
        self.before.get(self.calls[-1], lambda: None)()
        return continuation(details, request)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[ServeProcess]:
    operator = Operator.create(tmp_path / "keys")
    path = tmp_path / "metrics.hubbub"
    path.write_bytes(operator.sign([make_metric(NAME)]))
    with ServeProcess(operator, path, tmp_path / "reports.sqlite3") as serve:
        yield serve


def test_a_source_follows_the_catalogue_and_outlives_the_aggregator(
    serve: ServeProcess, tmp_path: Path
) -> None:
    bundle = Bundle.load(tmp_path / "metrics.hubbub", operator_key=serve.operator.key)
    counter, clock = CallCounter(), Clock()
    channel = grpc.intercept_channel(serve.private_channel(), counter)
    source = Source(channel, max_age=1.0, clock=clock)

    def only_metric() -> Metric:
        (metric,) = source.metrics().value or ()
        return metric

    metric = only_metric()
    reading = source.estimates(metric, metric.newest)
    assert reading.value is not None
    assert (reading.value.n, reading.value.values) == (0, ())
    assert counter.calls == ["ListMetrics", "GetEstimates"]

    # Other viewers of the same tick cost nothing.
    for _ in range(10):
        assert source.estimates(only_metric(), metric.newest) is not None
    assert counter.calls == ["ListMetrics", "GetEstimates"]

    # As long as the catalogue announces nothing new, a tick is one call.
    clock.now += 1.0
    metric = only_metric()
    assert source.estimates(metric, metric.newest).value is reading.value
    assert counter.calls == ["ListMetrics", "GetEstimates", "ListMetrics"]

    counter.calls.clear()
    for _ in range(10):
        status = source.status()
    assert counter.calls == ["GetStatus"]
    assert status.value is not None
    assert status.value.history[-1].counted == 0

    answer(serve, bundle, NAME, [0] * 200)
    close_round(serve, NAME)
    clock.now += 1.0
    metric = only_metric()
    assert (metric.newest.n, metric.newest.state) == (200, RoundState.CLOSED)
    closed = source.estimates(metric, metric.newest)
    assert closed.value is not None
    truth = read_estimates(serve, NAME)
    assert [value.estimate for value in closed.value.values] == [
        value.estimate for value in truth.values
    ]
    assert closed.value.digest == truth.digest == metric.digest

    status = source.status()
    assert status.value is not None
    assert status.value.record["reports"] == {"counted": 200}
    assert status.value.history[-1].counted == 200

    serve.kill()
    clock.now += 60.0
    assert source.status().failure == "UNAVAILABLE"
    assert source.status().value is status.value
    away = source.metrics()
    assert away.failure == "UNAVAILABLE"
    assert (away.value, away.answered) == ((metric,), clock.now - 60.0)
    assert source.estimates(metric, metric.newest).value is closed.value
    channel.close()


def test_what_never_changes_is_asked_for_once(serve: ServeProcess, tmp_path: Path) -> None:
    bundle = Bundle.load(tmp_path / "metrics.hubbub", operator_key=serve.operator.key)
    answer(serve, bundle, NAME, [0] * 200)
    close_round(serve, NAME)
    counter, clock = CallCounter(), Clock()
    channel = grpc.intercept_channel(serve.private_channel(), counter)
    source = Source(channel, max_age=1.0, clock=clock)
    (metric,) = source.metrics().value or ()
    newest = RoundOf(metric, metric.newest)
    for _ in range(3):
        contract = source.contract(metric).value
        comparison = source.comparison(newest, newest, (("fair", "poor"),)).value
        clock.now += 60.0
    assert counter.calls == ["ListMetrics", "GetContract", "Compare"]
    assert contract == bundle.metrics[NAME]
    assert (contract.digest, contract.domain.labels) == (metric.digest, metric.values)
    assert comparison is not None
    assert comparison.final
    shares = {value.value: value.estimate for value in read_estimates(serve, NAME).values}
    (difference,) = comparison.differences
    assert difference.estimate == pytest.approx(shares["fair"] - shares["poor"])
    channel.close()


def test_rounds_of_a_series_are_asked_for_once_and_again_when_they_change(
    tmp_path: Path,
) -> None:
    operator = Operator.create(tmp_path / "keys")
    path = tmp_path / "metrics.hubbub"
    daily = make_metric(NAME, starts=int(time.time()) - 3 * DAY, periodic=(DAY, 9, 90 * DAY))
    path.write_bytes(operator.sign([daily]))
    bundle = Bundle.load(path, operator_key=operator.key)
    with ServeProcess(operator, path, tmp_path / "reports.sqlite3") as serve:
        for number in (0, 1, 2):
            answer(serve, bundle, NAME, [number] * 200, number=number)
        close_round(serve, NAME, 0)
        close_round(serve, NAME, 1)
        counter, clock = CallCounter(), Clock()
        channel = grpc.intercept_channel(serve.private_channel(), counter)
        source = Source(channel, max_age=1.0, clock=clock)

        def look(target: Target = Target.RESPONDENTS) -> tuple[Shares, Changes]:
            clock.now += 60.0
            (metric,) = source.metrics().value or ()
            first, second, newest = metric.rounds[:3]
            source.shares(metric, first, target)
            shares = source.shares(metric, newest, target).value
            changes = source.changes(metric, first, second, target, 0.99).value
            assert shares is not None
            assert changes is not None
            return shares, changes

        shares, changes = look()
        assert look() == (shares, changes)
        asked = [call for call in counter.calls if call != "ListMetrics"]
        assert asked == ["GetEstimates", "GetEstimates", "Compare"]
        truth = read_estimates(serve, NAME)
        for name in ("estimate", "std_error"):
            assert list(getattr(shares, name)) == [getattr(each, name) for each in truth.values]
        for name in ("low", "high"):
            assert list(getattr(shares, name)) == [
                getattr(each, f"simultaneous_{name}") for each in truth.values
            ]
        assert (changes.level, changes.size) == (0.99, 4)

        # The newest gets a later snapshot, and that alone is read again.
        counter.calls.clear()
        answer(serve, bundle, NAME, [3] * 100, number=2)
        later, same = look()
        assert (later.n, same) == (300, changes)
        assert counter.calls == ["ListMetrics", "GetEstimates"]

        # Others' shares are other figures.
        counter.calls.clear()
        assert look(Target.POPULATION)[1] is not changes
        assert counter.calls == ["ListMetrics", "GetEstimates", "GetEstimates", "Compare"]
        channel.close()


def test_nothing_has_answered_yet() -> None:
    # Port 9 (discard) is nobody's gRPC server.
    with grpc.insecure_channel("127.0.0.1:9") as channel:
        reading = Source(channel, max_age=1.0, clock=Clock()).metrics()
    assert reading.value is None
    assert reading.answered is None
    assert reading.failure == "UNAVAILABLE"


def test_another_aggregator_at_the_same_address_is_believed_about_metrics_of_the_same_name(
    tmp_path: Path,
) -> None:
    clock, address, shown = Clock(), "127.0.0.1:0", []
    source: Source | None = None
    for values in (("yes", "no"), ("red", "green")):
        folder = tmp_path / values[0]
        folder.mkdir()
        operator, path = Operator.create(folder / "keys"), folder / "metrics.hubbub"
        path.write_bytes(operator.sign([make_metric(NAME, values=values)]))
        bundle = Bundle.load(path, operator_key=operator.key)
        with ServeProcess(
            operator, path, folder / "reports.sqlite3", private_listen=address
        ) as serve:
            address = serve.private
            answer(serve, bundle, NAME, [0] * 100)
            close_round(serve, NAME)
            source = source or Source(serve.private_channel(), max_age=1.0, clock=clock)
            until(partial(_lists, source, clock, values))
            (metric,) = source.metrics().value or ()
            found = source.estimates(metric, metric.newest).value
            assert found is not None
            shown.append(tuple(value.label for value in found.values))
            side = RoundOf(metric, metric.newest)
            compared = source.comparison(side, side, ((values[0], values[1]),)).value
            assert compared is not None
            assert [each.left for each in compared.differences] == [values[0]]
    assert shown == [("yes", "no"), ("red", "green")]


def _lists(source: Source, clock: Clock, values: tuple[str, ...]) -> bool:
    clock.now += 2.0
    metrics = source.metrics()
    return not metrics.failure and [each.values for each in metrics.value or ()] == [values]


def test_another_store_with_as_many_reports_is_believed_though_nobody_saw_the_aggregator_away(
    tmp_path: Path,
) -> None:
    operator, path = Operator.create(tmp_path / "keys"), tmp_path / "metrics.hubbub"
    path.write_bytes(operator.sign([make_metric(NAME, epsilon="4")]))
    bundle = Bundle.load(path, operator_key=operator.key)
    address, clock = "127.0.0.1:0", Clock()
    channel: grpc.Channel | None = None
    shown: list[list[float]] = []
    for value, label in enumerate(("excellent", "good")):
        with ServeProcess(
            operator, path, tmp_path / f"{label}.sqlite3", private_listen=address
        ) as serve:
            address = serve.private
            answer(serve, bundle, NAME, [value] * 500)
            close_round(serve, NAME)
            if channel is None:
                channel = serve.private_channel()
                source = Source(channel, max_age=1.0, clock=clock)
            grpc.channel_ready_future(channel).result(PATIENCE)
            clock.now += 60.0
            catalogue = source.metrics()
            assert catalogue.failure is None
            (metric,) = catalogue.value or ()
            assert metric.newest == Round(0, RoundState.CLOSED, 500)
            side = RoundOf(metric, metric.newest)
            estimates = source.estimates(metric, metric.newest).value
            shares = source.shares(metric, metric.newest, Target.RESPONDENTS).value
            comparison = source.comparison(side, side, (("excellent", "good"),)).value
            assert estimates is not None
            assert shares is not None
            assert comparison is not None
            truth = [each.estimate for each in read_estimates(serve, NAME).values]
            assert [each.estimate for each in estimates.values] == list(shares.estimate) == truth
            assert comparison.differences[0].estimate == pytest.approx(truth[0] - truth[1])
            shown.append(truth)
    assert shown[0] != shown[1]


def test_figures_of_another_contract_by_the_same_name_are_not_taken(tmp_path: Path) -> None:
    operator, path = Operator.create(tmp_path / "keys"), tmp_path / "metrics.hubbub"
    address, clock = "127.0.0.1:0", Clock()
    series: Any = {"starts": int(time.time()) - DAY - 60, "periodic": (DAY, 9, 9 * DAY)}
    listed: list[Metric] = []
    for place, epsilon in enumerate(("1", "4")):
        path.write_bytes(operator.sign([make_metric(NAME, epsilon=epsilon, **series)]))
        bundle = Bundle.load(path, operator_key=operator.key)
        with ServeProcess(
            operator, path, tmp_path / f"{place}.sqlite3", private_listen=address
        ) as serve:
            address = serve.private
            for number in (0, 1):
                answer(serve, bundle, NAME, [0] * 100, number=number)
                close_round(serve, NAME, number)
            if not listed:
                channel = serve.private_channel()
                source = Source(channel, max_age=60.0, clock=clock)
                listed += source.metrics().value or ()
                continue
            grpc.channel_ready_future(channel).result(PATIENCE)
            # The catalogue is still young.
            (metric,) = listed
            before, after = metric.rounds
            for reading in (
                source.estimates(metric, after),
                source.shares(metric, after, Target.RESPONDENTS),
                source.comparison(RoundOf(metric, after), RoundOf(metric, before)),
                source.changes(metric, before, after, Target.RESPONDENTS, 0.99),
            ):
                assert reading.value is None
                assert reading.failure is not None
                assert "contract" in reading.failure
    channel.close()


def test_while_the_catalogue_is_not_answered_nothing_else_is_asked(serve: ServeProcess) -> None:
    counter, clock = CallCounter(), Clock()
    channel = grpc.intercept_channel(serve.private_channel(), counter)
    source = Source(channel, max_age=1.0, clock=clock)
    (metric,) = source.metrics().value or ()
    status = source.last_status()
    counter.calls.clear()
    serve.kill()
    clock.now += 60.0
    side = RoundOf(metric, metric.newest)
    for reading in (
        source.shares(metric, metric.newest, Target.RESPONDENTS),
        source.changes(metric, metric.newest, metric.newest, Target.RESPONDENTS, 0.99),
        source.estimates(metric, metric.newest),
        source.comparison(side, side),
        source.contract(metric),
    ):
        assert (reading.value, reading.failure) == (None, "UNAVAILABLE")
    assert source.last_status() is status
    assert counter.calls == ["ListMetrics"]
    channel.close()


def test_a_call_that_may_take_its_time_ends_with_the_aggregator(serve: ServeProcess) -> None:
    counter = CallCounter()
    channel = grpc.intercept_channel(serve.private_channel(), counter)
    source = Source(channel, max_age=0.0, clock=time.time)
    (metric,) = source.metrics().value or ()
    # Stopped while the call is on its way: to its end nobody would know.
    counter.calls.clear()
    counter.before["GetEstimates"] = lambda: serve.send(signal.SIGSTOP)
    reading = source.shares(metric, metric.newest, Target.RESPONDENTS)
    serve.send(signal.SIGCONT)
    assert (reading.value, reading.failure) == (None, "DEADLINE_EXCEEDED")
    # Asked again long before the call's own time is over.
    assert counter.calls == ["ListMetrics", "GetEstimates", "ListMetrics"]
    channel.close()
