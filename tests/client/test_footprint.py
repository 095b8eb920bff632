"""What the SDK costs its host: which modules it loads and when, and how much memory.

Times are in benchmarks/startup.py: they are not a matter of pass or fail on a busy machine.
"""

import subprocess
import sys
from pathlib import Path

import pytest

import hubbub
from benchmarks.startup import LIMIT_MEGABYTES, memory
from tests.bundles import Operator, make_metric

HEAVY = (
    "grpc",
    "numpy",
    "google",
    "cryptography",
    "sqlite3",
    "_sqlite3",
    "ssl",
    "_ssl",
    "_hashlib",
)


def loaded(script: str, *arguments: str) -> set[str]:
    """The modules in memory after a script in a fresh interpreter."""
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys\n{script}\nprint(*sys.modules)", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stdout.split())


def heavy(modules: set[str]) -> set[str]:
    """Which of the heavy packages are among them."""
    return {name for name in HEAVY if any(m == name or m.startswith(f"{name}.") for m in modules)}


def test_importing_hubbub_loads_nothing_but_itself() -> None:
    standard = loaded("import importlib, typing")
    assert loaded("import hubbub") - standard == {"hubbub"}
    assert not heavy(loaded("import hubbub"))


@pytest.mark.parametrize("name", [*hubbub.__all__])
def test_no_public_name_brings_grpc_numpy_or_protobuf(name: str) -> None:
    modules = loaded(f"import hubbub; hubbub.{name}")
    assert heavy(modules) <= {"sqlite3", "_sqlite3"}


def test_public_names_are_all_there() -> None:
    assert len(set(hubbub.__all__)) == len(hubbub.__all__)
    for name in hubbub.__all__:
        assert getattr(hubbub, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        getattr(hubbub, "Nothing")  # noqa: B009


@pytest.fixture
def arguments(operator: Operator, tmp_path: Path) -> tuple[str, ...]:
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric()], endpoint="localhost:1"))
    return str(file), operator.key, str(tmp_path / "state"), "health"


CLIENT = """
import hubbub
file, key, state, source = sys.argv[1:]
client = hubbub.Client(file, operator_key=key, state_dir=state, budgets={source: "8"})
metric = client.metric("health.self_rated")
"""


def test_a_client_loads_grpc_and_protobuf_only_to_send(arguments: tuple[str, ...]) -> None:
    ready = {"cryptography", "sqlite3", "_sqlite3"}
    assert heavy(loaded(CLIENT, *arguments)) == ready
    record = CLIENT + "assert metric.record('good')\nassert client.preview()\n"
    assert heavy(loaded(record, *arguments)) == ready
    sending = heavy(loaded(CLIENT + "client.flush(0.2)\n", *arguments))
    assert sending - {"ssl", "_ssl", "_hashlib"} == ready | {"grpc", "google"}


def test_the_memory_of_a_ready_client(arguments: tuple[str, ...], tmp_path: Path) -> None:
    assert memory(tmp_path / "compiled", *arguments) <= LIMIT_MEGABYTES
