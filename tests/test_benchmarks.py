"""benchmarks/timing.py sees what a textbook's way of randomising gives away; device.py counts.

What they say about the shipped code is for `make bench`: no test hangs on how long anything
takes. What is seen here takes several times as long as what it is compared with.
"""

import gc
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import archive, device, ingest, timing
from hubbub.mechanisms import MEMOISED, RandomisedResponse
from hubbub.upload import BURST
from tests.bundles import Operator, make_bundle, make_metric
from tests.systems import needs_proc

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
    device.show_growth(operator, tmp_path)
    device.show_bytes(operator, hybrid, tmp_path)
    printed = capsys.readouterr().out
    # The peers are no dependencies.
    without = printed.count("not installed: pip install ")
    assert without + printed.count("Hubbub's is ") == len(device.PEERS)
    assert printed.count("limit 60") == len(device.CONTRACTS)
    assert printed.count("bytes the directory grows by") == 3
    (fsyncs,) = (line.split()[1] for line in printed.splitlines() if line.startswith("fsyncs"))
    assert float(fsyncs) == device.LIMIT_SYNCS
    sizes = [line.split()[-6:-2] for line in printed.splitlines() if line.startswith("randomised")]
    assert sizes == [["1", "17", "65", "111"], ["1", "17", "1,153", "1,200"]]
    batches = [line for line in printed.splitlines() if line.startswith("  50 in one request")]
    assert [line.split()[-3] for line in batches] == ["65.9", "1,154.0"]


def test_no_report_is_due_while_records_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the upload's thread seals, and what that takes is taken for a record's."""
    sent: list[object] = []

    def submit(*report: object) -> list[int]:
        sent.append(report)
        return [1]

    monkeypatch.setattr(device.Nowhere, "submit", submit)
    operator = Operator.create(tmp_path / "keys")
    with device.storing(operator, iter([tmp_path / "state"]))() as (act, times):
        act()
        # Many times as long as the upload lets a burst go on.
        time.sleep(10 * BURST)
    assert times == device.QUESTIONS
    assert len(sent) <= 2


def test_a_peer_is_shown_with_its_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Peer:
        def __init__(self, epsilon: float, values: int, **_: object) -> None:
            assert (epsilon, values) in ((0.05, 5), (0.05, 128))

        def privatise(self, value: int) -> int:
            return sum(range(10_000)) + value

    # It starts but once in a process.
    monkeypatch.setitem(sys.modules, "glean", None)
    names = ("DEClient", "UEClient", "LHClient")
    monkeypatch.setitem(
        sys.modules, "pure_ldp.frequency_oracles", SimpleNamespace(**dict.fromkeys(names, Peer))
    )
    for few in ("TURNS", "RECORDS", "SEALS", "QUESTIONS"):
        monkeypatch.setattr(device, few, 2)
    operator = Operator.create(tmp_path / "keys")
    device.show_records(operator, operator, tmp_path)
    lines = [line for line in capsys.readouterr().out.splitlines() if "pure-LDP" in line]
    ratios = [float(line.partition("Hubbub's is")[2].split()[0]) for line in lines]
    assert len(ratios) == 3
    assert max(ratios) < 1


def test_ingest_measures_both_servers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    operator = Operator.create(tmp_path / "keys")
    bundle = make_bundle(
        operator, make_metric("few", values=ingest.FEW, mechanism="randomised-response")
    )
    (tmp_path / "bundle").write_bytes(bundle.signed)
    for name, few in {"TURNS": 1, "SINGLES": 40, "AT_ONCE": 16}.items():
        monkeypatch.setattr(ingest, name, few)
    ca = (operator.folder / "ca.crt").read_bytes()
    ingest.show_singles(operator, bundle, ca, tmp_path)
    shown = capsys.readouterr().out
    assert shown.count("limit: an empty gRPC server") == 2


@needs_proc
def test_what_archiving_takes_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.show(12_000, tmp_path)
    shown = capsys.readouterr().out
    assert shown.startswith("closing 12,000 reports, seconds")
    assert shown.endswith("the same\n")
