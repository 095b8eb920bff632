"""Open domains: any text is an answer, and candidates are looked for in what was retained."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import hubbub
from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub.domain import text_index
from hubbub.mechanisms import LocalHashing
from hubbub.randomness import SYSTEM
from hubbub.v1 import estimate_pb2, estimate_pb2_grpc, report_pb2, report_pb2_grpc
from hubbub_aggregator.candidates import (
    MAX_CANDIDATES,
    CandidatesError,
    read_candidates,
    require_candidates,
)
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services import candidates as decoding
from hubbub_aggregator.services.candidates import Decoder
from hubbub_aggregator.store import Batch, Snapshot, Store, as_ids
from hubbub_aggregator.tally import Tally
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.dashboard.crowd import close_round
from tests.harness import mean_range
from tests.processes import ServeProcess
from tests.typed import Ran, typed

TIMEOUT = 60
NAME = "drink"
# What people drink, and one that nobody does.
TRUTH = {"tea": 180, "coffee": 90, "maté": 30, "ink": 0}
# What an open domain counts before somebody asks.
EMPTY = np.zeros(0, np.int64)


def open_metric(name: str = NAME, **rest: Any) -> bytes:
    return make_metric(name, open=True, epsilon="4", source="drinks", **rest)


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    return make_bundle(
        operator, open_metric(), open_metric("counted"), open_metric("empty"), make_metric("listed")
    )


@pytest.fixture(scope="module")
def bundle_file(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("open") / "metrics.hubbub"
    path.write_bytes(bundle.signed)
    return path


def record(serve: ServeProcess, bundle_file: Path, answers: Sequence[str]) -> None:
    """Each answer by a device of its own: the shipped SDK, over TLS, its state in memory."""
    key = serve.operator.key
    bundle = Bundle.load(bundle_file, operator_key=key)
    with closing(hubbub.GrpcTransport(serve.public, bundle.certificate_authority)) as transport:
        for answer in answers:
            with hubbub.Client(
                bundle,
                operator_key=key,
                state_dir=None,
                budgets={"drinks": "4"},
                transport=transport,
            ) as device:
                assert device.metric(NAME).record(answer)
                assert device.flush(TIMEOUT)


def submit(serve: ServeProcess, bundle: Bundle, name: str, n: int) -> list[bytes]:
    """Count n reports; returns their payloads."""
    mechanism = bundle.metrics[name].mechanism
    payloads = [mechanism.randomise(text_index("tea"), SYSTEM) for _ in range(n)]
    request = make_request(bundle, name, [(os.urandom(16), payload) for payload in payloads])
    with serve.public_channel() as channel:
        stub = report_pb2_grpc.ReportServiceStub(channel)
        answer = stub.SubmitReports(request, timeout=TIMEOUT)
    assert answer.statuses == [report_pb2.REPORT_STATUS_COUNTED] * n
    return payloads


def decode(
    serve: ServeProcess, name: str, candidates: Sequence[str], **how: Any
) -> estimate_pb2.Estimates:
    request = estimate_pb2.DecodeRequest(metric=name, candidates=candidates, **how)
    with serve.private_channel() as channel:
        stub = estimate_pb2_grpc.EstimateServiceStub(channel)
        return stub.Decode(request, timeout=TIMEOUT).estimates


def supports(metric: Metric, payloads: Sequence[bytes], text: str) -> int:
    """How many payloads support a text, by the device's code."""
    assert isinstance(metric.mechanism, LocalHashing)
    reports = [metric.mechanism.read(payload) for payload in payloads]
    index = text_index(text)
    return sum(metric.mechanism.bucket(seed, index) == bucket for seed, bucket in reports)


@pytest.fixture(scope="module")
def serve(operator: Operator, bundle_file: Path) -> Iterator[ServeProcess]:
    """With a closed round of free text, whose aggregator was killed on the way."""
    store = bundle_file.with_name("store.sqlite3")
    answers = list(Counter(TRUTH).elements())
    with ServeProcess(operator, bundle_file, store) as serve:
        record(serve, bundle_file, answers[::2])
        serve.kill()
    with ServeProcess(operator, bundle_file, store) as serve:
        record(serve, bundle_file, answers[1::2])
        close_round(serve, NAME)
        yield serve


def test_candidates_are_found_in_what_devices_said(serve: ServeProcess, bundle: Bundle) -> None:
    answer = decode(serve, NAME, list(TRUTH))
    n = sum(TRUTH.values())
    assert (answer.n, answer.state) == (n, estimate_pb2.ROUND_STATE_CLOSED)
    assert [row.value for row in answer.values] == list(TRUTH)
    p, q = map(float, bundle.metrics[NAME].mechanism.support)
    shares = np.array(list(TRUTH.values())) / n
    expected = mean_range(
        shares * p + (1 - shares) * q,
        shares * p * (1 - p) + (1 - shares) * q * (1 - q),
        1,
        n,
        figures=len(TRUTH),
    )
    assert expected.holds(np.array([row.count for row in answer.values]) / n)


def test_figures_are_those_of_the_supports(
    serve: ServeProcess, bundle: Bundle, operator: Operator, bundle_file: Path, tmp_path: Path
) -> None:
    """Exactly, through kill -9 and a restart."""
    metric, texts = bundle.metrics["counted"], ["tea", "coffee", "ink"]
    with ServeProcess(operator, bundle_file, tmp_path / "s") as first:
        payloads = submit(first, bundle, "counted", 150)
        first.kill()
    with ServeProcess(operator, bundle_file, tmp_path / "s") as second:
        payloads += submit(second, bundle, "counted", 60)
        # These are not in a snapshot yet, and are not looked at.
        submit(second, bundle, "counted", 20)
        answer = decode(second, "counted", texts, level=0.9)
    # The first snapshot holds 150, and needs 100 more before it is replaced.
    counted = payloads[:150]
    assert answer.n == 150
    counts = np.array([supports(metric, counted, text) for text in texts])
    assert [row.count for row in answer.values] == counts.tolist()
    figures = estimate(metric.mechanism.support, counts, 150, level=0.9)
    assert [row.estimate for row in answer.values] == figures.estimate.tolist()
    assert [row.simultaneous_low for row in answer.values] == figures.simultaneous_low.tolist()


def test_before_the_first_snapshot_there_are_no_figures(serve: ServeProcess) -> None:
    answer = decode(serve, "empty", ["tea"])
    assert answer.n == 0
    assert not answer.values[0].HasField("estimate")


@pytest.mark.parametrize(
    ("name", "candidates", "text"),
    [
        ("listed", ["good"], "metric 'listed' lists its values"),
        (NAME, [], "must be 1 to 1,000, not 0"),
        (NAME, ["tea", "tea"], "'tea' is listed twice"),
        (NAME, ["x" * 257], "not 1 to 256 bytes"),
    ],
)
def test_what_cannot_be_asked(
    serve: ServeProcess, name: str, candidates: list[str], text: str
) -> None:
    with pytest.raises(grpc.RpcError, match=text) as raised:
        decode(serve, name, candidates)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


class TestDecoder:
    """Its limits, beside a store of 30 reports in 3 commits."""

    @pytest.fixture
    def store(self, bundle: Bundle, tmp_path: Path) -> Iterator[Store]:
        store = Store(str(tmp_path / "s"), writer=1, publish_step=1)
        store.adopt(bundle, now=0)
        metric = bundle.metrics[NAME]
        payload = metric.mechanism.randomise(0, SYSTEM)
        for _ in range(3):
            ids = as_ids(os.urandom(160))
            batch = Batch(metric.digest, 0, ids, lambda _: EMPTY, lambda _: 10 * payload)
            store.commit([batch], now=0)
        yield store
        store.close()

    @staticmethod
    def ask(
        decoder: Decoder, bundle: Bundle, wanted: Any = lambda: True, n: int = 30
    ) -> list[estimate_pb2.ValueEstimate]:
        metric = Catalogue(bundle, bundle.metrics.values()).by_name[NAME]
        snapshot = Snapshot(Tally(n, EMPTY), as_of=0)
        return decoder.figures(
            metric,
            0,
            snapshot,
            ["tea"],
            closed=True,
            target="respondents",
            level=0.95,
            wanted=wanted,
        )

    def test_a_call_takes_no_more_than_some_seconds(
        self, store: Store, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(decoding, "MAX_STEPS", 30 * 21)
        assert len(self.ask(Decoder(store), bundle)) == 1
        monkeypatch.setattr(decoding, "MAX_STEPS", 30 * 21 - 1)
        with pytest.raises(Refused, match="30 reports can be asked about 0 candidates") as raised:
            self.ask(Decoder(store), bundle)
        assert raised.value.code is grpc.StatusCode.INVALID_ARGUMENT

    def test_one_call_at_a_time(self, store: Store, bundle: Bundle) -> None:
        decoder = Decoder(store)

        def meanwhile() -> bool:
            with pytest.raises(Refused, match="another decoding is under way") as raised:
                self.ask(decoder, bundle)
            assert raised.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            return True

        assert len(self.ask(decoder, bundle, meanwhile)) == 1

    def test_nobody_is_answered_who_has_gone(self, store: Store, bundle: Bundle) -> None:
        decoder = Decoder(store)
        with pytest.raises(Refused, match="has gone"):
            self.ask(decoder, bundle, lambda: False)
        assert len(self.ask(decoder, bundle)) == 1


def estimate_command(serve: ServeProcess, *arguments: object) -> Ran:
    return typed("estimate", *arguments, "--aggregator", serve.private)


class TestCommand:
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        path = tmp_path / "drinks.txt"
        path.write_text("\ufefftea\r\n\n  \ncoffee\nmaté\nink", encoding="utf-8")
        return path

    def test_without_candidates_it_says_how_to_name_them(self, serve: ServeProcess) -> None:
        run = estimate_command(serve, NAME)
        assert "n = 300" in run.stdout
        assert run.stdout.endswith("an open domain: name candidates with --candidates FILE\n")
        run = estimate_command(serve, NAME, "--format", "json")
        report = json.loads(run.stdout)
        assert (report["n"], report["values"]) == (300, [])
        assert run.stderr == (
            f"hubbub: {NAME} has an open domain: name candidates with --candidates FILE\n"
        )

    def test_table(self, serve: ServeProcess, file: Path) -> None:
        lines = estimate_command(serve, NAME, "--candidates", file).stdout.splitlines()
        assert [line.split()[0] for line in lines[5:9]] == list(TRUTH)
        assert lines[8].endswith("not distinguishable from zero")

    def test_csv(self, serve: ServeProcess, file: Path) -> None:
        run = estimate_command(serve, NAME, "--candidates", file, "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(run.stdout)))
        assert [row["value"] for row in rows] == list(TRUTH)

    def test_a_listed_metric_is_one_line(self, serve: ServeProcess, file: Path) -> None:
        run = estimate_command(serve, "listed", "--candidates", file)
        assert run.returncode == 1
        assert run.stderr == (
            "hubbub: metric 'listed' lists its values, which are all estimated already; "
            "candidates are for open domains\n"
        )

    def test_a_file_that_is_not_there(self, serve: ServeProcess, tmp_path: Path) -> None:
        run = estimate_command(serve, NAME, "--candidates", tmp_path / "nowhere")
        assert run.stderr == f"hubbub: {tmp_path}/nowhere: No such file or directory\n"


class TestFile:
    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b"\n \n", "must be 1 to 1,000, not 0"),
            (b"tea\ncoffee\ntea\n", "'tea' is listed twice"),
            (b"tea\n\xff\xfe\n", "is not UTF-8 text"),
            ("ü".encode() * 129, "is not 1 to 256 bytes"),
        ],
    )
    def test_refused(self, tmp_path: Path, data: bytes, text: str) -> None:
        (tmp_path / "file").write_bytes(data)
        with pytest.raises(CandidatesError, match=text) as raised:
            read_candidates(tmp_path / "file")
        assert str(raised.value).startswith(f"{tmp_path}/file")

    def test_spaces_are_kept(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text(" tea\ntea \n")
        assert read_candidates(tmp_path / "file") == [" tea", "tea "]


def test_so_many_and_no_more() -> None:
    texts = [f"text {i}" for i in range(MAX_CANDIDATES + 1)]
    require_candidates(texts[1:])
    with pytest.raises(CandidatesError, match="not 1,001"):
        require_candidates(texts)
