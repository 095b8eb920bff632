"""Prefork servers: every worker records into one state directory, against a real aggregator.

The application is the one in docs/sdk.md.
"""

import os
import re
import subprocess
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hubbub.rows import Status
from tests.bundles import Operator, make_metric
from tests.devices import PATIENCE, entries, soon
from tests.guests import Collection
from tests.systems import needs_fork

pytestmark = needs_fork

DOCUMENT = Path(__file__).parents[2] / "docs" / "sdk.md"

# Every worker ends a few times, and another takes its place.
GUNICORN = ("gunicorn", "web:application", "--bind", "127.0.0.1:0", "--no-control-socket")
GUNICORN += ("--workers", "3", "--max-requests", "30")
UWSGI = ("uwsgi", "--http-socket", "127.0.0.1:0", "--wsgi-file", "web.py", "--die-on-term")
UWSGI += ("--master", "--processes", "3")
SERVERS = {
    "gunicorn": GUNICORN,
    "gunicorn, preloaded": (*GUNICORN, "--preload"),
    "uWSGI, lazy": (*UWSGI, "--lazy-apps"),
    "uWSGI, with hooks": (*UWSGI, "--py-call-uwsgi-fork-hooks"),
}
LISTENING = re.compile(r"(?:at: http://|to TCP address )127\.0\.0\.1:(\d+)")

# What the document's budget covers at ε = 0.1 each, and more that it does not.
BUDGET = 80
NAMES = [f"m{number:03}" for number in range(100)]


@contextmanager
def serving(command: Sequence[str], collection: Collection) -> Generator[int]:
    """The document's application under a server; gives its port."""
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    (application,) = (block for block in blocks if block.startswith("# web.py"))
    (collection.folder / "web.py").write_text(application)
    log = collection.folder / "web.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [Path(sys.executable).with_name(command[0]), *command[1:]],
            cwd=collection.folder,
            env={**os.environ, "OPERATOR_KEY": collection.operator.key},
            stdout=output,
            stderr=output,
        )
    try:
        assert soon(lambda: LISTENING.search(log.read_text()) is not None), log.read_text()
        found = LISTENING.search(log.read_text())
        assert found is not None
        yield int(found[1])
    finally:
        server.terminate()
        server.wait(PATIENCE)


def request(port: int, metric: str) -> str:
    """The name of the outcome."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("GET", f"/{metric}/good")
        return connection.getresponse().read().decode()


@pytest.mark.parametrize("server", SERVERS)
def test_workers_share_one_account(operator: Operator, tmp_path: Path, server: str) -> None:
    collection = Collection(operator, tmp_path, NAMES, source="lunch", epsilon="0.1")
    with collection.served():
        with serving(SERVERS[server], collection) as port, ThreadPoolExecutor(6) as pool:
            # Each metric twice, about at once, so that workers meet.
            twice = [name for name in NAMES for _ in range(2)]
            told = list(pool.map(lambda name: request(port, name), twice))
            # What is due leaves, while there are workers.
            assert soon(lambda: Status.COUNTED in {e.status for e in entries(collection.state)})
        collection.send_the_rest()
    collection.judge(told)
    assert {*told} <= {"STORED", "ALREADY_ANSWERED", "BUDGET_SPENT"}
    assert told.count("STORED") == BUDGET


UNANNOUNCED = """
import ctypes, os, sys
from hubbub import Client, StateUnavailable, forks
file, key, state, told = sys.argv[1:]
def make():
    return Client(file, operator_key=key, state_dir=state, budgets={"health": "8"})
client = make()
print(client.metric("a").record("good").name, flush=True)
child = ctypes.PyDLL(None).fork()
if child == 0:
    if told == "the child alone":
        forks._in_child()
    print(client.metric("b").record("good").name, client.flush(), client.preview())
    client.close()
    try:
        make()
    except StateUnavailable as error:
        print(error.reason)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print(client.metric("c").record("good").name, len(client.preview()))
client.close()
"""


@pytest.mark.parametrize("told", ["nobody", "the child alone"])
def test_a_child_of_a_fork_that_nobody_announced_leaves_its_parent_s_ledger_alone(
    operator: Operator, tmp_path: Path, told: str
) -> None:
    """As uWSGI forks, by default and with `--py-call-osafterfork`."""
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric(name) for name in "abc"]))
    ran = subprocess.run(
        [sys.executable, "-c", UNANNOUNCED, file, operator.key, tmp_path / "state", told],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, refused, reason, last = ran.stdout.splitlines()
    assert (first, refused, last) == ("STORED", "NOT_STORED False []", "STORED 2")
    assert "forked without Python's fork hooks" in reason
    assert ran.stderr == ""
    assert [entry.metric for entry in entries(tmp_path / "state")] == ["a", "c"]
