"""k-ary randomised response: the truth, or one of the other values.

Warner (1965) for k = 2; Kairouz, Bonawitz and Ramage (2016) for any k. With probability
p = e^ε/(e^ε + k − 1) the report is the device's value, else a uniform other one.
"""

from fractions import Fraction
from typing import NamedTuple

from hubbub.exact import Epsilon, threshold
from hubbub.mechanisms import big_endian
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import SHIPPED, Coin, Resolution, coin
from hubbub.mechanisms.even import EVEN
from hubbub.randomness import Source


class RandomisedResponse(NamedTuple):
    """Keep the value with probability keep/one."""

    k: int
    keep: int
    resolution: Resolution = SHIPPED

    @property
    def name(self) -> str:
        return "randomised-response"

    @property
    def _coin(self) -> Coin:
        return coin(self.keep, self.resolution)

    @classmethod
    def calibrate(
        cls, k: int, epsilon: Epsilon, *parameters: int, resolution: Resolution = SHIPPED
    ) -> "RandomisedResponse":
        return cls(k, threshold(epsilon, k - 1, resolution.one), resolution)

    @property
    def parameters(self) -> dict[str, int]:
        return {"keep": self.keep}

    @property
    def ratio(self) -> Fraction:
        one = self.resolution.one
        if not one < self.keep * self.k < one * self.k:
            raise ValueError(f"keep = {self.keep} tells nothing or everything")
        return Fraction(self.keep * (self.k - 1), one - self.keep)

    @property
    def support(self) -> Support:
        one = self.resolution.one
        return Support(Fraction(self.keep, one), Fraction(one - self.keep, one * (self.k - 1)))

    @property
    def payload_size(self) -> int:
        return big_endian.size(self.k)

    def randomise(self, value: int, source: Source) -> bytes:
        # The lie is always drawn and then counts for 0 or 1 times, so that truth and lie
        # take the same steps.
        lies = 1 - self._coin.toss(source)
        report = (EVEN * self.k + value + lies * (1 + source.below(self.k - 1))) % self.k
        return big_endian.pack(report, self.k)

    def supported(self, payload: bytes) -> list[int]:
        return [big_endian.unpack(payload, self.k)]
