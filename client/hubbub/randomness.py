"""The one source of randomness: the operating system's, never seeded, never buffered.

Nothing is kept between two draws, so a forked child cannot repeat its parent's. Samplers
take the source as an argument; only tests pass another one, with a smaller base, to walk
through every tape of random digits a sampler can see.
"""

import os
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
    words, size = base, 1
    while words < n * base:
        words *= base
        size += 1
    limit = words - words % n
    while True:
        word = 0
        for digit in source.digits(size):
            word = word * base + digit
        if word < limit:
            return word % n


class SystemSource:
    """The operating system's generator (`os.urandom`); raises OSError if it has none."""

    base: int = 256

    def digits(self, count: int) -> bytes:
        return os.urandom(count)

    def below(self, n: int) -> int:
        return uniform_below(self, n)


SYSTEM: Final = SystemSource()
