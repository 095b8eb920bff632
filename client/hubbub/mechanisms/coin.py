"""Exact biased coins: the only place where a probability meets randomness.

A coin comes up 1 when a uniform integer, written as `width` random digits, is less than its
threshold. For many tosses the leading digit decides nearly always, so one digit a toss is
drawn first and looked up in a table; only tosses whose digit equals the threshold's draw the
next one. How many those are follows one law, whatever the device's value.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from hubbub.randomness import Source

# Faces are ASCII so that int(faces, 2) packs a vector of them at once.
ZERO: Final = ord("0")
ONE: Final = ord("1")
TIE: Final = ord("=")


class Resolution(NamedTuple):
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
    """A coin that comes up 1 with probability exactly threshold/one, 0 ≤ threshold < one."""

    __slots__ = ("_digits", "_tables")

    def __init__(self, threshold: int, resolution: Resolution = SHIPPED) -> None:
        self._digits = resolution.digits(threshold)
        self._tables = tuple(
            against(digit, undecided=any(self._digits[place + 1 :]))
            for place, digit in enumerate(self._digits)
        )

    def toss(self, source: Source) -> bool:
        """Return one toss; draws all its digits at once, so it takes the same work always."""
        # Digit strings of one length order as the numbers they write.
        return source.digits(len(self._digits)) < self._digits

    def tosses(self, source: Source, n: int) -> bytearray:
        """Return n independent tosses, each the character "0" or "1"."""
        return self.settle(bytearray(source.digits(n)), source)

    def settle(self, digits: bytearray, source: Source, place: int = 0) -> bytearray:
        """Return the tosses whose digits at `place` are these, drawing more only for ties."""
        faces = digits.translate(self._tables[place])
        ties = faces.count(TIE)
        if ties:
            position = -1
            for face in self.settle(bytearray(source.digits(ties)), source, place + 1):
                position = faces.index(TIE, position + 1)
                faces[position] = face
        return faces


@lru_cache(maxsize=256)
def coin(threshold: int, resolution: Resolution) -> Coin:
    """The coin of a threshold: made once, for its tables take longer than a toss."""
    return Coin(threshold, resolution)


@lru_cache(maxsize=512)
def against(digit: int, *, undecided: bool) -> bytes:
    """What each random digit says about a toss, against the threshold's digit in its place.

    A smaller digit means 1, a larger one 0. An equal one leaves it to the next digits,
    unless the threshold has only zeros there: then the toss can no longer be less.
    """
    equal = TIE if undecided else ZERO
    return bytes([ONE] * digit + [equal] + [ZERO] * (255 - digit))
