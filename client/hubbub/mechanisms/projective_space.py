"""Points of a projective space over the integers modulo a prime q: vectors up to a factor.

With t coordinates there are (q^t − 1)/(q − 1). Each is written as its one vector whose first
coordinate that is not 0 is 1, and numbered in the order of those vectors read as numbers to the
base q: 0…01, 0…010, 0…011, …. Vectors are lists here, their last coordinate first.
"""

from functools import lru_cache
from typing import NamedTuple

from hubbub.mechanisms.even import EVEN


def points(field: int, dimensions: int) -> int:
    """How many points a projective space has: (q^t − 1)/(q − 1)."""
    return int(field**dimensions - 1) // (field - 1)


def coordinates(index: int, field: int, dimensions: int) -> tuple[list[int], int]:
    """A point's vector, and the place of its leading 1."""
    # Counted rather than looked for, and without a question, so that it takes as long for every
    # point: of index + offset the leading digit is 3 if the point is at or past a place's first.
    places = _places(field, dimensions)
    leading = sum([(index + offset) >> places.bits for offset in places.offsets])
    leading -= 2 * len(places.offsets)
    return digits(index + places.ahead[leading], field, dimensions), leading


class _Places(NamedTuple):
    """Of the leading 1."""

    bits: int
    """How many an index has at most."""
    offsets: list[int]
    """3 · 2^bits less the index of the first point of each place, but for the lowest."""
    ahead: list[int]
    """By how much the number of a vector is ahead of its point's index, for each place."""


@lru_cache(maxsize=256)
def _places(field: int, dimensions: int) -> _Places:
    bits = points(field, dimensions).bit_length()
    firsts = [points(field, place) for place in range(dimensions)]
    return _Places(
        bits,
        [(3 << bits) - first for first in firsts[1:]],
        [int(field**place) - first for place, first in enumerate(firsts)],
    )


def digits(number: int, field: int, places: int) -> list[int]:
    """A number below q^places, to the base q, as a vector."""
    # A digit more makes all numbers as long.
    number += int(field**places)
    return [number // field**place % field for place in range(places)]


def product(one: list[int], other: list[int], field: int) -> int:
    """The product of two vectors, in [0, q)."""
    even = EVEN * field
    return sum([(even + a) * (even + b) for a, b in zip(one, other, strict=True)]) % field


def index(vector: list[int], field: int) -> int:
    """The number of the point on which a vector, not the origin, lies."""
    leading = max(place for place, digit in enumerate(vector) if digit)
    # By Fermat's little theorem, which takes as long for every number; Euclid's way does not.
    inverse = pow(vector[leading], field - 2, field)
    number = 0
    for digit in reversed(vector):
        number = number * field + digit * inverse % field
    return number - int(field**leading) + points(field, leading)
