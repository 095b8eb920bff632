"""What analysts read: snapshots alone, and the figures that the counts give."""

import csv
import io
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from hubbub.bundle import Bundle
from hubbub.randomness import SYSTEM
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from hubbub_aggregator.estimation.anytime import found
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.estimation.intervals import Target
from hubbub_aggregator.services.estimate import MAX_WATCHERS
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.processes import ServeProcess
from tests.typed import Ran, typed

TIMEOUT = 30
STEP = 100


class Reader:
    """A served bundle, reports for it, and both stubs."""

    def __init__(self, serve: ServeProcess, bundle: Bundle) -> None:
        self.serve = serve
        self.bundle = bundle
        self._public = serve.public_channel()
        self._private = serve.private_channel()
        self.reports = report_pb2_grpc.ReportServiceStub(self._public)
        self.estimates = estimate_pb2_grpc.EstimateServiceStub(self._private)
        self.admin = estimate_pb2_grpc.AdminServiceStub(self._private)

    def close(self) -> None:
        self._public.close()
        self._private.close()

    def send(self, name: str, n: int, round_number: int = 0) -> list[bytes]:
        """Count n fresh reports; returns their payloads."""
        metric = self.bundle.metrics[name]
        payloads = [metric.mechanism.randomise(i % 3, SYSTEM) for i in range(n)]
        reports = [(os.urandom(16), payload) for payload in payloads]
        request = make_request(self.bundle, name, reports, round_number)
        answer = self.reports.SubmitReports(request, timeout=TIMEOUT)
        assert answer.statuses == [report_pb2.REPORT_STATUS_COUNTED] * n
        return payloads

    def get(self, name: str, **how: Any) -> estimate_pb2.Estimates:
        request = estimate_pb2.GetEstimatesRequest(metric=name, **how)
        return self.estimates.GetEstimates(request, timeout=TIMEOUT).estimates

    def end(self, name: str, **how: Any) -> estimate_pb2.CloseRoundResponse:
        request = estimate_pb2.CloseRoundRequest(metric=name, **how)
        return self.admin.CloseRound(request, timeout=TIMEOUT)

    def run(self, *arguments: str) -> Ran:
        return typed(*arguments, "--aggregator", self.serve.private)


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    rounds = (10**9, 4, 10**9)
    return make_bundle(
        operator,
        make_metric("compared", mechanism="symmetric-unary", epsilon="ln 3", absent="none"),
        make_metric("stepped", mechanism="optimised-unary"),
        make_metric("watched"),
        make_metric("crowded"),
        make_metric("empty"),
        make_metric("silent"),
        make_metric("daily", periodic=rounds),
        make_metric("printed"),
        make_metric("future", starts=4_000_000_000),
    )


@pytest.fixture(scope="module")
def reader(
    operator: Operator, bundle: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "metrics.hubbub").write_bytes(bundle.signed)
    with ServeProcess(
        operator,
        folder / "metrics.hubbub",
        folder / "store.sqlite3",
        flags=("--publish-step", str(STEP)),
    ) as serve:
        reader = Reader(serve, bundle)
        yield reader
        reader.close()


@pytest.mark.parametrize("target", ["respondents", "population"])
def test_figures_are_those_of_the_counts(reader: Reader, target: Target) -> None:
    payloads = reader.send("compared", 400)
    answer = reader.get(
        "compared", target=getattr(estimate_pb2, f"TARGET_{target.upper()}"), level=0.9
    )
    metric = reader.bundle.metrics["compared"]
    if target == "respondents":  # the first of the two: these are all the reports there are
        expected = np.zeros(5, np.int64)
        for payload in payloads:
            expected[metric.mechanism.supported(payload)] += 1
        assert [row.count for row in answer.values] == expected.tolist()
    counts = np.array([row.count for row in answer.values])
    figures = estimate(metric.mechanism.support, counts, answer.n, target=target, level=0.9)
    for figure in fields(figures):
        got = [getattr(row, figure.name) for row in answer.values]
        np.testing.assert_array_equal(got, getattr(figures, figure.name), figure.name)
    present = found(metric.mechanism.support, counts, answer.n, level=0.9)
    assert [row.found for row in answer.values] == present.tolist()
    assert [row.value for row in answer.values] == ["excellent", "good", "fair", "poor", "none"]
    assert answer.digest == metric.digest
    assert answer.mechanism == "symmetric-unary"
    assert answer.epsilon.declared == "1.098612288669"
    assert answer.epsilon.realised <= answer.epsilon.declared
    assert answer.kind == "unbiased"
    assert answer.level == 0.9
    assert answer.publish_step == STEP


def test_polling_sees_steps_and_nothing_between(reader: Reader) -> None:
    shown = []
    for _ in range(60):
        reader.send("stepped", 7)
        shown.append(reader.get("stepped").n)
    # 420 reports in sevens: a snapshot each time at least 100 came after the last one.
    assert sorted(set(shown)) == [0, 105, 210, 315, 420]
    reader.send("stepped", 3)
    assert reader.get("stepped").n == 420
    summaries = reader.estimates.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT)
    (summary,) = [metric for metric in summaries.metrics if metric.name == "stepped"]
    assert [known.n for known in summary.rounds] == [420]
    closed = reader.end("stepped")
    assert (closed.round, closed.n, closed.closed_now) == (0, 423, True)
    answer = reader.get("stepped")
    assert (answer.n, answer.state) == (423, estimate_pb2.ROUND_STATE_CLOSED)
    # Nobody looks again.
    assert [row.found for row in answer.values] == [row.distinguishable for row in answer.values]
    assert not reader.end("stepped").closed_now


def test_before_the_first_snapshot_there_are_no_figures(reader: Reader) -> None:
    reader.send("empty", STEP - 1)
    answer = reader.get("empty")
    assert (answer.n, answer.as_of) == (0, 0)
    assert answer.state == estimate_pb2.ROUND_STATE_OPEN
    assert [row.value for row in answer.values] == ["excellent", "good", "fair", "poor"]
    for row in answer.values:
        assert row.count == 0
        assert not row.HasField("estimate")
        assert not row.HasField("influence")
    report = json.loads(reader.run("estimate", "empty", "--format", "json").stdout)
    assert report["n"] == 0
    assert report["as_of"] is None
    assert {row["estimate"] for row in report["values"]} == {None}
    assert "first snapshot needs 100 reports" in reader.run("estimate", "empty").stdout


def test_the_newest_round_with_a_snapshot_is_the_default(reader: Reader) -> None:
    assert reader.get("daily").round == 1  # the newest that has begun
    reader.send("daily", STEP, round_number=0)
    assert reader.get("daily").round == 0
    reader.send("daily", STEP, round_number=1)
    assert reader.get("daily").round == 1
    assert reader.get("daily", round=0).n == STEP
    assert reader.get("daily", round=3).state == estimate_pb2.ROUND_STATE_NOT_OPEN
    summaries = reader.estimates.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT)
    (summary,) = [metric for metric in summaries.metrics if metric.name == "daily"]
    assert [(known.round, known.n) for known in summary.rounds] == [(0, STEP), (1, STEP)]
    assert summary.listed


NOT_FOUND, INVALID = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("how", "code", "text"),
    [
        ({"metric": "nonsense"}, NOT_FOUND, "there is no metric 'nonsense'; there are: compared"),
        ({"metric": "daily", "round": 4}, NOT_FOUND, "rounds 0 to 3, not 4"),
        ({"metric": "daily", "level": 1.0}, INVALID, "between 0 and 1, not 1.0"),
        ({"metric": "daily", "level": -0.5}, INVALID, "between 0 and 1"),
        ({"metric": "daily", "level": float("nan")}, INVALID, "between 0 and 1"),
        ({"metric": "daily", "target": 7}, INVALID, "respondents or population"),
    ],
    ids=str,
)
def test_bad_questions(reader: Reader, how: Any, code: grpc.StatusCode, text: str) -> None:
    with pytest.raises(grpc.RpcError, match=text) as raised:
        reader.estimates.GetEstimates(estimate_pb2.GetEstimatesRequest(**how), timeout=TIMEOUT)
    assert raised.value.code() is code
    with pytest.raises(grpc.RpcError, match=text) as raised:
        next(
            reader.estimates.WatchEstimates(
                estimate_pb2.WatchEstimatesRequest(**how), timeout=TIMEOUT
            )
        )
    assert raised.value.code() is code


@pytest.mark.parametrize("how", [{"metric": "future"}, {"metric": "daily", "round": 3}], ids=str)
def test_a_round_that_has_not_begun_cannot_be_closed(reader: Reader, how: Any) -> None:
    with pytest.raises(grpc.RpcError, match="begun yet") as raised:
        reader.end(**{"name": how["metric"], **{k: v for k, v in how.items() if k != "metric"}})
    assert raised.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def test_a_watcher_sees_every_snapshot_until_the_end(reader: Reader) -> None:
    stream = reader.estimates.WatchEstimates(
        estimate_pb2.WatchEstimatesRequest(metric="watched"), timeout=TIMEOUT
    )
    seen = [next(stream).estimates.n]
    for _ in range(2):
        reader.send("watched", STEP)
        seen.append(next(stream).estimates.n)
    reader.send("watched", 1)
    reader.end("watched")
    rest = [answer.estimates for answer in stream]
    assert seen == [0, STEP, 2 * STEP]
    assert [(answer.n, answer.state) for answer in rest] == [
        (2 * STEP + 1, estimate_pb2.ROUND_STATE_CLOSED)
    ]


def test_watchers_leave_room_for_others(reader: Reader) -> None:
    request = estimate_pb2.WatchEstimatesRequest(metric="crowded")
    streams = [
        reader.estimates.WatchEstimates(request, timeout=TIMEOUT) for _ in range(MAX_WATCHERS)
    ]
    for stream in streams:
        next(stream)
    with pytest.raises(grpc.RpcError, match="watch already") as raised:
        next(reader.estimates.WatchEstimates(request, timeout=TIMEOUT))
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reader.get("crowded").n == 0
    for stream in streams:
        stream.cancel()
    # A place is free again once its watcher is seen to have gone.
    for _ in range(100):
        try:
            again = reader.estimates.WatchEstimates(request, timeout=TIMEOUT)
            next(again)
        except grpc.RpcError:
            threading.Event().wait(0.1)
        else:
            again.cancel()
            return
    pytest.fail("no place became free")


@pytest.fixture(scope="module")
def printed(reader: Reader) -> Reader:
    """With a thousand reports for the metric "printed"."""
    reader.send("printed", 1_000)
    return reader


class TestCommands:
    def test_json_says_what_the_service_says(self, printed: Reader) -> None:
        answer = printed.get("printed")
        run = printed.run("estimate", "printed", "--format", "json")
        report = json.loads(run.stdout)
        assert list(report) == [
            "metric",
            "digest",
            "round",
            "n",
            "plain",
            "mechanism",
            "epsilon",
            "kind",
            "target",
            "level",
            "as_of",
            "values",
        ]
        assert report["digest"] == answer.digest.hex()
        assert report["epsilon"] == {"declared": "1", "realised": "1"}
        assert report["n"] == 1_000
        assert report["as_of"].endswith("Z")
        for row, expected in zip(report["values"], answer.values, strict=True):
            assert row["value"] == expected.value
            assert row["estimate"] == expected.estimate
            assert row["simultaneous_high"] == expected.simultaneous_high
            assert row["rank_low"] == expected.rank_low
            assert row["distinguishable"] is expected.distinguishable
            assert row["found"] is expected.found

    def test_csv_has_a_row_for_each_value(self, printed: Reader) -> None:
        run = printed.run("estimate", "printed", "--format", "csv", "--target", "population")
        rows = list(csv.DictReader(io.StringIO(run.stdout)))
        assert [row["value"] for row in rows] == ["excellent", "good", "fair", "poor"]
        assert {row["target"] for row in rows} == {"population"}
        assert sum(int(row["count"]) for row in rows) == 1_000

    def test_table_names_target_level_and_doubt(self, printed: Reader) -> None:
        text = printed.run("estimate", "printed", "--level", "0.99").stdout
        assert "n = 1,000" in text
        assert "respondents" in text
        assert "99 % intervals" in text
        assert "std error" in text
        (poor,) = [line for line in text.splitlines() if line.startswith("poor")]
        assert poor.endswith("not distinguishable from zero")
        assert "is judged over all values at once" in text

    def test_unknown_metric_is_one_line(self, printed: Reader) -> None:
        run = printed.run("estimate", "nonsense")
        assert run.returncode == 1
        assert run.stderr.startswith("hubbub: there is no metric 'nonsense'")
        assert run.stderr.count("\n") == 1

    @pytest.mark.parametrize("level", ["0", "1", "95"])
    def test_level_is_a_probability(self, printed: Reader, level: str) -> None:
        run = printed.run("estimate", "printed", "--level", level)
        assert run.stderr == (
            f"hubbub: --level is between 0 and 1, for example 0.95, not {level}\n"
        )

    def test_close_says_what_it_did(self, printed: Reader) -> None:
        assert (
            "round 0: is closed now, with 1,000 reports" in printed.run("close", "printed").stdout
        )
        assert "was closed before" in printed.run("close", "printed", "--round", "0").stdout

    def test_a_round_closed_empty_waits_for_nothing(self, reader: Reader) -> None:
        reader.end("silent")
        text = reader.run("estimate", "silent").stdout
        assert "no figures: the round closed with no reports, or its counts were forgotten" in text
        assert "needs 100" not in text

    @pytest.mark.parametrize("command", ["estimate", "close"])
    def test_a_round_beyond_all_rounds(self, printed: Reader, command: str) -> None:
        run = printed.run(command, "printed", "--round", "9" * 23)
        assert run.returncode == 2
        assert "Traceback" not in run.stderr
        assert "Invalid value for '--round'" in run.stderr


@pytest.mark.parametrize("command", ["estimate", "close"])
def test_no_aggregator_is_one_line(command: str, tmp_path: Path) -> None:
    run = typed(command, "m", "--aggregator", "127.0.0.1:1")
    assert run.returncode == 1
    assert run.stderr.startswith("hubbub: no aggregator answers at 127.0.0.1:1")
    assert run.stderr.count("\n") == 1
