"""What is fuzzed: a module for each target, whose `execute` raises only if something is wrong.

None needs a fuzzer: to replay the corpus, `execute` is all there is.
"""

from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from tests.fuzz.chance import Chance

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
NAMES = ("bundles", "reports", "ledgers", "settings", "definitions")


class Target(Protocol):
    """What such a module has."""

    LONGEST: int
    """Bytes of an input."""

    def execute(self, data: bytes, *, thorough: bool = True) -> None:
        """Try one input. Raises if it is not treated as it should be.

        `thorough`: with the checks that are too dear to be made of every input.
        """
        ...

    def mutate(self, data: bytes, chance: Chance) -> bytes:
        """Another input, much like this one."""
        ...

    def seeds(self) -> list[bytes]:
        """What to begin with, where there is no corpus yet."""
        ...


def target(name: str) -> Target:
    return cast(Target, import_module(f"tests.fuzz.targets.{name}"))


def corpus(name: str) -> list[Path]:
    return sorted((CORPUS / name).iterdir())
