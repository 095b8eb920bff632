"""When a round has too few reports to say anything worth comparing. Pure."""

import math
from statistics import NormalDist
from typing import Final

WIDEST: Final = 0.5
"""A round says something if its shares' simultaneous intervals are no wider than this."""


def widest(n: int, values: int, influence: float, level: float) -> float:
    """How wide a share's simultaneous interval can be, by the normal law.

    By the number of reports alone: if it hung on what they say, the rounds that are drawn over time
    would be those with unusual noise, and their changes no longer as rare as their level promises.
    """
    return quantile_at_once(values, level) * math.sqrt(n) * influence


def quantile_at_once(values: int, level: float) -> float:
    """Normal quantile of two-sided intervals that cover so many values at once (Šidák 1967)."""
    miss = -math.expm1(math.log(level) / values)
    return NormalDist().inv_cdf(1 - miss / 2)
