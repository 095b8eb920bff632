"""benchmarks/timing.py sees what a textbook's way of randomising gives away; device.py counts.

What they say about the shipped code is for `make bench`: no test hangs on how long anything
takes. What is seen here takes several times as long as what it is compared with.
"""

import gc
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import device, timing
from hubbub.mechanisms import MEMOISED, RandomisedResponse
from tests.bundles import Operator

ROOT = Path(__file__).parents[1]
DRAWS = 6_000
MECHANISM = RandomisedResponse.calibrate(128, timing.ONE)


def textbook(value: int) -> bytes:
    """The right law: a lie is chosen only when one is told, from a list that is made for it."""
    if secrets.randbits(64) < MECHANISM.keep:
        return bytes([value])
    return bytes([secrets.choice([other for other in range(MECHANISM.k) if other != value])])


def looked_up(value: int) -> bytes:
    """The value is looked for from the first on."""
    place = next(other for other in range(MECHANISM.k) if other == value)
    return bytes([(place + secrets.randbelow(MECHANISM.k)) % MECHANISM.k])


def test_a_lie_that_takes_longer_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    subject = timing.one_time_subject(MECHANISM, textbook)
    looks = timing.comparisons(subject)
    assert timing.differs(subject, "truth − lie", looks["truth − lie"], DRAWS)
    assert len(capsys.readouterr().out.splitlines()) == timing.LOOKS


def test_a_value_that_takes_longer_is_seen() -> None:
    subject = timing.one_time_subject(MECHANISM, looked_up)
    assert timing.differs(subject, "first − last", timing.first_and_last, DRAWS)


def test_a_failure_is_told_by_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["timing.py", "--draws", str(DRAWS)])
    monkeypatch.setattr(
        timing, "subjects", lambda _: iter([timing.one_time_subject(MECHANISM, looked_up)])
    )
    # This process is not to stay as the benchmark likes it.
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None, raising=False)
    monkeypatch.setattr(gc, "disable", lambda: None)
    assert timing.main() == 1
    assert (
        "in each of 3 looks: randomised-response, k = 128: first − last" in capsys.readouterr().out
    )


@pytest.mark.parametrize("name", ["memoised-local-hashing", timing.CLIENT])
def test_it_runs(name: str) -> None:
    ran = subprocess.run(
        [sys.executable, "benchmarks/timing.py", "--draws", "200", "--mechanism", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    rows = [line for line in ran.stdout.splitlines()[1:] if line.startswith(name)]
    assert len(rows) >= (4 if name in MEMOISED else 2)


def test_what_a_device_pays_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for few in ("TURNS", "RECORDS", "SEALS", "QUESTIONS"):
        monkeypatch.setattr(device, few, 2)
    operator = Operator.create(tmp_path / "keys")
    hybrid = Operator.create(tmp_path / "hybrid keys", hybrid=True)
    device.show_records(operator, hybrid, tmp_path)
    device.show_writes(operator, tmp_path)
    device.show_bytes(operator, hybrid, tmp_path)
    printed = capsys.readouterr().out
    # The peers are no dependencies.
    assert printed.count("not installed") in (0, 1, 2, 3)
    assert printed.count("limit 60") == 3
    (fsyncs,) = (line.split()[1] for line in printed.splitlines() if line.startswith("fsyncs"))
    assert float(fsyncs) == device.LIMIT_SYNCS
    sizes = [line.split()[-4:-2] for line in printed.splitlines() if line.startswith("randomised")]
    assert sizes == [["1", "65"], ["1", "1153"]]
