"""Memoised unary encoding: vectors of permanent bits, whose bits are flipped in every round.

L-SUE, which is basic RAPPOR (Erlingsson, Pihur and Korolova, CCS 2014), flips the bits of the
permanent vectors as well; L-OSUE (Arcolezi et al., 2021) draws them as optimised unary encoding
does. A report's bit is 1 with probability

    a = p₁(1 − r) + (1 − p₁)r  for the value's own,  b = q₁(1 − r) + (1 − q₁)r  for another,

with p₁ and q₁ those of the permanent vector, and r the flips of a round.
"""

from fractions import Fraction
from typing import NamedTuple

from hubbub.exact import Epsilon, is_at_most
from hubbub.mechanisms import bit_vector
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import SHIPPED, Resolution, coin
from hubbub.mechanisms.memoised import least, require_memo, row
from hubbub.mechanisms.optimised_unary import OptimisedUnary
from hubbub.mechanisms.symmetric_unary import SymmetricUnary
from hubbub.randomness import Source


class MemoisedUnary(NamedTuple):
    """Rows as a unary encoding draws them; a round flips every bit with probability flip/one."""

    permanent: SymmetricUnary | OptimisedUnary
    flip: int

    @classmethod
    def symmetric(
        cls, k: int, flip: int, permanent_flip: int, resolution: Resolution = SHIPPED
    ) -> "MemoisedUnary":
        """L-SUE, from the integers that its contract holds."""
        return cls(SymmetricUnary(k, permanent_flip, resolution), flip)

    @classmethod
    def optimised(
        cls, k: int, flip: int, permanent_raised: int, resolution: Resolution = SHIPPED
    ) -> "MemoisedUnary":
        """L-OSUE, from the integers that its contract holds."""
        return cls(OptimisedUnary(k, permanent_raised, resolution), flip)

    @classmethod
    def calibrate(
        cls, permanent: SymmetricUnary | OptimisedUnary, epsilon: Epsilon
    ) -> "MemoisedUnary":
        """The most telling rounds within ε, which must be less than what a row costs."""

        def holds(flip: int) -> bool:
            return is_at_most(cls(permanent, flip).ratio, epsilon)

        return cls(permanent, least(holds, 1, permanent.resolution.one // 2))

    @property
    def name(self) -> str:
        return f"memoised-{self.permanent.name}"

    @property
    def k(self) -> int:
        return self.permanent.k

    @property
    def parameters(self) -> dict[str, int]:
        rows = {f"permanent_{name}": number for name, number in self.permanent.parameters.items()}
        return {"flip": self.flip, **rows}

    @property
    def rows(self) -> int:
        return self.k

    @property
    def row_ratio(self) -> Fraction:
        return self.permanent.ratio

    @property
    def _flips(self) -> Fraction:
        return Fraction(self.flip, self.permanent.resolution.one)

    @property
    def ratio(self) -> Fraction:
        require_memo(self)
        _ = self.permanent.ratio  # Raises ValueError if the rows tell nothing or everything.
        if not 0 < 2 * self._flips < 1:
            raise ValueError(f"flip = {self.flip} tells nothing or everything")
        # Worst where the own bit is 1 and the other value's 0, as without a memo.
        a, b = self.support
        return a * (1 - b) / (b * (1 - a))

    @property
    def support(self) -> Support:
        flips = self._flips
        a, b = (one * (1 - flips) + (1 - one) * flips for one in self.permanent.support)
        return Support(a, b)

    @property
    def carried(self) -> Support:
        # Two rounds flip the same bit, each for itself.
        flips = self._flips
        a, b = (one * (1 - flips) ** 2 + (1 - one) * flips**2 for one in self.permanent.support)
        return Support(a, b)

    @property
    def payload_size(self) -> int:
        return self.permanent.payload_size

    @property
    def memo_size(self) -> int:
        return self.rows * self.payload_size

    def memorise(self, source: Source) -> bytes:
        return b"".join(self.permanent.randomise(value, source) for value in range(self.k))

    def respond(self, memo: bytes, value: int, source: Source) -> bytes:
        size, resolution = self.payload_size, self.permanent.resolution
        flips = bit_vector.pack(coin(self.flip, resolution).tosses(source, self.k), self.k)
        # As numbers, since one operation takes as long for every row.
        vector = int.from_bytes(row(memo, value, size), "big") ^ int.from_bytes(flips, "big")
        return vector.to_bytes(size, "big")

    def randomise(self, value: int, source: Source) -> bytes:
        return self.respond(self.memorise(source), value, source)

    def supported(self, payload: bytes) -> list[int]:
        return bit_vector.unpack(payload, self.k)
