"""The one source of randomness: the operating system's, fresh every time, and nothing else."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hubbub
from hubbub.mechanisms import MECHANISMS
from hubbub.randomness import SYSTEM, uniform_below
from tests.calibrated import calibrated

PACKAGE = Path(*hubbub.__path__)
PRIVACY_CORE = [
    PACKAGE / "exact.py",
    PACKAGE / "randomness.py",
    *sorted((PACKAGE / "mechanisms").glob("*.py")),
]


def test_the_system_draws_what_is_asked() -> None:
    assert SYSTEM.base == 256
    assert SYSTEM.digits(0) == b""
    assert len(SYSTEM.digits(1000)) == 1000
    assert SYSTEM.digits(16) != SYSTEM.digits(16)
    assert {SYSTEM.below(1) for _ in range(10)} == {0}
    assert {SYSTEM.below(3) for _ in range(200)} == {0, 1, 2}


@pytest.mark.parametrize(("n", "size"), [(1, 1), (2, 2), (255, 2), (256, 2), (257, 3), (65_535, 3)])
def test_an_integer_takes_one_digit_more_than_it_needs(n: int, size: int) -> None:
    """So that a word is drawn again with probability below 1/256."""
    asked: list[int] = []

    class Lowest:
        base = 256

        def digits(self, count: int) -> bytes:
            asked.append(count)
            return bytes(count)

        def below(self, n: int) -> int:
            raise AssertionError("a word is made of digits alone")

    assert uniform_below(Lowest(), n) == 0
    assert asked == [size]


def test_a_word_past_the_last_whole_multiple_is_drawn_again() -> None:
    words = [b"\xff\xff", b"\xff\xfe", b"\x00\x07"]

    class Tape:
        base = 256

        def digits(self, count: int) -> bytes:
            return words.pop(0)

        def below(self, n: int) -> int:
            raise AssertionError("a word is made of digits alone")

    # 65,536 = 7 · 9,362 + 2: the two highest words are left out.
    assert uniform_below(Tape(), 7) == 0
    assert words == []


@pytest.mark.parametrize("name", MECHANISMS)
def test_without_randomness_there_is_no_report(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(count: int) -> bytes:
        raise OSError("no randomness")

    mechanism = calibrated(name, 4, "1")
    monkeypatch.setattr(os, "urandom", none_left)
    with pytest.raises(OSError, match="no randomness"):
        mechanism.randomise(0, SYSTEM)


def test_forked_children_draw_apart() -> None:
    """A hundred children of one process, forked after it drew: no draw occurs twice."""
    program = """
import os
from hubbub.randomness import SYSTEM
print(SYSTEM.digits(16).hex(), flush=True)
for _ in range(100):
    child = os.fork()
    if child == 0:
        os.write(1, SYSTEM.digits(16).hex().encode() + b"\\n")
        os._exit(0)
    os.waitpid(child, 0)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    draws = run.stdout.split()
    assert len(draws) == len(set(draws)) == 101


@pytest.mark.parametrize("path", PRIVACY_CORE, ids=lambda path: path.stem)
def test_no_floats_and_no_other_randomness_where_privacy_is_made(path: Path) -> None:
    allowed = {"collections", "dataclasses", "fractions", "functools", "math", "re", "typing"}
    if path.name == "randomness.py":
        allowed.add("os")
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= allowed
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.module.split(".")[0] in {*allowed, "hubbub"}
            if node.module == "math":
                assert {alias.name for alias in node.names} <= {"comb", "isqrt"}
        if isinstance(node, ast.Constant):
            assert not isinstance(node.value, float)
        if isinstance(node, ast.Name):
            assert node.id != "float"
