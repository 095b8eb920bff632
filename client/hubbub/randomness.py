"""The one source of randomness: the operating system's, never seeded, never buffered.

Nothing is kept between two draws, so a forked child cannot repeat its parent's. Samplers
take the source as an argument; only tests pass another one, with a smaller base, to walk
through every tape of random digits a sampler can see.
"""

import os
from functools import lru_cache
from typing import Final, Protocol


class Source(Protocol):
    """Uniform, independent digits."""

    @property
    def base(self) -> int:
        """Digits are in [0, base)."""
        ...

    def digits(self, count: int) -> bytes:
        """Return `count` fresh digits, one to a byte."""
        ...

    def below(self, n: int) -> int:
        """Return a fresh uniform integer in [0, n), n ≥ 1."""
        ...


def uniform_below(source: Source, n: int) -> int:
    """Return a uniform integer in [0, n) made of `source`'s digits, n ≥ 1.

    Rejection: a word of one digit more than n values need, kept if it lies below the largest
    multiple of n, as nearly every word does. How often it draws again depends on n and chance
    alone.
    """
    base = source.base
    size, limit = _words(base, n)
    while True:
        digits = source.digits(size)
        word = int.from_bytes(digits, "big") if base == 256 else _number(digits, base)
        if word < limit:
            return word % n


def _number(digits: bytes, base: int) -> int:
    number = 0
    for digit in digits:
        number = number * base + digit
    return number


@lru_cache(maxsize=256)
def _words(base: int, n: int) -> tuple[int, int]:
    """How many digits a word has, and below what it must lie: both take longer than a draw."""
    words, size = base, 1
    while words < n * base:
        words *= base
        size += 1
    return size, words - words % n


class SystemSource:
    """The operating system's generator (`os.urandom`); raises OSError if it has none."""

    base: int = 256

    def digits(self, count: int) -> bytes:
        return os.urandom(count)

    def below(self, n: int) -> int:
        return uniform_below(self, n)


SYSTEM: Final = SystemSource()
