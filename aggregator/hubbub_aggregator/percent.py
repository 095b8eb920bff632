"""Shares as people read them: percentages, with as many digits as their error is worth."""

import math
from typing import Final

_MOST_DECIMALS: Final = 6


def decimals(error: float) -> int:
    """Decimals of a percentage that are worth showing for the error of a share; at most 6."""
    return min(_MOST_DECIMALS, places_for(100 * error))


def places_for(error: float) -> int:
    """Decimals of a number that show two digits of its error; 2 if there is none."""
    return max(0, 1 - math.floor(math.log10(error))) if error else 2


def percent(share: float, places: int) -> str:
    """A share (1 = everybody) as a percentage with so many decimals."""
    return f"{fixed(100 * share, places)} %"


def fixed(number: float, places: int) -> str:
    """A number with so many decimals, and a true minus sign."""
    return f"{number:.{places}f}".replace("-", "−")
