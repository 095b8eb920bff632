"""Optimised unary encoding: the own bit is a fair coin, every other one seldom rises.

Wang, Blocki, Li and Jha (USENIX Security 2017): p = 1/2, q = 1/(e^ε + 1).
"""

from fractions import Fraction
from typing import NamedTuple

from hubbub.exact import Epsilon, threshold
from hubbub.mechanisms import bit_vector
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import SHIPPED, ZERO, Coin, Resolution, coin
from hubbub.randomness import Source


class OptimisedUnary(NamedTuple):
    """Raise every bit but the value's own, which is fair, with probability raised/one."""

    k: int
    raised: int
    resolution: Resolution = SHIPPED

    @property
    def name(self) -> str:
        return "optimised-unary"

    @property
    def _others(self) -> Coin:
        return coin(self.raised, self.resolution)

    @classmethod
    def calibrate(
        cls, k: int, epsilon: Epsilon, *parameters: int, resolution: Resolution = SHIPPED
    ) -> "OptimisedUnary":
        one = resolution.one
        return cls(k, one - threshold(epsilon, 1, one), resolution)

    @property
    def parameters(self) -> dict[str, int]:
        return {"raised": self.raised}

    @property
    def ratio(self) -> Fraction:
        # Worst where the own bit is 1 and the other value's 0: (p/q)·((1 − q)/(1 − p)).
        one = self.resolution.one
        if not 0 < 2 * self.raised < one:
            raise ValueError(f"raised = {self.raised} tells nothing or everything")
        return Fraction(one - self.raised, self.raised)

    @property
    def support(self) -> Support:
        return Support(Fraction(1, 2), Fraction(self.raised, self.resolution.one))

    @property
    def payload_size(self) -> int:
        return bit_vector.size(self.k)

    def randomise(self, value: int, source: Source) -> bytes:
        faces = self._others.tosses(source, self.k)
        # The own bit takes the place of the others' toss. One digit makes it fair, because the
        # base is even.
        (digit,) = source.digits(1)
        faces[self.k - 1 - value] = ZERO + 2 * digit // self.resolution.base
        return bit_vector.pack(faces, self.k)

    def supported(self, payload: bytes) -> list[int]:
        return bit_vector.unpack(payload, self.k)
