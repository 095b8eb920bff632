"""The mechanisms used alone: what docs/mechanisms.md shows, and examples/over_http.py.

In interpreters that refuse to import what a device without the client need not have.
"""

import importlib.util
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from hubbub.mechanisms import MECHANISMS, MEMOISED
from tests.calibrated import calibrated, memoised

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "mechanisms.md"
EXAMPLE = ROOT / "examples" / "over_http.py"

REFUSING = """
import sys

REFUSED = {"sqlite3", "_sqlite3", "grpc", "google", "cryptography", "ssl", "numpy", "scipy"}

class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in REFUSED:
            raise ImportError(f"{name} is refused")

sys.meta_path.insert(0, Refusing())
"""


def alone(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script where nothing can be imported that the mechanisms do without."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", REFUSING + script, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_client_cannot_be_had_so() -> None:
    ran = alone("import hubbub\nhubbub.Client\n")
    assert "is refused" in ran.stderr


@pytest.mark.parametrize("name", [*MECHANISMS, *MEMOISED])
def test_every_mechanism_can(name: str) -> None:
    mechanism = calibrated(name, 9, "1") if name in MECHANISMS else memoised(name, 9)
    ran = alone(f"""
from hubbub.exact import Certificate, Epsilon
from hubbub.mechanisms import *
from hubbub.mechanisms.coin import Resolution
from hubbub.randomness import SYSTEM

mechanism = {mechanism!r}
payload = mechanism.randomise(8, SYSTEM)
mechanism.supported(payload)
print(len(payload), Certificate(Epsilon.parse("1"), mechanism.ratio).holds, mechanism.support.p)
""")
    assert ran.stdout.split() == [
        str(mechanism.payload_size),
        "True",
        str(mechanism.support.p),
    ], ran.stderr


def test_the_document_works_as_it_stands() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ran = alone("\n".join(blocks) + "\nprint(charge, len(payload), mood.payload_size)\n")
    assert ran.returncode == 0, ran.stderr
    parameters, *shares, memo = ran.stdout.splitlines()
    # The document writes the integers out for whoever builds them in.
    (keep,) = re.findall(r"'keep': (\d+)", parameters)
    assert f"RandomisedResponse(4,\n{keep})" in text
    assert [line.split()[0] for line in shares] == ["soup", "salad", "pasta", "nothing"]
    assert memo == f"{6 * 10**12} 1 1"


def test_the_document_lists_every_mechanism() -> None:
    rows = re.findall(r"^\| .*? \| `(\w+)` \| (.*?) ?\|$", DOCUMENT.read_text(), re.MULTILINE)
    mechanisms = [calibrated(name, 9, "1") for name in MECHANISMS]
    assert dict(rows) == {
        type(mechanism).__name__: ", ".join([*mechanism.parameters][1:]) for mechanism in mechanisms
    }


# The example.


def test_the_example_runs() -> None:
    ran = alone("import runpy\nrunpy.run_path(sys.argv[1], run_name='__main__')\n", str(EXAMPLE))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert ran.stdout.startswith("150 reports, ε = 2\n")


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("over_http", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def collector(example: Any) -> Generator[Any]:
    with example.Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, args=(0.01,))
        thread.start()
        yield collector
        collector.shutdown()
        thread.join()


def test_a_round_is_answered_once_and_the_budget_kept(example: Any, tmp_path: Path) -> None:
    recorded = [example.Device(tmp_path).record(number, 1) for number in (0, 0, 1, 0, 2, 3)]
    assert recorded == [True, False, True, False, False, False]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1"]


def test_what_is_sent_again_is_the_same_and_counts_once(
    example: Any, collector: Any, tmp_path: Path
) -> None:
    send, sent = example.over_http(collector.server_port), []

    def watched(number: int, report: bytes) -> bool:
        sent.append((number, report))
        return bool(send(number, report))

    device = example.Device(tmp_path)
    assert device.record(0, 1)
    collector.answers_to_lose = 2
    assert [device.send(watched) for _ in range(3)] == [False, False, True]
    assert len(sent) == 3
    assert len(set(sent)) == 1
    assert list(collector.payloads.values()) == [sent[0][1][example.ID_BYTES :]]
    # Nothing waits, and the round stays answered.
    assert device.send(watched)
    assert len(sent) == 3
    assert not device.record(0, 2)


def test_a_crash_costs_the_report_and_not_the_budget(
    example: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = example.Device(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(example.os, "fsync", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            device.record(0, 1)
    assert not device.record(0, 1)
    assert device.send(lambda *_: pytest.fail("sent what a crash had cut short"))
    assert [device.record(number, 1) for number in (1, 2)] == [True, False]


def test_the_collector_refuses_what_is_no_report(example: Any, collector: Any) -> None:
    path = f"/{example.QUESTION}/0/{'0' * 32}"
    hostile = [
        (path, b"\4"),
        (path, b""),
        (path, b"\0" * 5_000),
        (path[:-1], b"\0"),
        (path + "0", b"\0"),
        ("/dinner/0/" + "0" * 32, b"\0"),
        ("/", b"\0"),
    ]
    statuses: list[int] = []
    for target, body in hostile:
        connection = HTTPConnection("127.0.0.1", collector.server_port, timeout=30)
        connection.request("PUT", target, body=body)
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [400] * len(hostile)
    assert collector.payloads == {}
