"""Every proof can fail: each mutant of the shipped code is refused by the proof named for it.

A mutant is executed afresh together with everything that imports it; if the text that it
changes is no longer found exactly once, the test fails.
"""

import importlib
import importlib.util
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

import hubbub
from tests.core import Core
from tests.memoised_proofs import MEMOISED_PROOFS
from tests.mutants import MUTANTS, Mutant
from tests.proofs import PROOFS

ALL_PROOFS = PROOFS | MEMOISED_PROOFS


class _OneChange(MetaPathFinder, Loader):
    """Import one module from changed source."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        path = Path(*hubbub.__path__, *module.__name__.split(".")[1:]).with_suffix(".py")
        source = path.read_text(encoding="utf-8")
        found = source.count(self._mutant.shipped)
        assert found == 1, f"{self._mutant.shipped!r} is in {path.name} {found} times, not once"
        changed = source.replace(self._mutant.shipped, self._mutant.changed)
        exec(compile(changed, str(path), "exec"), module.__dict__)  # noqa: S102


@contextmanager
def _imported_afresh(mutant: Mutant) -> Generator[Core, None, None]:
    """The privacy core, imported again with one change; the shipped one comes back after."""
    finder = _OneChange(mutant)
    shipped = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
    sys.meta_path.insert(0, finder)
    try:
        names = ("hubbub.exact", "hubbub.randomness", "hubbub.mechanisms")
        exact, randomness, mechanisms = (importlib.import_module(name) for name in names)
        yield Core(exact, randomness, mechanisms, _changed(mutant, mechanisms))
    finally:
        sys.meta_path.remove(finder)
        for name in filter(_is_ours, list(sys.modules)):
            del sys.modules[name]
        sys.modules.update(shipped)


def _changed(mutant: Mutant, mechanisms: ModuleType) -> tuple[str, ...]:
    """The mechanisms whose module is the mutant's, or imports it as a whole; or all if none."""
    kinds = {**mechanisms.MECHANISMS, **mechanisms.MEMOISED}
    changed = sys.modules[mutant.module]
    own = [
        name
        for name, kind in kinds.items()
        if changed in (home := sys.modules[kind.__module__], *vars(home).values())
    ]
    return tuple(own or kinds)


def _is_ours(name: str) -> bool:
    return name == "hubbub" or name.startswith("hubbub.")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.module.rpartition('.')[2]}-{m.name}")
def test_mutant_is_killed(mutant: Mutant) -> None:
    with _imported_afresh(mutant) as core, pytest.raises(AssertionError):
        ALL_PROOFS[mutant.killed_by](core)


@pytest.mark.parametrize("proof", ALL_PROOFS)
def test_every_proof_kills_a_mutant(proof: str) -> None:
    assert proof in {mutant.killed_by for mutant in MUTANTS}


def test_a_mutant_without_a_change_passes_every_proof() -> None:
    """The way mutants are made does not kill them."""
    same = "class RandomisedResponse"
    unchanged = Mutant("hubbub.mechanisms.randomised_response", "unchanged", "", same, same)
    with _imported_afresh(unchanged) as core:
        for prove in ALL_PROOFS.values():
            prove(core)
