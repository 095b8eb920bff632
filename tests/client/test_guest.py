"""A good guest in other people's programs: threads, processes, forks, containers, the end."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any

import pytest

import hubbub
from hubbub import Client, Outcome, at_exit
from hubbub.rows import Status
from tests import namespaces
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, entries, unreachable
from tests.guests import Collection
from tests.systems import needs_fork, needs_proc

NAME = "health.self_rated"
ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: object, prefix: Sequence[str] = (), cwd: Path = ROOT) -> str:
    """Run a program to its end, as a host would be; return what it printed."""
    ran = subprocess.run(
        [*prefix, sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=cwd,
        capture_output=True,
        text=True,
        # One that hangs does so for good: nothing is measured by it.
        timeout=600,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


# Threads and processes.

THREADS = """
import random, sys, threading
from hubbub import Client
file, key, state, count, seed = sys.argv[1:]
client = Client(file, operator_key=key, state_dir=state, budgets={"health": "8"})
names = list(client._bundle.metrics)
barrier = threading.Barrier(int(count))
told = []
def work(number):
    mine = random.Random(f"{seed} {number}").sample(names, len(names))
    barrier.wait()
    for name in mine:
        told.append(client.metric(name).record("good").name)
threads = [threading.Thread(target=work, args=(number,)) for number in range(int(count))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
client.close()
print(*told)
"""


def test_thirty_two_threads(operator: Operator, tmp_path: Path) -> None:
    collection = Collection(operator, tmp_path, [f"m{number}" for number in range(20)])
    with collection.served():
        told = run(THREADS, collection.bundle_file, operator.key, collection.state, 32, 0)
        collection.send_the_rest()
    collection.judge(told.split())
    assert len(told.split()) == 32 * 20


def test_two_processes_on_one_state(operator: Operator, tmp_path: Path) -> None:
    collection = Collection(operator, tmp_path, [f"m{number}" for number in range(40)])
    told: list[str] = []

    def process(seed: int) -> None:
        told.extend(
            run(THREADS, collection.bundle_file, operator.key, collection.state, 4, seed).split()
        )

    with collection.served():
        processes = [threading.Thread(target=process, args=(seed,)) for seed in range(2)]
        for waiting in processes:
            waiting.start()
        for waiting in processes:
            waiting.join()
        collection.send_the_rest()
    collection.judge(told)
    assert len(told) == 2 * 4 * 40


# Forks.

FORKS = """
import os, sys, threading, warnings
from itertools import cycle
from pathlib import Path
from hubbub import Client
from tests.killable import Line
# That it forks beside threads, as it is meant to.
warnings.simplefilter("ignore", DeprecationWarning)
file, key, state, told, forks, threads, turns = sys.argv[1:]
client = Client(file, operator_key=key, state_dir=state, budgets={"health": "8"})
told, over = Line(Path(told)), threading.Event()
def record(name):
    told.write(client.metric(name).record("good").name)
def keep_recording(number):
    for name in cycle(f"t{number}.{turn}" for turn in range(int(turns))):
        if over.wait(0.002):
            return
        record(name)
def child(number):
    record(f"c{number}")
    if number % 3 == 0:
        client.flush(60)
    if number % 2:
        client.close()
recorders = [threading.Thread(target=keep_recording, args=(n,)) for n in range(int(threads))]
for recorder in recorders:
    recorder.start()
children = []
for number in range(int(forks)):
    forked = os.fork()
    if not forked:
        status = 1
        try:
            child(number)
            status = 0
        finally:
            os._exit(status)
    children.append(forked)
    if len(children) == 4:
        print(os.waitpid(children.pop(0), 0)[1])
over.set()
for recorder in recorders:
    recorder.join()
for forked in children:
    print(os.waitpid(forked, 0)[1])
client.close()
"""


def fork_while_sending(
    operator: Operator, folder: Path, *, forks: int, threads: int, turns: int
) -> None:
    """`turns`: metrics of each thread, which it can answer once a second each."""
    names = [f"t{number}.{turn}" for number in range(threads) for turn in range(turns)]
    children = [f"c{number}" for number in range(forks)]
    collection = Collection(operator, folder, names + children)
    told = folder / "told"
    with collection.served():
        arguments = (collection.bundle_file, operator.key, collection.state, told)
        statuses = run(FORKS, *arguments, forks, threads, turns)
        # Some left in the midst of it, of the parent's and of the children's.
        left = {
            entry.metric[0] for entry in entries(collection.state) if entry.status is Status.COUNTED
        }
        collection.send_the_rest()
    collection.judge(told.read_text().split())
    assert statuses.split() == ["0"] * forks
    assert left == {"t", "c"}
    assert set(children) <= {entry.metric for entry in entries(collection.state)}


@needs_fork
def test_forks_while_sending(operator: Operator, tmp_path: Path) -> None:
    fork_while_sending(operator, tmp_path, forks=20, threads=4, turns=5)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
@needs_fork
def test_guests_fork_three_hundred_times_while_sending(operator: Operator, tmp_path: Path) -> None:
    fork_while_sending(operator, tmp_path, forks=300, threads=32, turns=1)


LOADS = """
import sys, threading, time
from hubbub import Client, forks
from tests.devices import HASTY
file, key, state = sys.argv[1:]
class Watch:
    def find_spec(self, name, *_):
        if threading.current_thread().name == "hubbub":
            print(name, "waits" if forks.forbidden()._is_owned() else "IS COPIED")
sys.meta_path.insert(0, Watch())
Client._source = HASTY
with Client(file, operator_key=key, state_dir=state, budgets={"health": "8"}) as client:
    client.metric("health.self_rated").record("good")
    while client._ledger.outbox():
        time.sleep(0.1)
"""


def test_a_fork_waits_for_what_the_upload_loads(operator: Operator, tmp_path: Path) -> None:
    """A child of a fork in the midst of an import would wait for it for ever."""
    collection = Collection(operator, tmp_path, ["health.self_rated"])
    with collection.served():
        printed = run(LOADS, collection.bundle_file, operator.key, collection.state)
    modules = dict(line.split(maxsplit=1) for line in printed.splitlines())
    assert "grpc" in modules
    assert set(modules.values()) == {"waits"}


INHERITS = """
import os, sys, time, warnings
from hubbub import Client
# That it forks beside threads, as it is meant to.
warnings.simplefilter("ignore", DeprecationWarning)
file, key, state = sys.argv[1:]
client = Client(file, operator_key=key, state_dir=state, budgets={"health": "0.001"})
print(client.metric("m").record("good").name, flush=True)
child = os.fork()
if child:
    client.close()
    os.waitpid(child, 0)
else:
    print(client.metric("n").record("good").name, flush=True)
    while client._ledger.outbox():
        time.sleep(0.05)
    os._exit(0)
"""


@needs_fork
def test_a_child_sends_what_its_parent_left(operator: Operator, tmp_path: Path) -> None:
    """Even if it can store nothing more: a worker of a prefork server."""
    collection = Collection(operator, tmp_path, ["m", "n"])
    with collection.served():
        printed = run(INHERITS, collection.bundle_file, operator.key, collection.state)
    assert printed.split() == ["STORED", "BUDGET_SPENT"]
    assert [entry.status for entry in entries(collection.state)] == [Status.COUNTED]


IDLE = """
import os, sys, time
from hubbub import Client
from tests.devices import HASTY
file, key, state = sys.argv[1:]
Client._source = HASTY
def connections():
    links = (os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd"))
    return sum(os.path.islink(link) and os.readlink(link).startswith("socket:") for link in links)
with Client(file, operator_key=key, state_dir=state, budgets={"health": "8"}) as client:
    client.metric("m").record("good")
    while client._ledger.outbox():
        time.sleep(0.05)
    deadline = time.monotonic() + 30
    while connections() and time.monotonic() < deadline:
        time.sleep(0.05)
    print(connections())
"""


@needs_proc
def test_no_connection_is_kept_where_nothing_is_due(operator: Operator, tmp_path: Path) -> None:
    collection = Collection(operator, tmp_path, ["m"])
    with collection.served():
        assert run(IDLE, collection.bundle_file, operator.key, collection.state) == "0\n"


SIGNALS = """
import os, signal, sys, threading
from pathlib import Path
from hubbub import Client
file, key, state = sys.argv[1:]
NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1)
def takes(tid, number):
    status = Path(f"/proc/self/task/{tid}/status").read_text()
    (mask,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigBlk")]
    return not int(mask, 16) >> number - 1 & 1
client = Client(file, operator_key=key, state_dir=state, budgets={"health": "8"})
client.metric("m").record("good")
# gRPC is used by the host's own thread, or by ours, whichever is first.
flush = threading.Thread(target=client.flush, args=(30,))
flush.start()
hosts, seen = {os.getpid(), flush.native_id}, {}
while flush.is_alive():
    for tid in {int(name) for name in os.listdir("/proc/self/task")} - hosts:
        try:
            seen[tid] = [takes(tid, number) for number in (*NUMBERS, signal.SIGSEGV)]
        except (FileNotFoundError, ProcessLookupError):
            pass
assert all(takes(os.getpid(), number) for number in NUMBERS)
# That which sends, and gRPC's.
assert len(seen) > 2, seen
assert set(map(tuple, seen.values())) == {(*[False] * len(NUMBERS), True)}, seen
print("none")
"""


@needs_proc
def test_the_sdk_s_thread_takes_no_signals(operator: Operator, tmp_path: Path) -> None:
    """A host's handler in C would run on it, and end the process there: uWSGI's waited for ever."""
    collection = Collection(operator, tmp_path, ["m"])
    with collection.served():
        assert run(SIGNALS, collection.bundle_file, operator.key, collection.state) == "none\n"


# The end of a program.

LOST = """
import os, sys, threading, time, warnings
from pathlib import Path
from hubbub import Client
from hubbub.rows import Status
from tests.devices import HASTY, entries
warnings.simplefilter("ignore", DeprecationWarning)
file, key, state, where = sys.argv[1:]
class Silent:
    destination = "localhost:7443"
    def submit(self, *_):
        threading.Event().wait()
    fetch_bundle = submit
    def close(self):
        pass
Client._source = HASTY
client = Client(file, operator_key=key, state_dir=state, budgets={"health": "8"},
                transport=Silent() if where == "in the app" else None)
print(client.metric("health.self_rated").record("good").name, flush=True)
while entries(Path(state))[0].status is Status.WAITING:
    time.sleep(0.01)
"""


def lose(operator: Operator, folder: Path, script: str, where: str) -> str:
    """Run a program whose report is under way to somebody who never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"127.0.0.1:{silent.getsockname()[1]}"
        file = folder / "metrics.hubbub"
        file.write_bytes(operator.sign([make_metric()], endpoint=endpoint))
        return run(LOST + script, file, operator.key, folder / "state", where)


@pytest.mark.parametrize("where", ["on the network", "in the app"])
def test_a_program_ends_while_a_report_is_lost_on_its_way(
    operator: Operator, tmp_path: Path, where: str
) -> None:
    """Its last statement leaves the client open."""
    assert lose(operator, tmp_path, "", where) == "STORED\n"
    state = tmp_path / "state"
    assert [entry.status for entry in entries(state)] == [Status.SENT]
    # Closed, and not just left.
    assert sorted(path.name for path in state.iterdir()) == ["generation", "ledger.sqlite3"]


FORK = """
child = os.fork()
if not child:
    print(client.metric("health.self_rated").record("good").name, client.flush(0.1), flush=True)
    client.close()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@needs_fork
def test_a_fork_while_a_report_is_lost_on_its_way(operator: Operator, tmp_path: Path) -> None:
    """The call is given up first, for gRPC complains, aborts or hangs if it is forked in one."""
    printed = lose(operator, tmp_path, FORK, "on the network")
    assert printed == "STORED\nALREADY_ANSWERED False\n0\n"


def test_all_clients_together_have_two_seconds_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, given = Clock(100), list[float]()

    class Slow:
        def close_within(self, seconds: float) -> None:
            given.append(seconds)
            clock.now += 0.75

    monkeypatch.setattr(at_exit, "_open", [Slow() for _ in range(4)])
    monkeypatch.setattr(at_exit, "time", SimpleNamespace(monotonic=clock))
    at_exit._close_all()
    assert given == [2.0, 1.25, 0.5, 0.0]


# A container.

CONTAINED = """
import os, subprocess, sys
file, key, state = sys.argv[1:]
def mount(*options):
    subprocess.run(["mount", *options], check=True)
# The state is a volume; nothing else can be written.
os.mkdir(state)
mount("--bind", ".", ".")
os.chdir(os.getcwd())
mount("--bind", state, state)
for place in (".", "/"):
    mount("-o", "remount,bind,ro", place)
for name in (os.path.join(os.path.dirname(file), "elsewhere"), os.path.expanduser("~/elsewhere")):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        sys.exit(f"{name} can be written")
    except OSError:
        pass
from hubbub import Client
with Client(file, operator_key=key, state_dir=state, budgets={"health": "8"}) as client:
    print(client.metric("m").record("good").name, client.flush(30))
"""


def test_a_read_only_container_with_a_volume_for_the_state(
    operator: Operator, tmp_path: Path
) -> None:
    namespaces.require(namespaces.MOUNTS)
    collection = Collection(operator, tmp_path, ["m"])
    with collection.served():
        arguments = (collection.bundle_file, operator.key, collection.state)
        printed = run(CONTAINED, *arguments, prefix=namespaces.MOUNTS, cwd=tmp_path)
    assert printed == "STORED True\n"
    collection.judge(["STORED"])


# Whatever happens to it.


def everything(client: Client) -> Outcome:
    """All that a host can call; none of it may raise."""
    outcome = client.metric(NAME).record("good")
    client.flush(0.01)
    client.preview()
    client.pause()
    client.resume()
    _ = client.counts, client.dropped, client.switch, client.enabled
    return outcome


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return make_bundle(operator, make_metric(epsilon="0.1", periodic=(1_000, 100, 1_000)))


class Unsteady(Clock):
    """Raises what it was set to, if that is an exception."""

    now: Any

    def __call__(self) -> Any:
        if isinstance(self.now, Exception):
            raise self.now
        return self.now


@pytest.mark.parametrize(
    "moment",
    [float("nan"), float("inf"), -float("inf"), 1e300, 10**400, None, "noon", OSError("stopped")],
    ids=lambda moment: str(moment)[:9],
)
def test_a_clock_gone_mad(bundle: hubbub.Bundle, tmp_path: Path, moment: Any) -> None:
    clock = Unsteady(0)
    with Device(bundle, tmp_path, clock=clock) as client:
        clock.now = moment
        assert everything(client) in (Outcome.NOT_STORED, Outcome.NOT_ASKED_NOW)
        clock.now = 0
        client.resume()
        assert client.metric(NAME).record("good") is Outcome.STORED
    assert len(entries(tmp_path)) == 1


@pytest.mark.parametrize("way", ["deleted", "moved away", "emptied"])
def test_a_state_directory_that_vanishes(bundle: hubbub.Bundle, tmp_path: Path, way: str) -> None:
    clock, state = Clock(0), tmp_path / "state"
    with Device(bundle, state, clock=clock, transport=unreachable()) as client:
        assert client.metric(NAME).record("good")
        if way == "deleted":
            rmtree(state)
        elif way == "moved away":
            state.rename(tmp_path / "elsewhere")
        else:
            for file in state.iterdir():
                file.unlink()
        for number in range(1, 4):
            clock.now = 1_000 * number
            assert isinstance(everything(client), Outcome)
        client.enabled = False
