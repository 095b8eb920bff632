"""Forks under load: nothing lost, nothing doubled, no deadlock, whoever closes last."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.ledger import Ledger
from tests import lives
from tests.bundles import Operator, make_metric
from tests.forking import CHILD, LATE, NAMES
from tests.systems import needs_fork

pytestmark = needs_fork


def fork_under_load(operator: Operator, folder: Path, *, forks: int, threads: int) -> None:
    metrics = [make_metric(name, epsilon="0.000001", periodic=(1, 100_000, 0)) for name in NAMES]
    (folder / "metrics.hubbub").write_bytes(operator.sign(metrics))
    (folder / "operator.pub").write_text(operator.key)
    subprocess.run(
        [sys.executable, "-m", "tests.forking", str(folder), str(forks), str(threads)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        # A deadlock is one that lasts: nothing is measured by it.
        timeout=600,
    )
    told = [line.split() for line in (folder / "stored").read_text().splitlines()]
    stored = {(name, int(number)) for name, number in told}
    ledger = Ledger.open(str(folder / "state"))
    kept = {(entry.metric, entry.round): entry for entry in ledger.entries()}
    assert ledger.accounts() == {"health": 10**6 * len(kept)}
    ledger.close()
    # Nothing doubled, nothing lost.
    assert len(stored) == len(told)
    assert set(kept) == stored
    reports = [entry.report for entry in kept.values() if entry.report is not None]
    assert len(set(reports)) == len(reports) > 0
    assert (folder / "failed").read_text() == ""
    # So that the comparison is of something: threads, children, and those who came late.
    assert len({name for name, _ in stored}) == threads + 2
    assert len([name for name, _ in stored if name == CHILD]) > forks // 2
    assert len([name for name, _ in stored if name == LATE]) > forks // 10
    files = sorted(path.name for path in (folder / "state").iterdir())
    assert files == ["generation", "ledger.sqlite3"]


def test_forks_under_load(operator: Operator, tmp_path: Path) -> None:
    fork_under_load(operator, tmp_path, forks=10, threads=8)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_three_hundred_forks_under_load(operator: Operator, tmp_path: Path) -> None:
    fork_under_load(operator, tmp_path, forks=150, threads=32)


STARTS = """
import os, sys
from hubbub import Bundle
from hubbub.charging import Charge
from hubbub.ledger import Ledger
from tests import lives
file, key, folder = sys.argv[1:]
bundle = Bundle.load(file, operator_key=key)
for number in range(15):
    hold, go = os.pipe()
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            status = 2
            try:
                os.close(go)
                os.read(hold, 1)
                ledger = Ledger.open(f"{folder}/{number}")
                lives.adopt(ledger, bundle)
                status = lives.record(ledger, bundle.metrics["fresh"], 0) is Charge.CHARGED
                ledger.close()
            finally:
                os._exit(status)
        children.append(child)
    os.close(go)
    os.close(hold)
    print(sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


def test_many_first_starts_at_once_make_one_ledger(operator: Operator, tmp_path: Path) -> None:
    """Some open while others close: each sees one moment of the file, and one is charged."""
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(lives.bundle_of_all(operator).signed)
    ran = subprocess.run(
        [sys.executable, "-c", STARTS, str(file), operator.key, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=True,
        capture_output=True,
        text=True,
    )
    assert ran.stdout.splitlines() == ["[0, 0, 0, 0, 0, 1]"] * 15
