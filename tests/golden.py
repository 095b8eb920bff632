"""The golden vectors, as both sides' tests read them. Made by tools/make_vectors.py."""

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS, MEMOISED, Mechanism
from tests.calibrated import memoised

FOLDER = Path(__file__).resolve().parent / "vectors"


def read(name: str) -> Any:
    """The content of tests/vectors/<name>.json."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


class Vector(NamedTuple):
    """One vector: shown by its name in pytest."""

    name: str
    facts: dict[str, Any]

    def __str__(self) -> str:
        return self.name

    @property
    def signed(self) -> bytes:
        """The SignedBundle of a vector in bundles.json."""
        return base64.b64decode(self.facts["signed"])

    @property
    def payload(self) -> bytes:
        """The payload of a vector in payloads.json or hashing.json."""
        return bytes.fromhex(self.facts["payload"])

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism, at ε = 1, of a vector in payloads.json."""
        return _mechanism(
            self.facts["mechanism"], self.facts["k"], tuple(self.facts["parameters"].values())
        )


@cache
def _mechanism(name: str, k: int, parameters: tuple[int, ...]) -> Mechanism:
    if name in MEMOISED:
        # The number of cells, of hashing; that of dimensions follows.
        return memoised(name, k, cells=parameters[0] if parameters else 2)
    return MECHANISMS[name].calibrate(k, Epsilon.parse("1"), *parameters)


def vectors(name: str, kind: str) -> list[Vector]:
    """The vectors of one kind, "good" or "bad", in tests/vectors/<name>.json."""
    return [
        Vector(facts.get("name") or "-".join(map(str, facts.values())), facts)
        for facts in read(name)[kind]
    ]
