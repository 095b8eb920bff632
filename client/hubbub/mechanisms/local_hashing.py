"""Local hashing: randomised response over the buckets of a fresh random hash of the value.

Bassily and Smith (STOC 2015) with 2 buckets; Wang, Blocki, Li and Jha (USENIX Security 2017)
with about e^ε + 1. A value x falls into bucket ⌊((ax² + bx + c) mod P)·g/P⌋, with a, b and c
uniform: any three values fall independently, so that not only estimates but also their
covariances are exact. A report is the seed (a, b, c) and a bucket; its size does not depend
on how many values there are, and who holds it can ask about values nobody thought of before.
"""

from fractions import Fraction
from typing import Final, NamedTuple

from hubbub.exact import Epsilon, threshold
from hubbub.limits import MAX_BUCKETS
from hubbub.mechanisms import big_endian
from hubbub.mechanisms.base import Support
from hubbub.mechanisms.coin import SHIPPED, Coin, Resolution, coin
from hubbub.mechanisms.primes import is_prime
from hubbub.randomness import Source

# For listed values, by their index: 2^16 + 1, the least prime with room for all of them. The
# seed and a bucket of ε ≤ 8 fit 8 bytes.
LISTED_PRIME: Final = 65_537
# For texts, by a hash of theirs: so large that two of them seldom have the same.
OPEN_PRIME: Final = (1 << 61) - 1


class LocalHashing(NamedTuple):
    """Report the true bucket of `buckets` with probability keep/one, else another."""

    k: int
    keep: int
    buckets: int
    """g: what the hash's values are cut into."""
    prime: int
    """P: hashes are polynomials over the integers modulo it."""
    resolution: Resolution = SHIPPED

    @property
    def name(self) -> str:
        return "local-hashing"

    @property
    def _coin(self) -> Coin:
        return coin(self.keep, self.resolution)

    @classmethod
    def calibrate(
        cls, k: int, epsilon: Epsilon, *parameters: int, resolution: Resolution = SHIPPED
    ) -> "LocalHashing":
        """`parameters`: buckets ≥ 2, and a prime of at least k."""
        buckets, prime = parameters
        keep = threshold(epsilon, buckets - 1, resolution.one)
        return cls(k, keep, buckets, prime, resolution)

    @property
    def parameters(self) -> dict[str, int]:
        return {"keep": self.keep, "buckets": self.buckets, "prime": self.prime}

    @property
    def ratio(self) -> Fraction:
        one, prime = self.resolution.one, self.prime
        if not 2 <= self.buckets <= min(MAX_BUCKETS, prime):
            raise ValueError(f"{self.buckets} buckets are too few or too many")
        listed = self.k <= prime <= LISTED_PRIME and is_prime(prime)
        if not (listed or self.k == prime == OPEN_PRIME):
            raise ValueError(f"no hash is made modulo {prime} for this domain")
        if not one < self.keep * self.buckets < one * self.buckets:
            raise ValueError(f"keep = {self.keep} tells nothing or everything")
        return Fraction(self.keep * (self.buckets - 1), one - self.keep)

    def collision(self, values: int) -> Fraction:
        """The probability that 2 or 3 different values fall into one bucket.

        A bucket holds ⌊P/g⌋ or ⌈P/g⌉ of the P values that a hash takes.
        """
        least, larger = divmod(self.prime, self.buckets)
        falls = larger * (least + 1) ** values + (self.buckets - larger) * least**values
        return Fraction(falls, self.prime**values)

    @property
    def support(self) -> Support:
        p, alike = Fraction(self.keep, self.resolution.one), self.collision(2)
        return Support(p, p * alike + (1 - p) * (1 - alike) / (self.buckets - 1))

    @property
    def reports(self) -> int:
        """How many different reports there are: seeds times buckets."""
        return int(self.prime**3 * self.buckets)

    @property
    def payload_size(self) -> int:
        return big_endian.size(self.reports)

    def bucket(self, seed: int, value: int) -> int:
        """Where a value in [0, P) falls under the seed (aP + b)P + c."""
        rest, c = divmod(seed, self.prime)
        a, b = divmod(rest, self.prime)
        # The same modulo P, and as long for every value.
        value += self.prime
        return ((a * value + b) * value + c) % self.prime * self.buckets // self.prime

    def randomise(self, value: int, source: Source) -> bytes:
        # The lie is always drawn, as in randomised response.
        seed = source.below(self.prime**3)
        lies = 1 - self._coin.toss(source)
        lie = lies * (1 + source.below(self.buckets - 1))
        report = seed * self.buckets + (self.bucket(seed, value) + lie) % self.buckets
        return big_endian.pack(report, self.reports)

    def read(self, payload: bytes) -> tuple[int, int]:
        """The seed and the bucket of a payload. Raises ValueError if it is none."""
        return divmod(big_endian.unpack(payload, self.reports), self.buckets)

    def supported(self, payload: bytes) -> list[int]:
        seed, bucket = self.read(payload)
        return [value for value in range(self.k) if self.bucket(seed, value) == bucket]
