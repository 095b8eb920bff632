"""The generation: an older ledger is refused, and an honest one never."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import hubbub
from hubbub import state_file
from hubbub.charging import Charge
from hubbub.exact import CHARGE_UNIT
from hubbub.generation import FILE_NAME as SIDECAR
from hubbub.generation import Sidecar
from hubbub.ledger import Ledger
from hubbub.rows import Status, Switch
from hubbub.state_file import FILE_NAME as LEDGER
from tests import lives
from tests.bundles import Operator
from tests.lives import FRESH
from tests.stepwise import ROUNDS


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return lives.bundle_of_all(operator)


def number_in(state: Path) -> int:
    """How often the ledger says it was changed."""
    connection = sqlite3.connect(state / LEDGER)
    (number,) = connection.execute("SELECT number FROM generation").fetchone()
    connection.close()
    return int(number)


# The sidecar by itself.


@pytest.fixture
def sidecar(tmp_path: Path) -> Sidecar:
    made = Sidecar(str(tmp_path))
    assert made.newest() is None
    made.create()
    assert made.newest() == 0
    return made


def test_it_takes_numbers_in_any_order_and_never_goes_back(sidecar: Sidecar) -> None:
    chance = random.Random(20_261_129)  # noqa: S311
    newest = 0
    for start in range(1, 200, 6):
        # As many processes as have slots between them may come in any order.
        numbers = list(range(start, start + 6))
        chance.shuffle(numbers)
        for number in numbers:
            sidecar.stamp(number)
            newest = max(newest, number)
            assert sidecar.newest() == newest


def test_one_that_was_stopped_for_long_does_not_overwrite_a_newer(sidecar: Sidecar) -> None:
    for number in range(1, 30):
        sidecar.stamp(number)
    sidecar.stamp(29 - 8)
    assert sidecar.newest() == 29


def test_a_torn_write_leaves_the_one_before(sidecar: Sidecar, tmp_path: Path) -> None:
    file = tmp_path / SIDECAR
    for number in range(1, 20):
        before = file.read_bytes()
        sidecar.stamp(number)
        after = file.read_bytes()
        assert len(after) == len(before) == 4_096
        first = next(at for at in range(4_096) if before[at] != after[at])
        for written in range(first, first + 16):
            file.write_bytes(after[:written] + before[written:])
            assert sidecar.newest() in (number - 1, number)
        file.write_bytes(after)


def test_one_without_a_readable_slot_is_damaged(sidecar: Sidecar, tmp_path: Path) -> None:
    for content in (b"", b"hub1", bytes(4_096), b"\xff" * 4_096):
        (tmp_path / SIDECAR).write_bytes(content)
        with pytest.raises(hubbub.StateCorrupt, match="damaged"):
            sidecar.newest()


def test_what_could_not_be_written_is_owed(sidecar: Sidecar, tmp_path: Path) -> None:
    sidecar.stamp(1)
    (tmp_path / SIDECAR).rename(tmp_path / "elsewhere")
    with pytest.raises(hubbub.StateUnavailable):
        sidecar.stamp(2)
    (tmp_path / "elsewhere").rename(tmp_path / SIDECAR)
    sidecar.stamp(None)
    assert sidecar.newest() == 2


# With its ledger.


def test_every_change_is_counted_and_known_beside_the_ledger(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    ledger, sidecar = Ledger.open(str(tmp_path)), Sidecar(str(tmp_path))
    lives.adopt(ledger, bundle)
    newest = sidecar.newest()
    for number in range(3):
        assert lives.record(ledger, bundle.metrics[FRESH], number) is Charge.CHARGED
        lives.depart(ledger)
        assert newest is not None
        newest += 2
        assert sidecar.newest() == newest
    # What changes nothing is not counted: asking, a second answer, a retry, an empty block.
    ledger.entries()
    assert lives.record(ledger, bundle.metrics[FRESH], 2) is Charge.ALREADY_ANSWERED
    lives.depart(ledger)
    lives.adopt(ledger, bundle)
    assert sidecar.newest() == newest
    ledger.close()
    assert number_in(tmp_path) == newest
    assert sorted(path.name for path in tmp_path.iterdir()) == [SIDECAR, LEDGER]


def put_back(older: Path, state: Path) -> None:
    for file in state.glob(f"{LEDGER}*"):
        file.unlink()
    for file in older.glob(f"{LEDGER}*"):
        shutil.copy(file, state)


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "in use"])
def test_an_older_ledger_is_refused(bundle: hubbub.Bundle, tmp_path: Path, closed: bool) -> None:
    """Whatever came after it: a report, a departure, an answer to it, an enrolment."""
    state = tmp_path / "state"
    ledger = Ledger.open(str(state))
    lives.adopt(ledger, bundle)
    changes: list[Callable[[Ledger], object]] = [
        lambda ledger: lives.record(ledger, bundle.metrics[FRESH], 0),
        lives.depart,
        lambda ledger: ledger.settle(ledger.outbox()[0], Status.COUNTED),
        lambda ledger: lives.enrol(ledger, bundle.metrics[lives.SAMPLED]),
        Ledger.withdraw,
    ]
    for place, change in enumerate(changes):
        if closed:
            ledger.close()
        older = lives.copy_of(state, tmp_path / f"older {place}")
        if closed:
            ledger = Ledger.open(str(state))
        change(ledger)
    ledger.close()
    newest = lives.copy_of(state, tmp_path / "newest")
    for place in range(len(changes)):
        older = tmp_path / f"older {place}"
        put_back(older, state)
        for open_it in (Ledger.open, Ledger.open_to_read):
            with pytest.raises(hubbub.StateRolledBack, match="older copy"):
                open_it(str(state))
    put_back(newest, state)
    Ledger.open(str(state)).close()


def test_a_ledger_without_its_sidecar_is_refused_once_it_was_changed(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    # A kill can leave it so, before anything was charged.
    state_file.create(str(tmp_path / LEDGER))
    ledger = Ledger.open(str(tmp_path))
    assert (tmp_path / SIDECAR).exists()
    lives.adopt(ledger, bundle)
    ledger.close()
    (tmp_path / SIDECAR).unlink()
    for open_it in (Ledger.open, Ledger.open_to_read):
        with pytest.raises(hubbub.StateRolledBack, match="missing") as caught:
            open_it(str(tmp_path))
        assert caught.value.path == str(tmp_path / SIDECAR)
    assert not (tmp_path / SIDECAR).exists()


def test_a_copy_of_the_ledger_alone_is_not_new(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """As a backup takes it that knows of no log: all that was charged is missing in it."""
    running = Ledger.open(str(tmp_path / "running"))
    lives.live(running, bundle)
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "running" / LEDGER, tmp_path / "copy")
    with pytest.raises(hubbub.StateRolledBack, match="missing"):
        Ledger.open(str(tmp_path / "copy"))
    running.close()


def test_a_deleted_ledger_is_not_made_anew(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    Ledger.open(str(tmp_path)).close()
    (tmp_path / LEDGER).unlink()
    for open_it in (Ledger.open, Ledger.open_to_read):
        with pytest.raises(hubbub.StateRolledBack, match="missing"):
            open_it(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [SIDECAR]


def test_nothing_leaves_while_the_sidecar_cannot_be_written(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    ledger = Ledger.open(str(tmp_path))
    lives.adopt(ledger, bundle)
    lives.record(ledger, bundle.metrics[FRESH], 0)
    (tmp_path / SIDECAR).rename(tmp_path / "elsewhere")
    for _ in range(2):
        # The second would be a retry that changes nothing.
        with pytest.raises(hubbub.StateUnavailable):
            lives.depart(ledger)
    (tmp_path / "elsewhere").rename(tmp_path / SIDECAR)
    lives.depart(ledger)
    newest = Sidecar(str(tmp_path)).newest()
    ledger.close()
    assert newest == number_in(tmp_path)


def test_a_kill_between_ledger_and_sidecar_is_made_up_for(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(str(tmp_path))
    lives.adopt(ledger, bundle)
    with monkeypatch.context() as patch:
        patch.setattr(Sidecar, "stamp", lambda *_: None)
        lives.record(ledger, bundle.metrics[FRESH], 0)
    ledger.close()
    assert Sidecar(str(tmp_path)).newest() == number_in(tmp_path) - 1
    Ledger.open(str(tmp_path)).close()
    assert Sidecar(str(tmp_path)).newest() == number_in(tmp_path)


TWO = """
import sys
from hubbub import Bundle
from hubbub.ledger import Ledger
from tests import lives
file, key, state, first = sys.argv[1:]
bundle = Bundle.load(file, operator_key=key)
ledger = Ledger.open(state)
lives.adopt(ledger, bundle)
print("ready", flush=True)
sys.stdin.readline()
print(sum(not lives.record(ledger, bundle.metrics["fresh"], n) for n in range(int(first), 30, 2)))
ledger.close()
"""


def test_two_processes_that_write_never_let_it_go_back(
    operator: Operator, bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    file, state = tmp_path / "metrics.hubbub", tmp_path / "state"
    file.write_bytes(bundle.signed)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", TWO, str(file), operator.key, str(state), str(first)],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for first in (0, 1)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    sidecar, seen, over = Sidecar(str(state)), list[int](), threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(sidecar.newest() or 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    stored = sum(int(process.communicate(timeout=60)[0]) for process in both)
    over.set()
    watcher.join()
    assert seen == sorted(seen)
    assert len(set(seen)) > 1
    assert sidecar.newest() == number_in(state)
    ledger = Ledger.open_to_read(str(state))
    assert len(ledger.entries()) == stored > 0
    assert ledger.accounts() == {"health": stored * CHARGE_UNIT}
    ledger.close()


# A kill between any two steps.


def test_a_kill_between_any_two_steps(
    operator: Operator, bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    """No honest owner is locked out, nothing is charged too little, and no older ledger is taken
    after something newer has left."""
    (tmp_path / "metrics.hubbub").write_bytes(bundle.signed)
    (tmp_path / "operator.pub").write_text(operator.key)
    subprocess.run(
        [sys.executable, "-m", "tests.stepwise", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
    )
    kills = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    refused = sum(judge(bundle, kill) for kill in kills)
    # So that the comparison is of something.
    assert len(kills) > 100
    assert refused > 50


def judge(bundle: hubbub.Bundle, folder: Path) -> int:
    """Check what a kill left; return how many older ledgers were refused."""
    state = folder / "state"
    lines = (folder / "left").read_text().splitlines() if (folder / "left").exists() else []
    left = [(int(number), bytes.fromhex(sealed)) for number, sealed in map(str.split, lines)]
    after_kill = lives.copy_of(state, folder / "after kill") if state.exists() else state
    ledger = Ledger.open(str(state))
    lives.adopt(ledger, bundle)
    kept = {entry.round: entry for entry in ledger.entries() if entry.charge}
    departed = {departure.round: departure.sealed for departure in ledger.departures()}
    assert set(dict(left)) <= set(kept) & set(departed)
    assert len(set(left)) == len(dict(left))
    assert all(departed[number] in (None, sealed) for number, sealed in left)
    memos = [e.charge for e in ledger.enrolments() if e.metric == lives.MEMOISED]
    assert ledger.accounts().get("health", 0) == len(kept) * CHARGE_UNIT + sum(memos)
    ledger.set_switch(Switch.ON, 8_000)
    for number in kept:
        assert lives.record(ledger, bundle.metrics[FRESH], number) is Charge.ALREADY_ANSWERED
    assert lives.record(ledger, bundle.metrics[FRESH], ROUNDS) is Charge.CHARGED
    ledger.close()
    refused = 0
    for number in dict(left):
        older = folder / "before" / str(number)
        tried = lives.copy_of(after_kill, folder / f"tried {number}")
        put_back(older, tried)
        with pytest.raises(hubbub.StateRolledBack):
            Ledger.open(str(tried))
        refused += 1
    return refused


# What it costs.


RECORDS = """
import sys
from hubbub import Bundle
from hubbub.ledger import Ledger
from tests import lives
file, key, state = sys.argv[1:]
bundle = Bundle.load(file, operator_key=key)
ledger = Ledger.open(state)
lives.adopt(ledger, bundle)
ledger.close()
ledger = Ledger.open(state)
mark = lambda: open(state + "/mark", "wb").close()
for number in range(5):
    mark()
    lives.record(ledger, bundle.metrics["fresh"], number)
mark()
ledger.withdraw()  # merges the log
mark()
lives.record(ledger, bundle.metrics["fresh"], 5)
mark()
ledger.close()
"""


def test_a_record_is_two_syncs(operator: Operator, bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """Of the log, and of the sidecar after it; also the first, and the first of a new log."""
    traceable = subprocess.run(["strace", "true"], capture_output=True, check=False)
    if traceable.returncode != 0 and "CI" not in os.environ:
        pytest.skip("this system does not permit strace")
    file, trace = tmp_path / "metrics.hubbub", tmp_path / "trace"
    file.write_bytes(bundle.signed)
    command = [sys.executable, "-c", RECORDS, str(file), operator.key, str(tmp_path / "state")]
    watch = "trace=openat,fsync,fdatasync,sync_file_range,sync,msync"
    subprocess.run(
        ["strace", "-f", "-y", "-o", str(trace), "-e", watch, *command],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        capture_output=True,
    )
    calls = trace.read_text().splitlines()
    marks = [place for place, call in enumerate(calls) if "/mark" in call and "openat" in call]
    assert len(marks) == 8
    for mark, following in (*pairwise(marks[:6]), (marks[6], marks[7])):
        log, sidecar = (call for call in calls[mark:following] if "openat" not in call)
        assert f"{LEDGER}-wal>" in log
        assert f"/{SIDECAR}>" in sidecar


def test_a_ledger_in_memory_has_none(
    bundle: hubbub.Bundle, empty_ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lives.live(empty_ledger, bundle)
    assert list(tmp_path.iterdir()) == []
