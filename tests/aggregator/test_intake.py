"""Intake at every moment of a round's life, by a clock the test turns."""

import gc
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hubbub.bundle import Bundle
from hubbub.contract import Metric
from hubbub.limits import CLOCK_SKEW
from hubbub.randomness import SYSTEM
from hubbub.v1 import report_pb2
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.committer import Committer
from hubbub_aggregator.counters import Counters
from hubbub_aggregator.intake import Intake
from hubbub_aggregator.keys import load_opening_keys
from hubbub_aggregator.observations import Histogram, Observations
from hubbub_aggregator.opening import Opening
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.publish import Announcements
from hubbub_aggregator.refusals import ReportsRefused
from hubbub_aggregator.sealed import Sealed
from hubbub_aggregator.store import Batch, Committed, Store, StoreDamaged, StoreUnavailable
from hubbub_aggregator.submission import Submission
from tests.aggregator.waiting import Waiting
from tests.bundles import Operator, make_bundle, make_metric, make_request
from tests.devices import soon

START = 1_000_000
EVERY, ROUNDS, GRACE = 3_600, 3, 600
TIMEOUT = 30
COUNTED = report_pb2.REPORT_STATUS_COUNTED


@dataclass
class Clock:
    now: float = START

    def __call__(self) -> float:
        return self.now


class Setting:
    """An intake with everything behind it, and requests to hand in."""

    def __init__(
        self, operator: Operator, path: Path, *, retain: bool = False, **options: Any
    ) -> None:
        metric = make_metric(
            "daily",
            mechanism="optimised-unary",
            starts=START,
            periodic=(EVERY, ROUNDS, GRACE),
            retain=retain,
        )
        self.bundle: Bundle = make_bundle(operator, metric)
        self.metric: Metric = self.bundle.metrics["daily"]
        self.clock = Clock()
        self.counters = Counters()
        self.store = Store(str(path / "store.sqlite3"), writer=1, publish_step=1)
        self.store.adopt(self.bundle, now=self.clock())
        self.observations = Observations(self.clock)
        self.committer = Committer(self.store, Announcements(), self.clock, self.observations)
        self.opening = Opening(self.committer.commit, Histogram())
        self.intake = Intake(
            Catalogue(self.bundle, self.store.metrics()),
            load_opening_keys(operator.folder),
            self.opening,
            self.committer,
            counters=self.counters,
            observations=self.observations,
            clock=self.clock,
            **options,
        )

    def request(
        self, n: int = 1, round_number: int = 0, ids: list[bytes] | None = None
    ) -> report_pb2.SubmitReportsRequest:
        ids = ids or [os.urandom(16) for _ in range(n)]
        reports = [(report_id, self.metric.mechanism.randomise(1, SYSTEM)) for report_id in ids]
        return make_request(self.bundle, "daily", reports, round_number)

    def refusal(self, request: report_pb2.SubmitReportsRequest) -> str:
        """The reason for which a request is refused."""
        with pytest.raises(ReportsRefused) as raised:
            self.intake.submit(request)
        reason = report_pb2.RefusalReason.Name(raised.value.reason)
        assert self.counters.totals()[reason] >= 1
        return reason.removeprefix("REFUSAL_REASON_")

    def close(self) -> None:
        self.opening.close()
        self.committer.close()
        self.store.close()


@pytest.fixture
def setting(operator: Operator, tmp_path: Path) -> Iterator[Setting]:
    with closing(Setting(operator, tmp_path)) as setting:
        yield setting


@pytest.fixture
def importing(operator: Operator, tmp_path: Path) -> Iterator[Setting]:
    """One that takes plain reports."""
    with closing(Setting(operator, tmp_path, take_plain=True)) as setting:
        yield setting


@pytest.fixture
def retaining(operator: Operator, tmp_path: Path) -> Iterator[Setting]:
    """One whose metric retains its reports."""
    with closing(Setting(operator, tmp_path, retain=True)) as setting:
        yield setting


class TestRounds:
    @pytest.mark.parametrize("round_number", range(ROUNDS))
    def test_take_reports_from_a_little_before_to_the_end_of_grace(
        self, setting: Setting, round_number: int
    ) -> None:
        begins = START + round_number * EVERY
        request = setting.request(round_number=round_number)
        setting.clock.now = begins - CLOCK_SKEW - 0.1
        assert setting.refusal(request) == "ROUND_NOT_OPEN"
        setting.clock.now = begins - CLOCK_SKEW
        assert setting.intake.submit(request) == bytes([COUNTED])
        setting.clock.now = begins + EVERY + GRACE - 0.1
        assert setting.intake.submit(setting.request(round_number=round_number)) == bytes([COUNTED])
        setting.clock.now = begins + EVERY + GRACE
        assert setting.refusal(request) == "ROUND_CLOSED"

    @pytest.mark.parametrize("round_number", [ROUNDS, 2**63, 2**64 - 1])
    def test_beyond_the_schedule(self, setting: Setting, round_number: int) -> None:
        assert setting.refusal(setting.request(round_number=round_number)) == "NO_SUCH_ROUND"

    def test_closed_by_the_operator(self, setting: Setting) -> None:
        request = setting.request()
        setting.intake.submit(request)
        setting.store.close_round(setting.metric.digest, 0, now=START)
        assert setting.refusal(setting.request()) == "ROUND_CLOSED"
        assert setting.refusal(request) == "ROUND_CLOSED"


class TestOrder:
    """The cheapest reason is found first, before anything is decrypted."""

    def test_unknown_digest_goes_before_everything(self, setting: Setting) -> None:
        request = report_pb2.SubmitReportsRequest(digest=b"x" * 32, round=99, sealed=b"x")
        assert setting.refusal(request) == "UNKNOWN_DIGEST"

    def test_round_goes_before_key(self, setting: Setting) -> None:
        request = setting.request(round_number=ROUNDS)
        request.key_id = b"unknown!"
        assert setting.refusal(request) == "NO_SUCH_ROUND"

    def test_key_goes_before_length(self, setting: Setting) -> None:
        request = setting.request()
        request.key_id, request.sealed = b"unknown!", b"x"
        assert setting.refusal(request) == "UNKNOWN_KEY"

    def test_length_goes_before_number(self, setting: Setting) -> None:
        request = setting.request()
        request.sealed = request.sealed * 1_001 + b"x"
        assert setting.refusal(request) == "WRONG_LENGTH"


def test_overloaded(operator: Operator, tmp_path: Path) -> None:
    setting = Setting(operator, tmp_path, max_bytes_in_hand=1_000)
    assert setting.refusal(setting.request(100)) == "OVERLOADED"
    # What was turned away holds nothing, and neither does what was counted.
    for _ in range(20):
        assert setting.intake.submit(setting.request()) == bytes([COUNTED])
    setting.close()


def test_store_unavailable_counts_nothing_and_recovers(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = setting.request(3)

    def full(batches: list[Batch], *, now: float) -> Committed:
        raise StoreUnavailable("here", "disk full")

    def broken(batches: list[Batch], *, now: float) -> Committed:
        raise RuntimeError("a fault of our own")

    for fault in (full, broken):
        with monkeypatch.context() as patch:
            patch.setattr(setting.store, "commit", fault)
            assert setting.refusal(request) == "STORE_UNAVAILABLE"
    assert setting.intake.submit(request) == bytes([COUNTED] * 3)


def test_after_the_end_nothing_is_counted(setting: Setting) -> None:
    setting.committer.close()
    assert setting.refusal(setting.request()) == "STORE_UNAVAILABLE"


def test_one_report_sent_by_many_at_once_counts_once(setting: Setting) -> None:
    """Within one group commit and across several, the id decides."""
    report_id = os.urandom(16)
    requests = [setting.request(ids=[report_id]) for _ in range(32)]
    statuses: list[int] = []
    gate = threading.Barrier(len(requests))

    def send(request: report_pb2.SubmitReportsRequest) -> None:
        gate.wait()
        statuses.extend(setting.intake.submit(request))

    threads = [threading.Thread(target=send, args=(request,)) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [COUNTED] + [report_pb2.REPORT_STATUS_DUPLICATE] * 31
    published = setting.store.published(setting.metric.digest, 0)
    assert published is not None
    assert published.snapshot is not None
    assert published.snapshot.tally.n == 1


def test_many_rounds_in_one_group(setting: Setting) -> None:
    """Requests of different rounds, counted at the same time, do not mix."""
    setting.clock.now = START + EVERY
    sizes = [1, 2, 3, 4, 5, 6, 7, 8]
    requests = [setting.request(n, round_number=n % 2) for n in sizes]
    threads = [
        threading.Thread(target=setting.intake.submit, args=(request,)) for request in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in (0, 1):
        expected = sum(n for n in sizes if n % 2 == number)
        assert setting.store.close_round(setting.metric.digest, number, now=START).n == expected


def test_counts_are_those_of_the_payloads(setting: Setting) -> None:
    """What is published is the sum of what was sent, bit by bit."""
    payloads = [setting.metric.mechanism.randomise(i % 4, SYSTEM) for i in range(200)]
    reports = [(os.urandom(16), payload) for payload in payloads]
    request = make_request(setting.bundle, "daily", reports)
    assert setting.intake.submit(request) == bytes([COUNTED] * 200)
    expected = np.zeros(4, np.int64)
    for payload in payloads:
        expected[setting.metric.mechanism.supported(payload)] += 1
    published = setting.store.published(setting.metric.digest, 0)
    assert published is not None
    assert published.snapshot is not None
    np.testing.assert_array_equal(published.snapshot.tally.cells, expected)


def reports_of(setting: Setting, n: int) -> list[tuple[bytes, bytes]]:
    randomise = setting.metric.mechanism.randomise
    return [(os.urandom(16), randomise(i % 4, SYSTEM)) for i in range(n)]


class TestWithoutAThread:
    """Requests of few reports are begun and ended, and nobody stays with them between."""

    def ended(
        self, setting: Setting, request: report_pb2.SubmitReportsRequest
    ) -> Callable[[], bytes]:
        settled: list[Submission] = []
        told = threading.Event()
        assert setting.intake.begin(request, lambda one: (settled.append(one), told.set()))
        assert told.wait(TIMEOUT)
        assert (setting.intake.bytes_in_hand, setting.observations.requests_waiting) == (
            len(request.sealed) + len(request.ids) + len(request.payloads),
            1,
        )
        return partial(setting.intake.end, *settled)

    def assert_nothing_in_hand(self, setting: Setting, timed: int) -> None:
        assert (setting.intake.bytes_in_hand, setting.observations.requests_waiting) == (0, 0)
        assert setting.observations.commits.timings().count == timed

    def test_they_are_counted(self, importing: Setting) -> None:
        request = importing.request(15)
        assert self.ended(importing, request)() == bytes([COUNTED] * 15)
        assert self.ended(importing, request)() == bytes([2] * 15)
        assert self.ended(importing, plain(importing, bytes(32), b"\1\2"))() == bytes([COUNTED, 2])
        nonsense = importing.request()
        nonsense.sealed = bytes(len(nonsense.sealed))
        assert self.ended(importing, nonsense)() == bytes([3])
        self.assert_nothing_in_hand(importing, timed=4)
        totals = importing.counters.totals()
        assert totals["REPORT_STATUS_COUNTED"] == 16
        assert totals["REPORT_STATUS_DUPLICATE"] == 16

    def test_many_are_for_a_thread_of_their_own(self, importing: Setting) -> None:
        for request in (importing.request(16), plain(importing, os.urandom(256), bytes(16))):
            assert not importing.intake.begin(request, lambda _: pytest.fail("not begun"))
            self.assert_nothing_in_hand(importing, timed=0)

    def test_what_is_refused_is_not_begun(self, setting: Setting) -> None:
        for request in (setting.request(round_number=ROUNDS), plain(setting, bytes(16), b"\1")):
            with pytest.raises(ReportsRefused):
                setting.intake.begin(request, lambda _: pytest.fail("not begun"))
        self.assert_nothing_in_hand(setting, timed=0)
        assert setting.counters.totals() == {
            "REFUSAL_REASON_NO_SUCH_ROUND": 1,
            "REFUSAL_REASON_PLAIN_NOT_TAKEN": 1,
        }

    def test_what_could_not_be_committed_is_told_at_the_end(
        self, setting: Setting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: object, **__: object) -> Committed:
            raise StoreUnavailable("here", "is full")

        request = setting.request()
        with monkeypatch.context() as patch:
            patch.setattr(setting.store, "commit", full)
            with pytest.raises(ReportsRefused, match="the store cannot be written"):
                self.ended(setting, request)()
        # It would look fast.
        self.assert_nothing_in_hand(setting, timed=0)
        setting.opening.close()
        with pytest.raises(ReportsRefused, match="a fault here"):
            self.ended(setting, request)()
        self.assert_nothing_in_hand(setting, timed=0)
        assert setting.counters.totals() == {"REFUSAL_REASON_STORE_UNAVAILABLE": 2}

    def test_a_round_that_closed_meanwhile_is_told_at_the_end(self, setting: Setting) -> None:
        setting.intake.submit(setting.request())
        setting.store.close_round(setting.metric.digest, 0, now=START)
        with pytest.raises(ReportsRefused, match="takes no more"):
            self.ended(setting, setting.request())()
        self.assert_nothing_in_hand(setting, timed=2)

    def test_whoever_cannot_be_told_stops_nobody(
        self, setting: Setting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Neither what counts nor what opens, whatever it has to tell."""
        told = threading.Semaphore(0)

        def fault(_: object) -> None:
            told.release()
            raise OSError("the log is gone")

        def full(*_: object, **__: object) -> Committed:
            raise StoreUnavailable("here", "is full")

        def broken(_: object) -> None:
            raise RuntimeError("a fault of our own")

        setting.intake.begin(setting.request(), fault)
        assert told.acquire(timeout=TIMEOUT)
        for where, what, how in (
            (setting.store, "commit", full),
            (Sealed, "open", broken),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(where, what, how)
                setting.intake.begin(setting.request(), fault)
                assert told.acquire(timeout=TIMEOUT)
            # The thread that was to tell it is there still.
            assert setting.intake.submit(setting.request()) == bytes([COUNTED])

    def test_whoever_was_told_is_let_go(self, setting: Setting) -> None:
        """Else every call would be kept, by itself, until rubbish is collected."""

        class Call:
            def __init__(self) -> None:
                self.told = threading.Event()
                self.settled: Submission | None = None

            def tell(self, settled: Submission) -> None:
                self.settled = settled
                self.told.set()

        call = Call()
        kept = weakref.ref(call)
        gc.disable()
        try:
            assert setting.intake.begin(setting.request(), call.tell)
            assert call.told.wait(TIMEOUT)
            del call
            assert soon(lambda: kept() is None)
        finally:
            gc.enable()


class TestRetention:
    def test_a_commit_keeps_payloads_and_nothing_that_tells_whose(self, retaining: Setting) -> None:
        first, second = reports_of(retaining, 200), reports_of(retaining, 100)
        retaining.intake.submit(make_request(retaining.bundle, "daily", first))
        # Of these, only the new ones are kept: a repeated report may not weigh twice.
        retaining.intake.submit(make_request(retaining.bundle, "daily", first[:50] + second))
        arrays = list(retaining.store.retained(retaining.metric.digest, 0, 300, 1))
        # In the order of the commits, but within each of them sorted.
        assert b"".join(array.tobytes() for array in arrays) == b"".join(
            sorted(payload for _, payload in first) + sorted(payload for _, payload in second)
        )

    def test_what_is_kept_counts_the_same(self, retaining: Setting) -> None:
        reports = reports_of(retaining, 100)
        retaining.intake.submit(make_request(retaining.bundle, "daily", reports))
        digest = retaining.metric.digest
        published = retaining.store.published(digest, 0)
        assert published is not None
        assert published.snapshot is not None
        tally = published.snapshot.tally
        payloads = np.concatenate(list(retaining.store.retained(digest, 0, tally.n, 1)))
        oracle = oracle_for(retaining.metric.mechanism)
        np.testing.assert_array_equal(oracle.fold(payloads), tally.cells)

    def test_other_metrics_keep_none(self, setting: Setting) -> None:
        setting.intake.submit(make_request(setting.bundle, "daily", reports_of(setting, 10)))
        with pytest.raises(StoreDamaged, match="of 0 reports, where a snapshot says 10"):
            list(setting.store.retained(setting.metric.digest, 0, 10, 1))


def test_nonsense_leaves_no_round_and_writes_nothing(
    importing: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(*_: object, **__: object) -> Committed:
        raise AssertionError("there is nothing to count")

    monkeypatch.setattr(importing.store, "commit", written)
    request = importing.request(3)
    request.sealed = bytes(len(request.sealed))
    importing.observations.failed()
    assert importing.intake.submit(request) == bytes([3, 3, 3])
    # Whether the store can be written is not known by it either.
    assert importing.observations.failing_since is not None
    assert importing.intake.submit(plain(importing, bytes(16), b"\xff")) == bytes([4])
    assert importing.store.published(importing.metric.digest, 0) is None


def test_nonsense_beside_a_commit_that_fails_stops_nobody(
    importing: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> Committed:
        raise StoreUnavailable("here", "is full")

    metric = Catalogue(importing.bundle, importing.bundle.metrics.values()).by_name["daily"]
    nonsense, good = Waiting(metric, 0), Waiting(metric, 1, bytes(metric.report_size))
    nonsense.open([None])
    with monkeypatch.context() as patch:
        patch.setattr(importing.store, "commit", full)
        importing.committer.commit([nonsense, good])
        assert nonsense.wait() == bytes([3])
        with pytest.raises(StoreUnavailable):
            good.wait()
    assert importing.intake.submit(importing.request()) == bytes([COUNTED])


def plain(setting: Setting, ids: bytes, payloads: bytes) -> report_pb2.SubmitReportsRequest:
    return report_pb2.SubmitReportsRequest(digest=setting.metric.digest, ids=ids, payloads=payloads)


class TestPlainReports:
    def test_are_refused_unless_the_operator_takes_them(self, setting: Setting) -> None:
        assert setting.refusal(plain(setting, bytes(16), b"\1")) == "PLAIN_NOT_TAKEN"
        assert setting.refusal(plain(setting, b"", b"\1")) == "PLAIN_NOT_TAKEN"

    def test_are_counted_like_any_other_and_marked(self, importing: Setting) -> None:
        ids = os.urandom(16 * 20)
        statuses = importing.intake.submit(plain(importing, ids, b"\1\2" * 10))
        assert statuses == bytes([COUNTED]) * 20
        # The same ids, sealed: they are known. And others.
        known = [ids[at : at + 16] for at in range(0, 80, 16)]
        sealed = importing.request(ids=[*known, *(os.urandom(16) for _ in range(3))])
        assert importing.intake.submit(sealed) == bytes([2] * 5 + [COUNTED] * 3)
        published = importing.store.published(importing.metric.digest, 0)
        assert published is not None
        assert published.snapshot is not None
        assert (published.snapshot.tally.n, published.snapshot.tally.plain) == (23, 20)

    def test_one_that_no_device_can_make_is_told(self, importing: Setting) -> None:
        # Four values: the upper four bits are spare.
        statuses = importing.intake.submit(plain(importing, os.urandom(48), b"\1\x10\2"))
        assert statuses == bytes([COUNTED, 4, COUNTED])

    @pytest.mark.parametrize(
        ("ids", "payloads", "reason"),
        [
            (15, 1, "WRONG_LENGTH"),
            (16, 0, "WRONG_LENGTH"),
            (0, 1, "WRONG_LENGTH"),
            (32, 1, "WRONG_LENGTH"),
            (16 * 1_001, 1_001, "TOO_MANY_REPORTS"),
        ],
    )
    def test_must_be_whole(self, importing: Setting, ids: int, payloads: int, reason: str) -> None:
        assert importing.refusal(plain(importing, bytes(ids), bytes(payloads))) == reason

    def test_are_not_sealed_as_well(self, importing: Setting) -> None:
        request = plain(importing, bytes(16), b"\1")
        request.MergeFrom(importing.request())
        assert importing.refusal(request) == "WRONG_LENGTH"
