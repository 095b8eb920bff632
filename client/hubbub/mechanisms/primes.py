"""Telling primes from other numbers."""

from functools import lru_cache


@lru_cache(maxsize=256)
def is_prime(n: int) -> bool:
    """Whether n < 2^40 is prime, by trial division."""
    if n < 2:
        return False
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            return False
        divisor += 1
    return True
