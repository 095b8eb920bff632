"""Fuzzing: the corpus again and a moment of chance in `make test`; far more in `make soak`."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fuzz import scratch, targets
from tests.fuzz.chance import Chance

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_MB = 512
# Of a target, in `make test`.
SECONDS = 1.5

needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="atheris is not installed: pip install --group fuzz, where it is made for the system",
)


@pytest.mark.parametrize("name", targets.NAMES)
def test_the_corpus(name: str) -> None:
    target = targets.target(name)
    inputs = [path.read_bytes() for path in targets.corpus(name)]
    assert len(inputs) > 10
    deadline = time.monotonic() + SECONDS
    for place, data in enumerate(inputs):
        # What is dearer, of as many as there is time for.
        target.execute(data, thorough=place < 3 or time.monotonic() < deadline)


@pytest.mark.parametrize("name", targets.NAMES)
def test_mutants_of_the_corpus(name: str) -> None:
    """Without coverage, and so without atheris."""
    target = targets.target(name)
    inputs = [path.read_bytes() for path in targets.corpus(name)]
    deadline, seed = time.monotonic() + SECONDS, 0
    while time.monotonic() < deadline:
        chance = Chance(seed)
        target.execute(target.mutate(chance.pick(inputs), chance), thorough=False)
        seed += 1
    assert seed > 100


def test_the_corpus_is_small() -> None:
    sizes = [path.stat().st_size for name in targets.NAMES for path in targets.corpus(name)]
    assert sum(sizes) < 200_000


@needs_atheris
def test_atheris_watches_the_code(tmp_path: Path) -> None:
    fuzz = fuzzed("definitions", 200, tmp_path)
    assert fuzz.executions >= 200
    assert fuzz.edges > 20


@needs_atheris
@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "runs"),
    [
        # Together a million, in the time that a part may take.
        pytest.param("bundles", 500_000, id="fuzz_bundles_once"),
        pytest.param("bundles", 500_000, id="fuzz_bundles_again"),
        pytest.param("reports", 1_000_000, id="fuzz_reports"),
        pytest.param("ledgers", 100_000, id="fuzz_ledgers"),
        pytest.param("settings", 100_000, id="fuzz_settings"),
        pytest.param("definitions", 100_000, id="fuzz_definitions"),
    ],
)
def test_no_input_does_harm(
    name: str, runs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fuzz = fuzzed(name, runs, tmp_path)
    with capsys.disabled():
        print(f"\n{name}: {fuzz}")
    assert fuzz.executions >= runs
    assert fuzz.megabytes < MOST_MB


class Fuzzed(NamedTuple):
    """What came of it."""

    executions: int
    seconds: float
    edges: int
    megabytes: int

    def __str__(self) -> str:
        return (
            f"{self.executions:,} executions in {self.seconds:.0f} s, {self.edges:,} edges of the "
            f"code covered, at most {self.megabytes} MB"
        )


def fuzzed(name: str, runs: int, tmp_path: Path) -> Fuzzed:
    """Fuzz a target from its corpus."""
    corpus = tmp_path / "corpus"
    shutil.copytree(targets.CORPUS / name, corpus)
    began = time.monotonic()
    log = _log(name, runs, corpus, tmp_path)
    return Fuzzed(
        executions=_last(r"stat::number_of_executed_units: +(\d+)", log),
        seconds=time.monotonic() - began,
        edges=_last(r"cov: (\d+)", log),
        megabytes=_last(r"stat::peak_rss_mb: +(\d+)", log),
    )


def _log(name: str, runs: int, corpus: Path, tmp_path: Path) -> str:
    seed = int.from_bytes(os.urandom(3), "big") + 1
    options = [f"-runs={runs}", f"-seed={seed}", f"-rss_limit_mb={MOST_MB}", "-timeout=60"]
    options += ["-print_final_stats=1", f"-artifact_prefix={tmp_path}/", str(corpus)]
    command = [sys.executable, "-m", "tests.fuzz.run", name, *options]
    with tempfile.TemporaryDirectory(dir=scratch.memory()) as folder:
        process = subprocess.run(
            # A process' peak begins with that of the one that starts it: a shell's is small.
            ["sh", "-c", '"$@"; exit $?', "sh", *command],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    # With the seed, the exception, and the file that raises it.
    assert process.returncode == 0, process.stdout[-4_000:] + process.stderr[-8_000:]
    return process.stdout + process.stderr


def _last(pattern: str, log: str) -> int:
    return int(re.findall(pattern, log)[-1])
