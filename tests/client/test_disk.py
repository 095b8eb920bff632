"""A ledger on a disk that is full, read-only or locked: falsy, never raised, and it recovers.

As root, rights bind only where the kernel itself says no.
"""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import hubbub
from hubbub import Outcome
from hubbub.state_file import FILE_NAME
from tests import namespaces
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Device, Receiver, entries

NAME = "health.self_rated"
PERIODIC = make_metric(epsilon="1", periodic=(1_000, 100, 1_000))


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return make_bundle(operator, PERIODIC)


def in_namespace(script: str, folder: Path, bundle_file: Path, key: str) -> str:
    """Run Python in `folder`, its own mounts' master; return what it printed."""
    namespaces.require(namespaces.MOUNTS)
    code = f"""
import os, sqlite3, subprocess, sys
from pathlib import Path
import hubbub
from hubbub import Outcome
from hubbub.state_file import FILE_NAME
from tests.devices import Clock, Device, entries, unreachable
clock = Clock(0)
def mount(*options):
    subprocess.run(["mount", *options], check=True)
def fill():
    with open("state/ballast", "ab", buffering=0) as ballast:
        try:
            while ballast.write(bytes(512)):
                pass
        except OSError:
            pass
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


def test_a_directory_in_which_sqlite_finds_no_place(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """For its log, which holds for root as well."""
    log = tmp_path / f"{FILE_NAME}-wal"
    Device(bundle, tmp_path).close()
    log.mkdir()
    with pytest.raises(hubbub.StateUnavailable):
        Device(bundle, tmp_path)
    log.rmdir()
    with Device(bundle, tmp_path) as client:
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
mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", "state")
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
# The log is merged into the ledger, and its place is free again.
fill()
try:
    device()
except hubbub.StateUnavailable as error:
    print(type(error).__name__)
os.unlink("state/ballast")
with device() as client:
    client._transport.answers.clear()
    print([waiting.round for waiting in client.preview()], client.flush(1))
print([(entry.round, entry.status.name) for entry in entries(Path("state"))])
ledger = sqlite3.connect(Path("state") / FILE_NAME)
print(*ledger.execute("PRAGMA integrity_check").fetchone())
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
        "StateUnavailable",
        "[2] True",
        "[(0, 'COUNTED'), (1, 'COUNTED'), (2, 'COUNTED')]",
        "ok",
    ]


BY_ITSELF = """
import hubbub.upload, time
from hubbub.ledger import Ledger
from tests.devices import soon
os.mkdir("state")
mount("-t", "tmpfs", "-o", "size=512k", "tmpfs", "state")
client = device()
receiver = client._transport
receiver.answers.clear()
print(client.metric("health.self_rated").record("good").name)
fill()
failures = []
honest = Ledger.require_writable
def look(ledger):
    try:
        honest(ledger)
    except hubbub.StateUnavailable as error:
        failures.append(error)
        raise
Ledger.require_writable = look
clock.now = 1_500
client._uploader.wake()
print(soon(lambda: len(failures) >= 3), len(receiver.submissions))
os.unlink("state/ballast")
freed = time.monotonic()
print(soon(lambda: not client.preview()), len(receiver.submissions))
took = time.monotonic() - freed
client.close()
ledger = sqlite3.connect(Path("state") / FILE_NAME)
print(*ledger.execute("PRAGMA integrity_check").fetchone())
"""
RECOVERED = ["STORED", "True 0", "True 1", "ok"]


def test_a_report_leaves_by_itself_when_there_is_space_again(
    operator: Operator, tmp_path: Path, bundle_file: Path
) -> None:
    """And though the network has had nothing to do with it; its pauses would be longer."""
    script = BY_ITSELF.replace("client =", "hubbub.upload.LOCAL_PAUSE = 0.1\nclient =", 1)
    printed = in_namespace(script, tmp_path, bundle_file, operator.key)
    assert printed.splitlines() == RECOVERED


@pytest.mark.soak
def test_disk_a_report_leaves_within_five_seconds_of_space(
    operator: Operator, tmp_path: Path, bundle_file: Path
) -> None:
    printed = in_namespace(BY_ITSELF + "print(took)", tmp_path, bundle_file, operator.key)
    *said, took = printed.splitlines()
    print(f"\nit took {float(took):.1f} s")
    assert said == RECOVERED
    assert float(took) < 5


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
    monkeypatch.setattr("hubbub.transaction._PATIENCE", 0.05)
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


def test_what_is_on_a_read_only_disk_can_still_be_looked_at(
    operator: Operator, tmp_path: Path, bundle_file: Path
) -> None:
    """If it was closed; a log that a kill left needs a place beside it, and it says so."""
    script = """
with device() as client:
    client.metric("health.self_rated").record("good")
import shutil
client = device()
shutil.copytree("state", "killed", ignore=shutil.ignore_patterns("*-shm"))
client.close()
for folder in ("state", "killed"):
    mount("--bind", folder, folder)
    mount("-o", "remount,bind,ro", folder)
    try:
        print([entry.round for entry in entries(Path(folder))])
    except hubbub.StateUnavailable as error:
        print(error.reason)
"""
    closed, killed = in_namespace(script, tmp_path, bundle_file, operator.key).splitlines()
    assert closed == "[0]"
    assert "is its directory read-only?" in killed
