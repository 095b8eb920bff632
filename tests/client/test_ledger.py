"""The ledger: nothing that happens to its file gives budget back, or a second answer."""

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import hubbub
from hubbub import Outcome
from hubbub.exact import CHARGE_UNIT
from hubbub.generation import FILE_NAME as SIDECAR
from hubbub.ledger import Ledger
from hubbub.recording import Recorder
from hubbub.rows import Status
from hubbub.state_file import FILE_NAME, log_size
from hubbub.transport import Refused
from tests import lives
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Receiver, entries, spent

NAME = "health.self_rated"
PERIODIC = make_metric(epsilon="1", periodic=(1_000, 100, 1_000))


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return make_bundle(operator, PERIODIC)


@pytest.fixture
def bundle_file(bundle: hubbub.Bundle, tmp_path: Path) -> Path:
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(bundle.signed)
    return file


# One transaction.


def test_charge_and_report_are_one_row(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails in between leaves neither."""
    with Device(bundle, tmp_path) as client:
        metric = bundle.metrics[NAME]
        with monkeypatch.context() as patch:
            patch.setattr(type(metric.mechanism), "randomise", _fail)
            assert client.metric(NAME).record("good") is Outcome.NOT_STORED
        with monkeypatch.context() as patch:
            patch.setattr("hubbub.rows.checksum", _fail)
            assert client.metric(NAME).record("good") is Outcome.NOT_STORED
        assert entries(tmp_path) == []
        assert client.metric(NAME).record("good") is Outcome.STORED
    (entry,) = entries(tmp_path)
    assert entry.charge == CHARGE_UNIT
    assert entry.report is not None


def _fail(*_: object) -> bytes:
    raise ValueError("no")


def test_a_signal_s_handler_that_records_meanwhile_does_not_hang(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler runs in the midst of whatever the thread was doing, here a transaction."""
    with Device(bundle, tmp_path) as client:
        inner: list[object] = []
        mechanism = bundle.metrics[NAME].mechanism
        honest = type(mechanism).randomise

        def interrupted(self: object, value: int, source: object) -> bytes:
            inner.append(client.metric(NAME).record("poor"))
            inner.append(client.preview())
            return honest(mechanism, value, source)  # type: ignore[arg-type]

        monkeypatch.setattr(type(mechanism), "randomise", interrupted)
        assert client.metric(NAME).record("good") is Outcome.STORED
        assert inner[0] is Outcome.NOT_STORED
    assert len(entries(tmp_path)) == 1


# Its place.


@pytest.mark.parametrize(
    "name",
    ["what?mode=memory", "number #1", "50 %41", "a&b=c", "Größe 量", "//deep//er/", "b\udcff"],
)
@pytest.mark.parametrize("relative", [False, True])
def test_any_directory_will_do(
    bundle: hubbub.Bundle,
    tmp_path: Path,
    name: str,
    relative: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    state = f"./{name}" if relative else f"{tmp_path}/{name}"
    for round_number, outcome in enumerate((Outcome.STORED, Outcome.ALREADY_ANSWERED)):
        with Device(bundle, state) as client:
            assert client.metric(NAME).record("good") is outcome, round_number
    assert [entry.metric for entry in entries(Path(state))] == [NAME]
    assert (tmp_path / name.strip("/") / FILE_NAME).is_file()


def test_the_program_may_go_elsewhere(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "state").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    clock = Clock(500)
    with Device(bundle, "state", clock=clock, transport=Receiver()) as client:
        assert client.metric(NAME).record("good")
        monkeypatch.chdir(elsewhere)
        clock.now += 2_000
        assert client.metric(NAME).record("good")
        assert client.flush()
    assert len(entries(tmp_path / "state")) == 2
    assert not list((elsewhere / "state").iterdir())


# Clocks.


def test_a_clock_set_back_answers_no_round_again(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    clock, rounds = Clock(), (50, 49, 1, 0)
    for outcome in (Outcome.STORED, Outcome.ALREADY_ANSWERED, Outcome.ALREADY_ANSWERED):
        with Device(bundle, tmp_path, clock=clock, budgets={"health": "32"}) as client:
            for number in rounds:
                clock.now = 1_000 * number + 999
                assert client.metric(NAME).record("good") is outcome
    assert [entry.round for entry in entries(tmp_path)] == sorted(rounds)


def test_a_clock_that_jumps_refills_nothing(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    clock = Clock(0)
    with Device(bundle, tmp_path, clock=clock, budgets={"health": "3"}) as client:
        outcomes = []
        for now in (0, 98_000, 10**12, 0, 99_000, 98_500, 10**15, 99_999):
            clock.now = now
            outcomes.append(client.metric(NAME).record("good").name)
    assert outcomes == [
        *("STORED", "STORED", "NOT_ASKED_NOW", "ALREADY_ANSWERED"),
        *("STORED", "ALREADY_ANSWERED", "NOT_ASKED_NOW", "ALREADY_ANSWERED"),
    ]
    with Device(bundle, tmp_path, clock=Clock(99_999), budgets={"health": "3"}) as client:
        assert client.metric(NAME).record("good") is Outcome.ALREADY_ANSWERED
    assert spent(entries(tmp_path)) == 3 * CHARGE_UNIT


@pytest.mark.parametrize("now", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_a_clock_that_shows_no_time(bundle: hubbub.Bundle, tmp_path: Path, now: float) -> None:
    clock = Clock()
    with Device(bundle, tmp_path, clock=clock) as client:
        clock.now = now
        assert not client.metric(NAME).record("good")
    assert entries(tmp_path) == []


# Opting out.


def test_opting_out_deletes_what_was_said_and_keeps_what_was_spent(
    operator: Operator, tmp_path: Path
) -> None:
    values = [f"v{number}" for number in range(400)]
    metric = make_metric(values=values, mechanism="symmetric-unary", periodic=(1_000, 9, 0))
    bundle, clock = make_bundle(operator, metric), Clock(0)
    with Device(bundle, tmp_path, clock=clock, budgets={"health": "3"}) as client:
        for number in range(3):
            clock.now = 1_000 * number
            assert client.metric(NAME).record("v7")
        said = [entry.report for entry in entries(tmp_path) if entry.report is not None]
        assert len(said) == 3
        assert all(_pieces(report) & _windows(tmp_path) for report in said)
        client.enabled = False
        # Not in the log either, though the client goes on.
        assert not any(_pieces(report) & _windows(tmp_path) for report in said)
        client.enabled = True
        clock.now = 3_000
        assert client.metric(NAME).record("v7") is Outcome.BUDGET_SPENT
        clock.now = 0
        assert client.metric(NAME).record("v7") is Outcome.ALREADY_ANSWERED
    kept = entries(tmp_path)
    assert spent(kept) == 3 * CHARGE_UNIT
    assert {entry.status for entry in kept} == {Status.WITHDRAWN}
    assert {entry.report for entry in kept} == {None}


def _pieces(report: bytes) -> set[bytes]:
    return {report[at : at + 8] for at in range(len(report) - 8)}


def _windows(folder: Path) -> set[bytes]:
    content = b"".join(file.read_bytes() for file in folder.iterdir())
    return {content[at : at + 8] for at in range(len(content) - 8)}


def test_that_something_left_is_remembered_after_opting_out(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    """What it said is deleted, where and when it went is not."""
    receiver = Receiver(Refused("DEADLINE_EXCEEDED"))
    with Device(bundle, tmp_path, transport=receiver) as client:
        client.metric(NAME).record("good")
        client.flush(0.1)
        client.enabled = False
    (entry,) = entries(tmp_path)
    assert (entry.status, entry.report) == (Status.WITHDRAWN, None)
    ledger = Ledger.open_to_read(str(tmp_path))
    (departure,) = ledger.departures()
    assert (departure.sealed, departure.destination) == (None, receiver.destination)
    ledger.close()
    with Device(bundle, tmp_path, transport=receiver) as client:
        assert client.flush()
    assert len(receiver.submissions) == 1


def test_a_withdrawal_that_failed_is_made_up_for_before_turning_on(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    with Device(bundle, tmp_path, transport=receiver) as client:
        client.metric(NAME).record("good")
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "withdraw", _fail)
            client.enabled = False
            client.enabled = True
            assert not client.enabled
        client.enabled = True
        assert client.enabled
        assert client.preview() == []
        assert client.flush()
    assert receiver.submissions == []


def test_what_is_recorded_while_opting_out_does_not_stay(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turned off after `record` has looked, before it writes."""
    with Device(bundle, tmp_path) as client:
        honest = Recorder._index

        def late(*arguments: object) -> object:
            client.enabled = False
            return honest(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(Recorder, "_index", late)
        assert client.metric(NAME).record("good") is Outcome.COLLECTION_OFF
    assert entries(tmp_path) == []


# The log.


def test_a_long_log_is_merged_when_nobody_waits(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, make_metric(NAME, epsilon="0.01", periodic=(1_000, 999, 0)))
    metric, file = bundle.metrics[NAME], tmp_path / FILE_NAME
    ledger = Ledger.open(str(tmp_path))
    lives.adopt(ledger, bundle)
    for number in range(100):
        ledger.checkpoint()
        lives.record(ledger, metric, number)
    assert log_size(str(file)) < 2 << 20
    # Whoever reads meanwhile goes on reading what was, and keeps nobody waiting.
    reader = sqlite3.connect(file)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM report").fetchone() == (100,)
    for number in range(100, 200):
        lives.record(ledger, metric, number)
    ledger.checkpoint()
    assert reader.execute("SELECT count(*) FROM report").fetchone() == (100,)
    reader.close()
    ledger.checkpoint()
    # A new log is begun already, so that no record has to.
    assert 0 < log_size(str(file)) < 1 << 14
    assert [entry.round for entry in entries(tmp_path)] == list(range(200))
    ledger.close()
    assert log_size(str(file)) == 0
    assert [entry.round for entry in entries(tmp_path)] == list(range(200))


# Several processes.


TWO = """
import sys
from pathlib import Path
from tests.devices import Clock, Device
clock = Clock(0)
stored = []
with Device(Path(sys.argv[1]), Path(sys.argv[2]), operator_key=sys.argv[3], clock=clock,
            budgets={"health": "30"}) as client:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(40):
        clock.now = 1_000 * number
        if client.metric("health.self_rated").record("good"):
            stored.append(number)
print(stored)
"""


def test_two_processes_share_a_state(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    state = tmp_path / "state"
    command = [sys.executable, "-c", TWO, str(bundle_file), str(state), operator.key]
    both = [
        subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    stored: list[int] = []
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in both:
        printed, _ = process.communicate(timeout=60)
        stored += eval(printed)  # noqa: S307
    kept = entries(state)
    assert sorted(stored) == [entry.round for entry in kept]
    assert len(set(stored)) == len(stored) <= 30
    assert spent(kept) == len(stored) * CHARGE_UNIT


def test_many_first_starts_at_once_make_one_ledger(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    barrier, outcomes = threading.Barrier(8), list[Outcome]()

    def start() -> None:
        barrier.wait()
        with Device(bundle, tmp_path) as client:
            outcomes.append(client.metric(NAME).record("good"))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcome.name for outcome in outcomes) == ["ALREADY_ANSWERED"] * 7 + ["STORED"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [SIDECAR, FILE_NAME]
