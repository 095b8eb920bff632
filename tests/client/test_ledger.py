"""The ledger: nothing that happens to its file gives budget back, or a second answer."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hubbub
from hubbub import Outcome
from hubbub.client import Client
from hubbub.exact import CHARGE_UNIT
from hubbub.ledger import Ledger, Status
from hubbub.state_file import FILE_NAME
from hubbub.transport import Refused
from tests import namespaces
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Receiver, entries, spent

NAME = "health.self_rated"
PERIODIC = make_metric(epsilon="1", periodic=(1_000, 100, 1_000))


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return make_bundle(operator, PERIODIC)


@pytest.fixture(scope="module")
def lived_in(bundle: hubbub.Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state of six answers: counted, withdrawn, sent without an answer, and waiting."""
    state = tmp_path_factory.mktemp("lived_in")
    clock = Clock(0)
    receiver = Receiver([1], [1], Refused("UNAVAILABLE"))
    with Device(bundle, state, clock=clock, transport=receiver) as client:
        for number in range(6):
            clock.now = 1_000 * number
            assert client.metric(NAME).record("good")
            if number in (1, 3):
                client.flush(0.1)
            if number == 2:
                client.enabled = False
                client.enabled = True
    assert [entry.status for entry in entries(state)] == [
        *(Status.COUNTED, Status.COUNTED, Status.WITHDRAWN),
        *(Status.SENT, Status.WAITING, Status.WAITING),
    ]
    return state


def copy_of(state: Path, folder: Path) -> Path:
    shutil.copytree(state, folder)
    return folder / FILE_NAME


# Damage.


def survives(bundle: hubbub.Bundle, file: Path) -> bool:
    """Whether a client takes the file; if it does, every charge must be in it."""
    try:
        # At the time of the newest answer, so that a lost one could be given again.
        client = Device(bundle, file.parent, clock=Clock(5_000))
    except hubbub.StateError:
        return False
    with client:
        assert client.metric(NAME).record("good") is Outcome.ALREADY_ANSWERED
        client.preview()
    kept = entries(file.parent)
    assert spent(kept) == 6 * CHARGE_UNIT
    assert [entry.round for entry in kept] == list(range(6))
    return True


def damages(size: int) -> Iterator[Callable[[bytearray], None]]:
    """500 random bytes flipped, one at a time, each in one of three ways."""
    chance = random.Random(20_261_127)  # noqa: S311

    def flip(place: int, mask: int) -> Callable[[bytearray], None]:
        def damage(content: bytearray) -> None:
            content[place] ^= mask

        return damage

    for _ in range(500):
        mask = chance.choice([1 << chance.randrange(8), 0xFF, chance.randrange(1, 256)])
        yield flip(chance.randrange(size), mask)


def test_random_byte_flips(bundle: hubbub.Bundle, lived_in: Path, tmp_path: Path) -> None:
    whole = (lived_in / FILE_NAME).read_bytes()
    file = tmp_path / FILE_NAME
    refused = 0
    for damage in damages(len(whole)):
        content = bytearray(whole)
        damage(content)
        file.write_bytes(content)
        refused += not survives(bundle, file)
    # Most bytes of a small file are unused, and harmless; many are not.
    assert 20 < refused < 480


def test_every_byte_of_every_report(bundle: hubbub.Bundle, lived_in: Path, tmp_path: Path) -> None:
    """A flip in a row is found by the row's checksum, wherever the file's structure allows it."""
    whole = (lived_in / FILE_NAME).read_bytes()
    row = entries(lived_in)[0]
    assert row.report is not None
    places = [whole.index(row.report) + at for at in range(len(row.report))]
    places += [whole.rindex(b"health" + NAME.encode()) + at for at in range(6 + len(NAME))]
    places += [whole.index(b"localhost:7443", places[-1] - 4_000) + at for at in range(14)]
    for place in places:
        content = bytearray(whole)
        content[place] ^= 1
        (tmp_path / FILE_NAME).write_bytes(content)
        assert not survives(bundle, tmp_path / FILE_NAME), place


def test_every_page_s_header(bundle: hubbub.Bundle, lived_in: Path, tmp_path: Path) -> None:
    """Where a page says how many rows it has, one less would be a charge less."""
    whole = (lived_in / FILE_NAME).read_bytes()
    for page in range(0, len(whole), 4_096):
        header = page + (100 if page == 0 else 0)
        for place in range(header, header + 12):
            for mask in (1, 2, 4, 0xFF):
                content = bytearray(whole)
                content[place] ^= mask
                (tmp_path / FILE_NAME).write_bytes(content)
                survives(bundle, tmp_path / FILE_NAME)


def test_truncation(bundle: hubbub.Bundle, lived_in: Path, tmp_path: Path) -> None:
    whole = (lived_in / FILE_NAME).read_bytes()
    file = tmp_path / FILE_NAME
    pages = range(0, len(whole), 512)
    assert len(pages) > 10
    for size in (*pages, 1, 99, 100, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(hubbub.StateError) as caught:
            Device(bundle, tmp_path)
        assert caught.value.path == str(file)
        # It is left as it was, for whoever can still read something in it.
        assert file.read_bytes() == whole[:size]


@pytest.mark.parametrize("content", [b"", b"\0" * 4_096, b"x" * 10_000, b"SQLite format 3\0"])
def test_what_is_no_ledger_is_refused(
    bundle: hubbub.Bundle, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(hubbub.StateCorrupt):
        Device(bundle, tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == content


def test_another_program_s_database_is_refused(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("CREATE TABLE report (source)")
    connection.close()
    with pytest.raises(hubbub.StateCorrupt, match="not a Hubbub ledger"):
        Device(bundle, tmp_path)


def test_a_later_version_is_refused(bundle: hubbub.Bundle, lived_in: Path, tmp_path: Path) -> None:
    file = copy_of(lived_in, tmp_path / "state")
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(hubbub.StateCorrupt, match="its version is 2; this SDK reads 1"):
        Device(bundle, file.parent)


def test_damage_while_it_runs_is_not_stored_and_not_raised(
    bundle: hubbub.Bundle, lived_in: Path, tmp_path: Path
) -> None:
    file = copy_of(lived_in, tmp_path / "state")
    with Device(bundle, file.parent, clock=Clock(9_000)) as client:
        with file.open("r+b") as content:
            content.write(b"\xff" * file.stat().st_size)
        assert client.metric(NAME).record("good") is Outcome.NOT_STORED
        assert not client.flush()
        assert client.preview() == []
        client.enabled = False


# Rights and space. As root, rights bind only where the kernel itself says no.


def in_namespace(script: str, folder: Path, bundle_file: Path, key: str) -> str:
    """Run Python in `folder`, its own mounts' master; return what it printed."""
    namespaces.require(namespaces.MOUNTS)
    code = f"""
import os, subprocess, sys
from pathlib import Path
import hubbub
from hubbub import Outcome
from tests.devices import Clock, Device, entries, unreachable
clock = Clock(0)
def mount(*options):
    subprocess.run(["mount", *options], check=True)
def device():
    return Device(Path({str(bundle_file)!r}), Path("state"), operator_key={key!r}, clock=clock)
{script}
"""
    ran = subprocess.run(
        [*namespaces.MOUNTS, sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return ran.stdout


@pytest.fixture
def bundle_file(operator: Operator, tmp_path: Path) -> Path:
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([PERIODIC]))
    return file


REFUSED = """
try:
    device()
except hubbub.StateUnavailable as error:
    print(error.reason)
"""


@pytest.mark.parametrize(
    "first",
    ["", "os.mkdir('state')", "device().close()"],
    ids=["nothing", "an empty directory", "a ledger"],
)
def test_a_read_only_directory_is_refused(
    operator: Operator, tmp_path: Path, bundle_file: Path, first: str
) -> None:
    script = f"{first}\nmount('--bind', '.', '.')\nmount('-o', 'remount,bind,ro', '.')\n"
    script += f"os.chdir({str(tmp_path)!r})" + REFUSED
    printed = in_namespace(script, tmp_path, bundle_file, operator.key)
    assert "read-only" in printed.lower() or "readonly" in printed


def test_a_read_only_file_is_refused(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    script = (
        f"device().close()\nfile = 'state/{FILE_NAME}'\n"
        "mount('--bind', file, file)\nmount('-o', 'remount,bind,ro', file)" + REFUSED
    )
    assert "readonly" in in_namespace(script, tmp_path, bundle_file, operator.key)


def test_a_directory_in_which_nothing_can_be_made_any_more(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    """SQLite finds no place for its journal, which holds for root as well."""
    journal = tmp_path / f"{FILE_NAME}-journal"
    with Device(bundle, tmp_path) as client:
        journal.mkdir()
        assert client.metric(NAME).record("good") is Outcome.NOT_STORED
        with pytest.raises(hubbub.StateUnavailable):
            Device(bundle, tmp_path)
        journal.rmdir()
        assert client.metric(NAME).record("good") is Outcome.STORED
    assert len(entries(tmp_path)) == 1


def test_a_limit_on_file_sizes(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """Where there are no namespaces, the nearest thing to a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    receiver = Receiver()
    with Device(bundle, tmp_path, transport=receiver) as client:
        resource.setrlimit(resource.RLIMIT_FSIZE, (256, hard))
        try:
            outcome = client.metric(NAME).record("good")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert outcome is Outcome.NOT_STORED
        assert client.flush()
        assert receiver.submissions == []
        assert client.metric(NAME).record("good") is Outcome.STORED
        assert client.flush()
    assert len(receiver.submissions) == 1


def test_a_full_disk(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    """Falsy and nothing sent while there is no space; it recovers by itself when there is."""
    script = """
os.mkdir("state")
mount("-t", "tmpfs", "-o", "size=128k", "tmpfs", "state")
def fill():
    with open("state/ballast", "wb", buffering=0) as ballast:
        try:
            while ballast.write(bytes(512)):
                pass
        except OSError:
            pass
client = device()
receiver = client._transport
receiver.answers.clear()
metric = client.metric("health.self_rated")
print(metric.record("good").name, client.flush(1), len(receiver.submissions))
clock.now = 1_000
fill()
print(metric.record("good").name, client.flush(1), len(receiver.submissions))
os.unlink("state/ballast")
print(metric.record("good").name, client.flush(1), len(receiver.submissions))
clock.now = 2_000
print(metric.record("good").name)
fill()
print(client.flush(0.5), len(receiver.submissions))
client.enabled = False
print(client.enabled)
client.close()
clock.now = 3_000
with device() as client:
    print(client.metric("health.self_rated").record("good").name)
os.unlink("state/ballast")
with device() as client:
    client._transport.answers.clear()
    print([waiting.round for waiting in client.preview()], client.flush(1))
print([(entry.round, entry.status.name) for entry in entries(Path("state"))])
"""
    printed = in_namespace(script, tmp_path, bundle_file, operator.key).splitlines()
    assert printed == [
        "STORED True 1",
        "NOT_STORED True 1",
        "STORED True 2",
        "STORED",
        # It would leave without a trace in the ledger, so it stays.
        "False 2",
        "False",
        "NOT_STORED",
        "[2] True",
        "[(0, 'COUNTED'), (1, 'COUNTED'), (2, 'COUNTED')]",
    ]


def test_a_disk_full_from_the_start(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    script = """
os.mkdir("state")
mount("-t", "tmpfs", "-o", "size=8k", "tmpfs", "state")
try:
    device()
except hubbub.StateUnavailable as error:
    print(error.reason)
print(os.listdir("state"))
"""
    printed = in_namespace(script, tmp_path, bundle_file, operator.key).splitlines()
    assert "full" in printed[0]
    assert printed[1] == "[]"


def test_a_directory_that_cannot_be_made(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for state in (tmp_path / "file", tmp_path / "file" / "state", Path("nul\0")):
        with pytest.raises(hubbub.StateUnavailable, match="cannot be created"):
            Device(bundle, state)


def test_a_file_that_another_program_holds(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hubbub.state_file._BUSY_SECONDS", 0.05)
    with Device(bundle, tmp_path) as client:
        holder = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        assert client.metric(NAME).record("good") is Outcome.NOT_STORED
        assert client.preview() == []
        with pytest.raises(hubbub.StateUnavailable, match="locked"):
            Device(bundle, tmp_path)
        holder.execute("ROLLBACK")
        holder.close()
        assert client.metric(NAME).record("good") is Outcome.STORED


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
            patch.setattr("hubbub.state_file.checksummed", _fail)
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


# Clocks.


def test_a_clock_set_back_never_answers_again(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    clock = Clock(50_000)
    with Device(bundle, tmp_path, clock=clock) as client:
        assert client.metric(NAME).record("good")
        for now in (50_000, 49_000, 1_000, 0, -200):
            clock.now = now
            assert client.metric(NAME).record("good") is Outcome.ALREADY_ANSWERED
    clock.now = 0
    with Device(bundle, tmp_path, clock=clock) as client:
        assert client.metric(NAME).record("good") is Outcome.ALREADY_ANSWERED
    assert [entry.round for entry in entries(tmp_path)] == [50]


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
    with Device(bundle, tmp_path, clock=Clock(now)) as client:
        assert not client.metric(NAME).record("good")
    assert entries(tmp_path) == []


# Opting out.


def test_opting_out_deletes_what_was_said_and_keeps_what_was_spent(
    operator: Operator, tmp_path: Path
) -> None:
    values = [f"v{number}" for number in range(400)]
    metric = make_metric(values=values, mechanism="symmetric-unary", periodic=(1_000, 9, 0))
    bundle, clock = make_bundle(operator, metric), Clock(0)
    file = tmp_path / FILE_NAME
    with Device(bundle, tmp_path, clock=clock, budgets={"health": "3"}) as client:
        for number in range(3):
            clock.now = 1_000 * number
            assert client.metric(NAME).record("v7")
        said = [entry.report for entry in entries(tmp_path) if entry.report is not None]
        assert len(said) == 3
        assert all(_pieces(report) & _windows(file) for report in said)
        client.enabled = False
        assert not any(_pieces(report) & _windows(file) for report in said)
        client.enabled = True
        clock.now = 3_000
        assert client.metric(NAME).record("v7") is Outcome.BUDGET_SPENT
        clock.now = 0
        assert client.metric(NAME).record("v7") is Outcome.ALREADY_ANSWERED
    left = [path for path in tmp_path.iterdir() if path != file]
    assert left == []
    kept = entries(tmp_path)
    assert spent(kept) == 3 * CHARGE_UNIT
    assert {entry.status for entry in kept} == {Status.WITHDRAWN}
    assert {entry.report for entry in kept} == {None}


def _pieces(report: bytes) -> set[bytes]:
    return {report[at : at + 8] for at in range(len(report) - 8)}


def _windows(file: Path) -> set[bytes]:
    content = file.read_bytes()
    return {content[at : at + 8] for at in range(len(content) - 8)}


def test_what_has_left_already_is_remembered_after_opting_out(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    """The owner may still see what the aggregator may have."""
    receiver = Receiver(Refused("DEADLINE_EXCEEDED"))
    with Device(bundle, tmp_path, transport=receiver) as client:
        client.metric(NAME).record("good")
        client.flush(0.1)
        client.enabled = False
    (entry,) = entries(tmp_path)
    assert (entry.status, entry.sealed) == (Status.WITHDRAWN, None)
    assert entry.report is not None
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
        honest = Client._index

        def late(*arguments: object) -> object:
            client.enabled = False
            return honest(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(Client, "_index", late)
        assert client.metric(NAME).record("good") is Outcome.COLLECTION_OFF
    assert entries(tmp_path) == []


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
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]
