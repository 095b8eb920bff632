"""Every proof can fail: each mutant of the shipped code is refused by the proof named for it.

A mutant is the shipped source with one textual change. It is executed afresh together with
everything that imports it; if the text is no longer found exactly once, the test fails.
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
from typing import NamedTuple

import pytest

import hubbub
from tests.proofs import PROOFS, Core


class Mutant(NamedTuple):
    module: str
    name: str
    killed_by: str
    shipped: str
    changed: str


# By module: the mutant's name, the proof that refuses it, the text as shipped, and as changed.
_CHANGES = {
    "mechanisms.coin": [
        ("less-or-equal", "law", "[equal] + ", "[ONE] + "),
        ("less-or-equal-in-the-last-digit", "law", "undecided else ZERO", "undecided else ONE"),
        ("less-or-equal-in-one-toss", "law", ") < self._digits", ") <= self._digits"),
        ("tie-always-1", "law", "_TIE if undecided else ZERO", "ONE"),
        ("tie-always-0", "law", "_TIE if undecided else ZERO", "ZERO"),
        ("tie-compared-with-leading-digit", "law", "source, place + 1)", "source, place)"),
        ("one-draw-for-all-bits", "law", "source.digits(n)", "source.digits(1) * n"),
        ("one-draw-for-all-ties", "law", "source.digits(ties)", "source.digits(1) * ties"),
    ],
    "mechanisms.optimised_unary": [
        ("true-bit-not-cleared", "law", "value] = own", "value] |= own"),
        ("true-bit-not-randomised", "law", "ZERO + 2 *", "ZERO + 1 + 0 *"),
        ("true-bit-shares-a-draw", "law", "digits.pop()", "digits[0]"),
        ("index-off-by-one", "law", "self.k - 1 - value", "self.k - 2 - value"),
        ("index-reversed", "law", "self.k - 1 - value", "value"),
        ("floor-for-ceiling", "certificate", "one - threshold", "one - 1 - threshold"),
        ("ratio-of-p-over-q", "ratio", "one - self.raised, self", "one // 2, self"),
    ],
    "mechanisms.symmetric_unary": [
        ("last-bit-not-randomised", "law", "source, self.k)", 'source, self.k - 1) + b"0"'),
        ("ratio-of-a-sure-bit", "ratio", "source, self.k)", 'source, self.k - 1) + b"0"'),
        ("p-and-q-swapped", "law", "coin(self.flip", "Coin(self.resolution.one - self.flip"),
        ("p-and-q-swapped-in-support", "support", "1 - flips, flips", "flips, 1 - flips"),
        ("true-bit-not-set", "law", "^= ONE ^ ZERO", "^= 0"),
        ("epsilon-for-half-epsilon", "certificate", "one, root=2)", "one)"),
        ("ratio-of-one-bit-for-two", "ratio", "self.flip) ** 2", "self.flip)"),
    ],
    "mechanisms.randomised_response": [
        ("lie-may-be-the-truth", "law", "1 + source.below(self.k - 1)", "source.below(self.k)"),
        ("lie-is-the-next-value", "law", "1 + source.below", "1 + 0 * source.below"),
        ("lie-for-truth", "law", "not self._coin", "self._coin"),
        (
            "lie-drawn-only-when-lying",
            "consumption",
            "lies * (1 + source.below(self.k - 1))",
            "(1 + source.below(self.k - 1) if lies else 0)",
        ),
        ("draws-depend-on-value", "consumption", "lies = ", "value and source.below(2); lies = "),
        ("threshold-too-low", "certificate", "threshold(epsilon", "-1 + threshold(epsilon"),
        ("ratio-without-k", "ratio", "self.keep * (self.k - 1), one", "self.keep, one"),
        ("index-little-endian", "layout", 'payload_size, "big"', 'payload_size, "little"'),
        ("index-k-accepted", "payloads", "value >= self.k", "value > self.k"),
    ],
    "mechanisms.bit_vector": [
        ("bits-of-a-byte-reversed", "law", "int(faces, 2)", "int(faces[::-1], 2)"),
        ("last-byte-first", "layout", '(size(k), "little")', '(size(k), "big")'),
        ("spare-bits-accepted", "payloads", " or bits >> k", ""),
    ],
    "exact": [
        ("threshold-rounded-up", "certificate", "(one * x.num", "1 + (one * x.num"),
        ("certificate-always-holds", "certificate", "bool(_decide(", "bool(1 or _decide("),
    ],
    "randomness": [
        ("modulo-bias", "below", "words - words % n", "words"),
        ("last-integer-never", "below", "word % n", "word % max(1, n - 1)"),
        ("word-too-short", "below", "while words < n * base", "while words < n"),
    ],
}
MUTANTS = [
    Mutant(f"hubbub.{module}", *change)
    for module, changes in _CHANGES.items()
    for change in changes
]


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
def _imported_afresh(finder: MetaPathFinder) -> Generator[Core, None, None]:
    """The privacy core, imported again through `finder`; the shipped one comes back after."""
    shipped = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
    sys.meta_path.insert(0, finder)
    try:
        names = ("hubbub.exact", "hubbub.randomness", "hubbub.mechanisms")
        yield Core(*(importlib.import_module(name) for name in names))
    finally:
        sys.meta_path.remove(finder)
        for name in filter(_is_ours, list(sys.modules)):
            del sys.modules[name]
        sys.modules.update(shipped)


def _is_ours(name: str) -> bool:
    return name == "hubbub" or name.startswith("hubbub.")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed(mutant: Mutant) -> None:
    with _imported_afresh(_OneChange(mutant)) as core, pytest.raises(AssertionError):
        PROOFS[mutant.killed_by](core)


@pytest.mark.parametrize("proof", PROOFS)
def test_every_proof_kills_a_mutant(proof: str) -> None:
    assert proof in {mutant.killed_by for mutant in MUTANTS}


def test_a_mutant_without_a_change_passes_every_proof() -> None:
    """The way mutants are made does not kill them."""
    unchanged = Mutant("hubbub.mechanisms.coin", "unchanged", "", "class Coin:", "class Coin:")
    with _imported_afresh(_OneChange(unchanged)) as core:
        for prove in PROOFS.values():
            prove(core)
