"""Symmetric unary encoding: a one-hot vector, every bit flipped with the same probability.

The basic one-time RAPPOR of Erlingsson, Pihur and Korolova (2014): flip with probability
1/(e^(ε/2) + 1). Two values' vectors differ in two bits, hence ε/2 for each.
"""

from fractions import Fraction
from typing import NamedTuple

from hubbub.exact import Epsilon, threshold
from hubbub.mechanisms import bit_vector
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import ONE, SHIPPED, ZERO, Coin, Resolution, coin
from hubbub.randomness import Source


class SymmetricUnary(NamedTuple):
    """Flip every bit with probability flip/one."""

    k: int
    flip: int
    resolution: Resolution = SHIPPED

    @property
    def name(self) -> str:
        return "symmetric-unary"

    @property
    def _coin(self) -> Coin:
        return coin(self.flip, self.resolution)

    @classmethod
    def calibrate(
        cls, k: int, epsilon: Epsilon, *parameters: int, resolution: Resolution = SHIPPED
    ) -> "SymmetricUnary":
        one = resolution.one
        return cls(k, one - threshold(epsilon, 1, one, root=2), resolution)

    @property
    def parameters(self) -> dict[str, int]:
        return {"flip": self.flip}

    @property
    def ratio(self) -> Fraction:
        one = self.resolution.one
        if not 0 < 2 * self.flip < one:
            raise ValueError(f"flip = {self.flip} tells nothing or everything")
        return Fraction(one - self.flip, self.flip) ** 2

    @property
    def support(self) -> Support:
        flips = Fraction(self.flip, self.resolution.one)
        return Support(1 - flips, flips)

    @property
    def payload_size(self) -> int:
        return bit_vector.size(self.k)

    def randomise(self, value: int, source: Source) -> bytes:
        faces = self._coin.tosses(source, self.k)
        faces[self.k - 1 - value] ^= ONE ^ ZERO
        return bit_vector.pack(faces, self.k)

    def supported(self, payload: bytes) -> list[int]:
        return bit_vector.unpack(payload, self.k)
