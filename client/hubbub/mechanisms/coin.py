"""Exact biased coins: the only place where a probability meets randomness.

A coin comes up 1 when a uniform integer, written as `WIDTH` random digits, is less than its
threshold. The leading digit decides nearly always, so one digit a toss is drawn first and
looked up in a table; only tosses whose leading digit equals the threshold's draw the rest.
How many those are depends on the coins, never on a device's value.
"""

from dataclasses import dataclass
from typing import Final

from hubbub.randomness import Source

# Faces are ASCII so that int(faces, 2) packs a vector of them at once.
ZERO: Final = ord("0")
ONE: Final = ord("1")
_TIE: Final = ord("=")


@dataclass(frozen=True, slots=True)
class Resolution:
    """How finely probabilities are cut: thresholds are `width` digits of base `base`."""

    base: int
    width: int

    @property
    def one(self) -> int:
        """How many equally likely draws there are: a threshold is out of this."""
        return int(self.base**self.width)

    def digits(self, threshold: int) -> bytes:
        """Write 0 ≤ threshold < one as digits, most significant first."""
        digits = bytearray(self.width)
        for position in reversed(range(self.width)):
            threshold, digits[position] = divmod(threshold, self.base)
        return bytes(digits)


# What a device uses. Tests walk through every tape at base 4 and widths 2 and 3.
SHIPPED: Final = Resolution(base=256, width=8)


class Coin:
    """A coin that comes up 1 with probability exactly threshold/one."""

    __slots__ = ("_rest", "_table")

    def __init__(self, threshold: int, resolution: Resolution = SHIPPED) -> None:
        leading, *rest = resolution.digits(threshold)
        self._rest = bytes(rest)
        self._table = bytes(
            ONE if digit < leading else _TIE if digit == leading else ZERO for digit in range(256)
        )

    def toss(self, source: Source, n: int) -> bytearray:
        """Return n independent tosses, each the character "0" or "1"."""
        faces = bytearray(source.digits(n).translate(self._table))
        ties = faces.count(_TIE)
        if ties:
            rest, width = self._rest, len(self._rest)
            draws = source.digits(ties * width)
            place = -1
            for start in range(0, ties * width, width):
                place = faces.find(_TIE, place + 1)
                # Equal-length digit strings order as the numbers they write.
                faces[place] = ONE if draws[start : start + width] < rest else ZERO
        return faces
