"""Memoised randomised response (L-GRR): a permanent lie or truth, told with fresh noise.

The chain of Arcolezi et al.: with p₁, q₁ those of a row and p₂, q₂ those of a round, a report is
the device's value with probability a and any other one with probability b,

    a = p₁p₂ + (k − 1)q₁q₂,  b = p₁q₂ + q₁p₂ + (k − 2)q₁q₂,  a + (k − 1)b = 1.
"""

from fractions import Fraction
from typing import NamedTuple

from hubbub.exact import Epsilon, is_at_most
from hubbub.mechanisms import big_endian
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import SHIPPED, Resolution
from hubbub.mechanisms.memoised import least, require_memo, row
from hubbub.mechanisms.randomised_response import RandomisedResponse
from hubbub.randomness import Source


class MemoisedRandomisedResponse(NamedTuple):
    """Rows as randomised response draws them; a round keeps a row's with probability keep/one."""

    permanent: RandomisedResponse
    keep: int

    @classmethod
    def of(
        cls, k: int, keep: int, permanent_keep: int, resolution: Resolution = SHIPPED
    ) -> "MemoisedRandomisedResponse":
        """From the integers that a contract holds."""
        return cls(RandomisedResponse(k, permanent_keep, resolution), keep)

    @classmethod
    def calibrate(
        cls, permanent: RandomisedResponse, epsilon: Epsilon
    ) -> "MemoisedRandomisedResponse":
        """The most telling rounds within ε, which must be less than what a row costs."""
        one = permanent.resolution.one

        def tells_too_much(keep: int) -> bool:
            return not is_at_most(cls(permanent, keep).ratio, epsilon)

        return cls(permanent, least(tells_too_much, one // permanent.k + 1, one) - 1)

    @property
    def name(self) -> str:
        return f"memoised-{self.permanent.name}"

    @property
    def k(self) -> int:
        return self.permanent.k

    @property
    def instant(self) -> RandomisedResponse:
        """What a round makes of a row."""
        return RandomisedResponse(self.k, self.keep, self.permanent.resolution)

    @property
    def parameters(self) -> dict[str, int]:
        return {"keep": self.keep, "permanent_keep": self.permanent.keep}

    @property
    def rows(self) -> int:
        return self.k

    @property
    def row_ratio(self) -> Fraction:
        return self.permanent.ratio

    @property
    def ratio(self) -> Fraction:
        require_memo(self)
        _ = self.permanent.ratio, self.instant.ratio  # Either raises ValueError for what is none.
        a, b = self.support
        return a / b

    @property
    def support(self) -> Support:
        (p1, q1), (p2, q2) = self.permanent.support, self.instant.support
        k = self.k
        return Support(
            p1 * p2 + (k - 1) * q1 * q2,
            p1 * q2 + q1 * p2 + (k - 2) * q1 * q2,
        )

    @property
    def carried(self) -> Support:
        (p1, q1), (p2, q2) = self.permanent.support, self.instant.support
        return Support(p1 * p2**2 + (1 - p1) * q2**2, q1 * p2**2 + (1 - q1) * q2**2)

    @property
    def payload_size(self) -> int:
        return big_endian.size(self.k)

    @property
    def memo_size(self) -> int:
        return self.k * self.payload_size

    def memorise(self, source: Source) -> bytes:
        return b"".join(self.permanent.randomise(value, source) for value in range(self.k))

    def respond(self, memo: bytes, value: int, source: Source) -> bytes:
        permanent = big_endian.unpack(row(memo, value, self.payload_size), self.k)
        return self.instant.randomise(permanent, source)

    def randomise(self, value: int, source: Source) -> bytes:
        return self.respond(self.memorise(source), value, source)

    def supported(self, payload: bytes) -> list[int]:
        return [big_endian.unpack(payload, self.k)]
