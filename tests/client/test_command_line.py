"""`python -m hubbub`: a value from standard input only, an answer in words, never a traceback."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from hubbub import Bundle, GrpcTransport
from hubbub.rows import Status
from hubbub.state_file import FILE_NAME
from tests.bundles import Operator, make_metric
from tests.devices import PATIENCE, Device, entries, soon
from tests.processes import ServeProcess

NAME = "health.self_rated"
CANARY = "canary-77f0a1"


@pytest.fixture
def bundle_file(operator: Operator, tmp_path: Path) -> Path:
    """A bundle whose endpoint nobody listens on."""
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric()], endpoint="localhost:1"))
    return file


def run(
    *arguments: str, value: bytes | None = b"", environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """`value` is standard input; None: there is none."""
    close_stdin = "" if value is not None else "<&-"
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {close_stdin}', "sh", sys.executable, "-m", "hubbub", *arguments],
        input=value,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"Traceback" not in ran.stderr
    return ran


def record(
    operator: Operator,
    bundle_file: Path,
    *more: str,
    metric: str = NAME,
    value: bytes | None = b"good\n",
) -> subprocess.CompletedProcess[bytes]:
    state = str(bundle_file.parent / "state")
    fixed = ["--operator-key", operator.key, "--state-dir", state, "--budget", "health=8"]
    return run("record", str(bundle_file), metric, *fixed, "--timeout", "0.2", *more, value=value)


def test_recorded_and_counted(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    with ServeProcess(operator, bundle_file, tmp_path / "store.sqlite3") as server:
        port = server.public.rpartition(":")[2]
        bundle_file.write_bytes(operator.sign([make_metric()], endpoint=f"localhost:{port}"))
        ran = record(operator, bundle_file, "--timeout", "30")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == b"stored for sending\ncounted\n"
    assert [entry.status for entry in entries(tmp_path / "state")] == [Status.COUNTED]
    shown = run("show", str(tmp_path / "state"))
    assert f"Z for localhost:{port}, sealed to key".encode() in shown.stdout


def test_what_the_aggregator_opened_is_what_is_shown(
    operator: Operator, tmp_path: Path, bundle_file: Path
) -> None:
    """Twenty devices of a metric whose payloads the aggregator keeps."""
    contract = make_metric(retain=True, mechanism="symmetric-unary")
    bundle_file.write_bytes(operator.sign([contract]))
    file = tmp_path / "store.sqlite3"
    shown: list[bytes] = []
    with ServeProcess(operator, bundle_file, file) as server:
        port = server.public.rpartition(":")[2]
        bundle = Bundle.verify(
            operator.sign([contract], endpoint=f"localhost:{port}"), operator_key=operator.key
        )
        transport = GrpcTransport(bundle.endpoint, bundle.certificate_authority)
        for _ in range(20):
            with Device(bundle, None, transport=transport, clock=time.time) as client:
                assert client.metric(NAME).record("good")
                assert client.flush(PATIENCE)
                (metric,) = client.statement().metrics
            (report,) = metric.reports
            assert report.status == "counted"
            shown.append(report.payload or b"")
        transport.close()
        assert server.terminate() == 0
    with closing(sqlite3.connect(file)) as store:
        kept = store.execute("SELECT payloads FROM retained").fetchall()
    assert sorted(b"".join(payloads for (payloads,) in kept)) == sorted(b"".join(shown))


def test_recorded_with_nobody_there(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    ran = record(operator, bundle_file)
    assert ran.returncode == 0
    assert ran.stdout == b"stored for sending\n"
    assert b"not sent yet; the report stays here" in ran.stderr
    again = record(operator, bundle_file)
    assert again.returncode == 1
    assert again.stdout == b"not stored: this round is answered already\n"
    assert again.stderr == b""
    assert len(entries(tmp_path / "state")) == 1


def test_a_budget_too_small(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    ran = record(operator, bundle_file, "--budget", "health=0.5")
    assert ran.returncode == 1
    assert ran.stdout == b"not stored: the budget does not cover it\n"


@pytest.mark.parametrize("value", [b"good", b"good\n", b"good\r\n", b"good\nmore\n"])
def test_one_line_is_the_value(operator: Operator, bundle_file: Path, value: bytes) -> None:
    assert record(operator, bundle_file, value=value).stdout == b"stored for sending\n"


@pytest.mark.parametrize(
    "value",
    [
        CANARY.encode(),
        *(CANARY.encode() + tail for tail in (b"\n", b"\xff\xfe\n", b"\0\n", b"x" * 100_000)),
        *(b"\n", b" good\n", b"\xff\n", b"\xed\xa0\x80\n"),
    ],
    ids=lambda value: ascii(value[:30]),
)
def test_a_value_outside_the_domain_is_told_and_kept_nowhere(
    operator: Operator, bundle_file: Path, value: bytes
) -> None:
    """Bytes that are no text are a value like any other: charged, and never quoted."""
    ran = record(operator, bundle_file, value=value)
    assert ran.returncode == 0
    assert ran.stdout.startswith(b"stored for sending, but the value is not one of the metric's")
    state = bundle_file.parent / "state"
    assert len(entries(state)) == 1
    shown = run("show", str(state))
    for seen in (ran.stdout, ran.stderr, shown.stdout, (state / FILE_NAME).read_bytes()):
        assert CANARY.encode() not in seen
        assert b"0xff" not in seen


@pytest.mark.parametrize("value", [b"", None], ids=["empty", "closed"])
def test_no_value_is_not_a_value(
    operator: Operator, bundle_file: Path, value: bytes | None
) -> None:
    ran = record(operator, bundle_file, value=value)
    assert ran.returncode == 2
    assert ran.stderr == b"hubbub: there is no value on standard input\n"
    assert entries(bundle_file.parent / "state") == []


def test_a_value_on_the_command_line_is_not_taken(operator: Operator, bundle_file: Path) -> None:
    ran = record(operator, bundle_file, "good")
    assert ran.returncode == 2
    assert b"unrecognized arguments" in ran.stderr
    assert not (bundle_file.parent / "state").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--budget", "health"], "--budget must be SOURCE=EPSILON"),
        (["--budget", "health=many"], "budget of source 'health': ε must be decimal text"),
        (["--budget", "health=33"], "budget of source 'health': 33 is above 32"),
        (["--budget", "=1"], "budget of source '': a source is named by"),
        (["--operator-key", "ed25519:00"], "an operator key is"),
        (["--state-dir", "/dev/null/state"], "cannot be created"),
        (["--state-dir", ""], "cannot be created"),
        (["--timeout", "soon"], "invalid float value"),
    ],
    ids=str,
)
def test_bad_options(operator: Operator, bundle_file: Path, more: list[str], message: str) -> None:
    ran = record(operator, bundle_file, *more)
    assert ran.returncode == 2
    assert message in ran.stderr.decode()
    assert ran.stdout == b""
    assert not (bundle_file.parent / "state").exists()


@pytest.mark.parametrize("timeout", ["nan", "-1", "0", "1e-9"])
def test_odd_times(operator: Operator, bundle_file: Path, timeout: str) -> None:
    assert record(operator, bundle_file, "--timeout", timeout).returncode == 0


def one_line(ran: subprocess.CompletedProcess[bytes]) -> str:
    """What it said before it gave up."""
    assert ran.returncode == 2
    assert ran.stdout == b""
    (line,) = ran.stderr.decode().splitlines()
    assert line.startswith("hubbub: ")
    return line


def test_bad_files(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    stranger = Operator.create(tmp_path / "stranger")
    assert "not signed by" in one_line(record(stranger, bundle_file))
    bundle_file.write_bytes(b"")
    assert "not signed by" in one_line(record(operator, bundle_file))
    bundle_file.write_bytes(b"hello")
    assert "malformed" in one_line(record(operator, bundle_file))
    bundle_file.unlink()
    assert "No such file" in one_line(record(operator, bundle_file))
    bundle_file.mkdir()
    assert "directory" in one_line(record(operator, bundle_file))
    bundle_file.rmdir()
    bundle_file.write_bytes(operator.sign([make_metric("other")]))
    assert f"no metric '{NAME}'; it has other" in one_line(record(operator, bundle_file))
    bundle_file.write_bytes(operator.sign([make_metric(source="battery")], revision=2))
    assert "draws on source 'battery'" in one_line(record(operator, bundle_file))


def test_bad_states(operator: Operator, tmp_path: Path, bundle_file: Path) -> None:
    state = tmp_path / "state"
    assert "there is no ledger here" in one_line(run("show", str(state)))
    assert not state.exists()
    assert "there is no ledger here" in one_line(run("show", str(bundle_file)))
    state.mkdir()
    file = state / FILE_NAME
    for content in (b"", b"hello", b"\0" * 10_000):
        file.write_bytes(content)
        assert str(file) in one_line(run("show", str(state)))
        assert str(file) in one_line(record(operator, bundle_file))
    file.unlink()
    assert record(operator, bundle_file).returncode == 0
    whole = file.read_bytes()
    for size in range(0, len(whole), 4_096):
        file.write_bytes(whole[:size])
        assert str(file) in one_line(run("show", str(state)))
    file.unlink()
    file.mkdir()
    assert "unable to open" in one_line(run("show", str(state)))


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["record"], ["show"], ["other"], ["show", "a", "b"], ["pause"], ["opt-out"]),
        *(["export", "a"], ["words", "a"], ["export", "a", "b", "--words", "c"]),
    ],
    ids=" ".join,
)
def test_wrong_use(arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.returncode == 2
    assert ran.stderr.startswith(b"usage: python -m hubbub")


def test_help() -> None:
    ran = run("--help")
    assert ran.returncode == 0
    for command in ("record", "show", "export", "pause", "resume", "opt-out", "opt-in", "words"):
        assert f"\n    {command}  ".encode() in ran.stdout
    assert b"standard input" in run("record", "--help").stdout


def test_a_terminal_that_cannot_show_it(operator: Operator, bundle_file: Path) -> None:
    record(operator, bundle_file)
    state = str(bundle_file.parent / "state")
    ran = run("show", state, environment={"PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 0
    assert b"\\u03b5 1: whatever it says" in ran.stdout


def test_an_interrupt_while_it_waits_for_the_value(operator: Operator, bundle_file: Path) -> None:
    state = bundle_file.parent / "state"
    command = [sys.executable, "-m", "hubbub", "record", str(bundle_file), NAME]
    command += ["--operator-key", operator.key, "--state-dir", str(state), "--budget", "health=8"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # Past its imports, it makes its ledger; then it waits.
        assert soon((state / FILE_NAME).exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert entries(state) == []


def test_a_reader_that_has_gone(operator: Operator, bundle_file: Path) -> None:
    """`show | head -1`, when head is done before it has all."""
    record(operator, bundle_file)
    command = [sys.executable, "-m", "hubbub", "show", str(bundle_file.parent / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""


# A series.


def test_a_report_of_a_series_leaves_when_its_round_is_over(
    operator: Operator, bundle_file: Path
) -> None:
    week = 7 * 86_400
    starts = int(time.time()) - week // 2
    contract = make_metric(
        starts=starts, periodic=(week, 4, week), join=4, epsilon="0.5", absent="nothing"
    )
    bundle_file.write_bytes(operator.sign([contract], endpoint="localhost:1"))
    ran = record(operator, bundle_file, "--absent", value=None)
    assert ran.returncode == 0
    (entry,) = entries(bundle_file.parent / "state")
    due = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.due_at))
    said = f"stored for sending\nwaits, and leaves from {due} on\n"
    assert ran.stdout.decode() == said
    assert ran.stderr.endswith(b"leaves after its round: when this command runs again then\n")
    assert entry.due_at >= starts + week


def test_nothing_to_report(operator: Operator, bundle_file: Path) -> None:
    assert record(operator, bundle_file, "--absent", value=None).stdout.startswith(
        b"stored for sending, but the value is not one of the metric's"
    )
    bundle_file.write_bytes(
        operator.sign([make_metric("other", absent="nothing")], endpoint="localhost:1", revision=2)
    )
    ran = record(operator, bundle_file, "--absent", metric="other", value=None)
    assert ran.stdout == b"stored for sending\n"
