"""Write the table of docs/accuracy.md, or with --check compare it.

Run as `python -m tools.accuracy_table`. Every mechanism is calibrated as `hubbub sign` does it,
and its exact variance taken from the contract's integers.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism
from hubbub_aggregator.planning.choice import (
    ANY,
    Aim,
    best,
    least_variance,
    most_accurate,
    variance_at,
)

DOCUMENT: Final = Path(__file__).resolve().parent.parent / "docs" / "accuracy.md"

SIZES: Final = (2, 3, 4, 5, 8, 16, 31, 32, 33, 64, 128, 1_000, 1_024, 16_384)
EPSILONS: Final = ("0.25", "0.5", "1", "2", "4", "6")
SHORT: Final = Aim(max_bytes=8)

_BEGIN: Final = "<!-- written by tools/accuracy_table.py -->\n"
_END: Final = "<!-- end of the table -->\n"

_NAMES: Final = {
    "randomised-response": "RR",
    "symmetric-unary": "SUE",
    "optimised-unary": "OUE",
    "subset-selection": "SS",
    "projective-geometry": "PGR",
    "local-hashing": "OLH",
}
_ALONE: Final = (
    "randomised-response",
    "symmetric-unary",
    "optimised-unary",
    "local-hashing",
    "projective-geometry",
)


@dataclass(frozen=True)
class Cell:
    """One domain size and ε: n · Var of a value that nobody has, over the least possible."""

    k: int
    epsilon: Epsilon
    auto: Mechanism
    short: Mechanism
    """auto with payloads of at most 8 bytes."""

    @property
    def bound(self) -> float:
        return least_variance(self.k, self.epsilon)

    def ratio(self, mechanism: Mechanism) -> float:
        return variance_at(mechanism, 0) / self.bound

    @property
    def hadamard(self) -> float:
        """Hadamard response with one block, in closed form: ((e^ε + 1)/(e^ε − 1))²."""
        e = float(self.epsilon.exponential(64).low)
        return ((e + 1) / (e - 1)) ** 2 / self.bound


def cells() -> Iterator[Cell]:
    """Every cell of the table."""
    for k in SIZES:
        for text in EPSILONS:
            epsilon = Epsilon.parse(text)
            yield Cell(k, epsilon, most_accurate(k, epsilon, ANY), most_accurate(k, epsilon, SHORT))


def table() -> str:
    """The table, as Markdown, and the worst figures in it."""
    found = list(cells())
    header = ["k", "ε", "auto", "≤ 8 bytes", *(_NAMES[name] for name in _ALONE), "HR"]
    lines = [_line(header), _line(["--:"] * len(header)), *map(_row, found)]
    auto = max(cell.ratio(cell.auto) for cell in found)
    short = max(cell.ratio(cell.short) for cell in found)
    summary = (
        f"The largest figure of `auto` is {auto:.4f}, and with payloads of at most 8 bytes "
        f"{short:.4f}."
    )
    return "\n".join([*lines, "", summary, ""])


def _row(cell: Cell) -> str:
    chosen = [
        f"{_figure(cell.ratio(mechanism))} {_NAMES[mechanism.name]}"
        for mechanism in (cell.auto, cell.short)
    ]
    alone = [_figure(cell.ratio(best(name, cell.k, cell.epsilon))) for name in _ALONE]
    return _line([f"{cell.k:,}", cell.epsilon.text, *chosen, *alone, _figure(cell.hadamard)])


def _figure(ratio: float) -> str:
    return f"{ratio:.3f}" if ratio < 10 else f"{ratio:,.0f}"


def _line(row: list[str]) -> str:
    return f"| {' | '.join(row)} |"


def document() -> str:
    """The document as it should be."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise SystemExit(f"{DOCUMENT} has no place for the table")
    return f"{before}{begin}\n{table()}\n{end}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    written = document()
    if not parser.parse_args().check:
        DOCUMENT.write_text(written, encoding="utf-8")
    elif written != DOCUMENT.read_text(encoding="utf-8"):
        raise SystemExit(f"{DOCUMENT} is out of date: run python -m tools.accuracy_table")


if __name__ == "__main__":
    main()
