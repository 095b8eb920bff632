"""Shares as people read them: percentages, with as many digits as their error is worth."""

import math


def decimals(error: float) -> int:
    """Decimals of a percentage that show two digits of its error, a positive share; no more."""
    return max(0, 1 - math.floor(math.log10(100 * error)))


def percent(share: float, places: int) -> str:
    """A share (1 = everybody) as a percentage with so many decimals."""
    return f"{100 * share:.{places}f} %"
