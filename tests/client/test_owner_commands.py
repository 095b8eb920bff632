"""What an owner types: show, export, the switches, and words. In this process, to save time."""

import json
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from hubbub import Bundle, Outcome
from hubbub.__main__ import main
from hubbub.ledger import Ledger
from hubbub.rows import Status, Switch
from hubbub.state_file import FILE_NAME
from hubbub.statement import ENGLISH
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Device, entries

NAME = "health.self_rated"


class Ran(NamedTuple):
    status: int
    out: str
    error: str

    @property
    def refusal(self) -> str:
        """The one line that it said before it gave up."""
        assert (self.status, self.out) == (2, "")
        (line,) = self.error.splitlines()
        return line.removeprefix("hubbub: ")


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command."""

    def run(*arguments: object) -> Ran:
        status = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Ran(status, said.out, said.err)

    return run


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> Bundle:
    day = 86_400
    starts = int(time.time()) - day
    memoised = make_metric(
        "memo",
        starts=starts,
        periodic=(30 * day, 4, day),
        epsilon="0.5",
        permanent="1",
        mechanism="memoised-symmetric-unary",
    )
    return make_bundle(operator, make_metric(), memoised)


def record(bundle: Bundle, state: Path) -> Outcome:
    """What an app is told that records something, with nobody there to send it to."""
    with Device(bundle, state, clock=time.time) as client:
        return client.metric(NAME).record("good")


@pytest.fixture
def state(bundle: Bundle, tmp_path: Path) -> Path:
    """A device with one report that waits."""
    assert record(bundle, tmp_path / "state")
    return tmp_path / "state"


def switch(state: Path) -> Switch:
    with closing(Ledger.open_to_read(str(state))) as ledger:
        return ledger.switch()


# Looking.


def test_show_for_programs(run: Run, state: Path) -> None:
    facts = json.loads(run("show", state, "--json").out)
    (report,) = facts["metrics"][0]["reports"]
    (entry,) = entries(state)
    assert bytes.fromhex(report["report_id"] + report["payload"]) == entry.report
    assert report["status"] == "waiting"


def test_show_all(run: Run, operator: Operator, tmp_path: Path) -> None:
    often = make_metric(periodic=(60, 100, 0), epsilon="0.01")
    now = 30.0
    with Device(make_bundle(operator, often), tmp_path, clock=lambda: now) as client:
        for _ in range(20):
            assert client.metric(NAME).record("good")
            now += 60
    few, everything = run("show", tmp_path).out, run("show", tmp_path, "--all").out
    assert few.count("    Round ") == 10
    assert everything.count("    Round ") == 20


def test_an_export_that_fails_leaves_no_half(state: Path, tmp_path: Path) -> None:
    file = tmp_path / "owner.json"
    # No file may grow beyond two blocks: as on a full disk.
    script = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (1_024, 1_024)); "
    script += "import signal as s; s.signal(s.SIGXFSZ, s.SIG_IGN); "
    script += "from hubbub.__main__ import main; raise SystemExit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", script, "export", state, file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "File too large" in ran.stderr
    assert not file.exists()


def test_nobody_listens(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its standard output was closed before it began: `python -m hubbub pause DIR >&-`."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["pause", str(state)]) == 0
    sys.stdout.close()
    assert switch(state) is Switch.PAUSED


def test_export(run: Run, state: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    assert run("export", state, file) == (0, "", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    exported, shown = file.read_text(encoding="utf-8"), run("show", state, "--json").out
    # But for the second in which each was made.
    assert exported.splitlines()[2:] == shown.splitlines()[2:]
    file.write_bytes(b"kept")
    assert "File exists" in run("export", state, file).refusal
    assert file.read_bytes() == b"kept"
    assert "there is no ledger here" in run("export", tmp_path, tmp_path / "other").refusal
    assert not (tmp_path / "other").exists()


# Switching.


def test_pause_and_resume(run: Run, bundle: Bundle, state: Path) -> None:
    for _ in range(2):
        assert run("pause", state) == (0, ENGLISH["done.pause"] + "\n", "")
        assert switch(state) is Switch.PAUSED
    assert record(bundle, state) is Outcome.PAUSED
    assert "Collection  Paused since " in run("show", state).out
    for _ in range(2):
        assert run("resume", state) == (0, ENGLISH["done.resume"] + "\n", "")
        assert switch(state) is Switch.ON
    assert [entry.status for entry in entries(state)] == [Status.WAITING]


def test_opt_out_and_in(run: Run, bundle: Bundle, state: Path) -> None:
    with Device(bundle, state, clock=time.time) as client:
        assert client.metric("memo").record("good")
    assert run("opt-out", state).out.splitlines() == [
        ENGLISH["done.opt-out"],
        "Deleted. Reports that waited: 2. What reports said: 2. Memos: 1.",
        ENGLISH["done.stays"],
    ]
    again = run("opt-out", state)
    assert again.status == 0
    assert "Deleted. Reports that waited: 0. What reports said: 0. Memos: 0." in again.out
    # Neither a pause nor its end brings anybody back.
    for command in ("pause", "resume"):
        still = "Nothing changes: you have opted out. `python -m hubbub opt-in DIR` ends that.\n"
        assert run(command, state) == (0, still, "")
        assert switch(state) is Switch.OPTED_OUT
    assert record(bundle, state) is Outcome.OPTED_OUT
    assert run("opt-in", state) == (0, ENGLISH["done.opt-in"] + "\n", "")
    assert switch(state) is Switch.ON
    assert {(entry.status, entry.report) for entry in entries(state)} == {(Status.WITHDRAWN, None)}


def test_a_switch_holds_while_the_app_runs(run: Run, bundle: Bundle, tmp_path: Path) -> None:
    with Device(bundle, tmp_path) as client:
        assert run("opt-out", tmp_path).status == 0
        assert client.switch is Switch.OPTED_OUT
        # An app that pauses and resumes by itself brings nobody back either.
        assert client.pause()
        assert client.resume()
        assert client.switch is Switch.OPTED_OUT


@pytest.mark.parametrize("command", ["pause", "resume", "opt-out", "opt-in"])
def test_a_switch_makes_no_ledger(run: Run, tmp_path: Path, command: str) -> None:
    assert "there is no ledger here" in run(command, tmp_path / "typo").refusal
    assert not (tmp_path / "typo").exists()


def test_a_ledger_that_was_put_back(run: Run, state: Path, tmp_path: Path) -> None:
    old = (state / FILE_NAME).read_bytes()
    assert run("pause", state).status == 0
    (state / FILE_NAME).write_bytes(old)
    for command in ("show", "pause", "opt-out"):
        assert "it is an older copy" in run(command, state).refusal
    assert "it is an older copy" in run("export", state, tmp_path / "file").refusal
    assert not (tmp_path / "file").exists()


# Translating.


def test_in_other_words(run: Run, state: Path, tmp_path: Path) -> None:
    assert json.loads(run("words").out) == dict(ENGLISH)
    file = tmp_path / "words.json"
    said = {"heading.budgets": "Höchstgrenzen", "done.pause": "Pause."}
    file.write_text(json.dumps(said), encoding="utf-8")
    assert "\nHöchstgrenzen\n" in run("show", state, "--words", file).out
    assert run("pause", state, "--words", file).out == "Pause.\n"
    file.write_text('{"heading.budget": ""}', encoding="utf-8")
    refusal = run("opt-out", state, "--words", file).refusal
    assert "nothing to translate under 'heading.budget'" in refusal
    # Before anything was done.
    assert switch(state) is Switch.PAUSED
    assert "No such file" in run("show", state, "--words", tmp_path / "nowhere").refusal
