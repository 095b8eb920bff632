"""Exact biased coins: the only place where a probability meets randomness.

A coin comes up 1 when a uniform integer, written as `width` random digits, is less than its
threshold. The leading digit decides nearly always, yet all are drawn and compared for every
toss. To go on only where it is equal would be quicker, but how often that happens says
something about the faces: beside the report, more than ε allows.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from hubbub.randomness import Source

# Faces are ASCII so that int(faces, 2) packs a vector of them at once.
ZERO: Final = ord("0")
ONE: Final = ord("1")


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

    __slots__ = ("_digits",)

    def __init__(self, threshold: int, resolution: Resolution = SHIPPED) -> None:
        self._digits = resolution.digits(threshold)

    def toss(self, source: Source) -> int:
        """Return one toss, 0 or 1."""
        # Subtracted as in `tosses`: asking which is less takes longer when the answer is rare.
        width = len(self._digits)
        draw = int.from_bytes(b"\1" + source.digits(width), "big")
        return (_thresholds(self._digits, 1) - draw) >> 8 * width & 1

    def tosses(self, source: Source, n: int) -> bytearray:
        """Return n independent tosses, each the character "0" or "1".

        All are compared in one subtraction of large integers, where each has a lane of its
        own: the same work whatever is drawn.
        """
        width = len(self._digits)
        digits = source.digits(width * n)
        # A lane is a byte of 1 and the digits. The first digits of all tosses are drawn first,
        # then the second of all, and so on.
        draws = bytearray(b"\1" * (n + width * n))
        for place in range(width):
            draws[1 + place :: 1 + width] = digits[place * n : (place + 1) * n]
        difference = _thresholds(self._digits, n) - int.from_bytes(draws, "big")
        return bytearray(difference.to_bytes(len(draws), "big")[:: 1 + width])


@lru_cache(maxsize=256)
def coin(threshold: int, resolution: Resolution) -> Coin:
    """The coin of a threshold: made once, for its digits take longer than a toss."""
    return Coin(threshold, resolution)


@lru_cache(maxsize=8)
def _thresholds(digits: bytes, n: int) -> int:
    """What n draws are subtracted from: in every lane a byte ONE + 1, and threshold − 1.

    Less the draw's byte of 1, the byte is ONE; if the draw is not less than the threshold, its
    digits borrow 1, and the byte is ZERO. Neither is 0, so that no lane borrows from the next
    and the difference has one length.
    """
    lane = int.from_bytes(bytes([1 + ONE]) + digits, "big") - 1
    return int.from_bytes(lane.to_bytes(1 + len(digits), "big") * n, "big")
