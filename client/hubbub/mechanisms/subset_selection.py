"""Subset selection: a set of fixed size, in which the true value is likelier than any other.

Ye and Barg (2018); Wang et al. (2016). With ω the size, the true value is in the set with
probability p = ωe^ε/(ωe^ε + k − ω), and the others in it are uniform. At the best ω this is
the most accurate of all ε-locally private mechanisms.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb
from typing import Final, NamedTuple

from hubbub.exact import Epsilon, threshold
from hubbub.mechanisms import big_endian, bit_vector
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import ONE, SHIPPED, ZERO, Coin, Resolution, coin
from hubbub.randomness import Source

# A set is sent as its rank among all sets of its size if a rank fits 8 bytes.
MOST_RANKS: Final = 1 << 64
# A larger set of up to half the values has more ranks than that: C(2s, s) ≥ 2^s. One of more
# than half is never better than its opposite number, and is not worth a table of all its ranks.
_MOST_RANKED: Final = 64

# Of a value whose digit does not tell whether it is taken.
_TIE: Final = ord("=")
_DIGITS: Final = bytes(range(256))


class SubsetSelection(NamedTuple):
    """Report `size` values; the true one is among them with probability included/one."""

    k: int
    included: int
    size: int
    resolution: Resolution = SHIPPED

    @property
    def name(self) -> str:
        return "subset-selection"

    @property
    def _coin(self) -> Coin:
        return coin(self.included, self.resolution)

    @classmethod
    def calibrate(
        cls, k: int, epsilon: Epsilon, *parameters: int, resolution: Resolution = SHIPPED
    ) -> "SubsetSelection":
        """`parameters`: the size, in [1, k)."""
        (size,) = parameters
        included = threshold(epsilon, Fraction(k - size, size), resolution.one)
        return cls(k, included, size, resolution)

    @property
    def parameters(self) -> dict[str, int]:
        return {"included": self.included, "size": self.size}

    @property
    def ratio(self) -> Fraction:
        k, size, one = self.k, self.size, self.resolution.one
        if not 0 < size < k:
            raise ValueError(f"no set of {size} of {k} values tells anything")
        if not one * size < self.included * k < one * k:
            raise ValueError(f"included = {self.included} tells nothing or everything")
        # There are C(k − 1, size − 1) sets with a value, C(k − 1, size) without it.
        return Fraction(self.included * (k - size), (one - self.included) * size)

    @property
    def support(self) -> Support:
        p = Fraction(self.included, self.resolution.one)
        return Support(p, (self.size - p) / (self.k - 1))

    @property
    def ranks(self) -> int | None:
        """How many sets there are, if they are sent as ranks; None: as bit vectors."""
        sets = _sets(self.k, self.size)
        return sets if sets <= MOST_RANKS else None

    @property
    def payload_size(self) -> int:
        return bit_vector.size(self.k) if self.ranks is None else big_endian.size(self.ranks)

    def randomise(self, value: int, source: Source) -> bytes:
        # Always `size` others, of which the last gives way if the value comes in: neither what
        # is sent nor the work tells whether it did.
        faces, last = self._others(source)
        included = self._coin.toss(source)
        faces[last] -= included
        faces.append(ZERO + included)
        # Until here the values stood in a ring that ends with the own one, descending.
        faces = faces[value:] + faces[:value]
        if self.ranks is None:
            return bit_vector.pack(faces, self.k)
        members = enumerate(_positions(faces[::-1], ONE), 1)
        rank = sum(comb(member, place) for place, member in members)
        return big_endian.pack(rank, self.ranks)

    def _others(self, source: Source) -> tuple[bytearray, int]:
        """Faces of the k − 1 other values: "1" for a uniform set of `size`; and the last of it.

        Each draws a digit, and the lowest are taken; those who share the digit up to which
        they are taken draw lots. So all orders are equally likely, whatever the digits are and
        however many lots it takes: that says nothing about which values are taken.
        """
        digits = source.digits(self.k - 1)
        digit, lots = _cut(digits, self.size, source.base)
        faces = bytearray(digits).translate(_taken_up_to(digit))
        tied, last = _positions(faces, _TIE), 0
        for _ in range(lots):
            lot = source.below(len(tied))
            last, tied[lot] = tied[lot], tied[-1]
            tied.pop()
            faces[last] = ONE
        return faces.replace(b"=", b"0"), last

    def supported(self, payload: bytes) -> list[int]:
        if self.ranks is None:
            values = bit_vector.unpack(payload, self.k)
            if len(values) != self.size:
                raise ValueError(f"not a set of {self.size} values")
            return values
        return self._unranked(big_endian.unpack(payload, self.ranks))

    def _unranked(self, rank: int) -> list[int]:
        """The set of a rank: in the combinatorial number system, C(v₁, 1) + C(v₂, 2) + …"""
        values: list[int] = []
        value = self.k
        for place in range(self.size, 0, -1):
            value -= 1
            while comb(value, place) > rank:
                value -= 1
            rank -= comb(value, place)
            values.append(value)
        return values[::-1]


def _cut(digits: bytes, wanted: int, base: int) -> tuple[int, int]:
    """The digit at which the `wanted` lowest end, and how many of them have that very digit."""
    low, high = 0, base
    while high - low > 1:
        middle = (low + high) // 2
        lower = digits.translate(None, delete=_DIGITS[middle:])
        if wanted <= len(lower):
            digits, high = lower, middle
        else:
            digits, low = digits.translate(None, delete=_DIGITS[:middle]), middle
            wanted -= len(lower)
    return low, wanted


@lru_cache(maxsize=256)
def _taken_up_to(digit: int) -> bytes:
    """What each digit says about its value: "1" if it is lower, "0" if higher, "=" if equal."""
    return bytes([ONE] * digit + [_TIE] + [ZERO] * (255 - digit))


def _positions(faces: bytearray, face: int) -> list[int]:
    """Where a face is, ascending."""
    found: list[int] = []
    position = faces.find(face)
    while position >= 0:
        found.append(position)
        position = faces.find(face, position + 1)
    return found


@lru_cache(maxsize=256)
def _sets(k: int, size: int) -> int:
    """How many sets there are; or, where that is far beyond all ranks, some number that is too."""
    return comb(k, size) if size <= _MOST_RANKED else MOST_RANKS + 1
