"""How large a share has to be to be seen: the exact power of `distinguishable`."""

from bisect import bisect_left
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from hubbub.mechanisms import Support
from hubbub_aggregator.estimation.intervals import Floats, simultaneous

# How sure a plan wants to be that a share which is there comes out as distinguishable.
POWER: Final = 0.8

# Standard deviations of a binomial, and as many reports, that are summed up; beyond them lies
# less than 1e-15.
_REACH: Final = 10

# How many numbers of three digits there are below 10^10: 1 to 99, and 900 for each power of ten.
_STEPS: Final = 99 + 8 * 900


class _Binomial(NamedTuple):
    """The number of successes in n independent trials."""

    n: int
    probability: float

    @property
    def deviation(self) -> float:
        return sqrt(self.n * self.probability * (1 - self.probability))

    # scipy.stats is imported where it is used: it takes longer than the rest of a command.

    def law(self, first: int, last: int) -> Floats:
        """The probabilities of the numbers first to last."""
        from scipy.stats import binom

        return np.asarray(binom.pmf(np.arange(first, last + 1), self.n, self.probability))

    def tail(self, least: int) -> float:
        """The probability of `least` or more."""
        from scipy.stats import binom

        return float(binom.sf(least - 1, self.n, self.probability))


def detectable(support: Support, n: int, k: int, level: float = 0.95) -> float | None:
    """The smallest share that comes out as distinguishable with probability 80 % or more.

    Of n ≥ 1 devices whose k values are fixed; None if even n of n do not suffice.
    """
    count = critical_count(support, n, k, level)
    holders = bisect_left(
        range(n + 1), True, key=lambda holders: power(support, holders, n, count) >= POWER
    )
    return holders / n if holders <= n else None


def reports_to_detect(support: Support, share: float, k: int, level: float = 0.95) -> int | None:
    """The least number of reports, rounded up to three digits, for which `share` is detectable.

    `share` in (0, 1], of a domain of k values; None: 10^10 reports do not suffice.
    """

    def is_seen(n: int) -> bool:
        holders = round(share * n)
        holders -= holders / n > share
        return power(support, holders, n, critical_count(support, n, k, level)) >= POWER

    steps = range(_STEPS)
    place = bisect_left(steps, True, key=lambda step: is_seen(_three_digits(step)))
    return _three_digits(place) if place < _STEPS else None


def _three_digits(step: int) -> int:
    """The whole numbers that three digits and zeros write, from 1 on: 1, 2, … 999, 1000, 1010."""
    if step < 99:
        return step + 1
    zeros, digits = divmod(step - 99, 900)
    number: int = (100 + digits) * 10**zeros
    return number


def critical_count(support: Support, n: int, k: int, level: float = 0.95) -> int:
    """The least count that makes a value distinguishable; n + 1 if none does."""

    def is_distinguishable(count: int) -> bool:
        # As `estimate` has it: of all k at once, for intervals widen with their number.
        return bool(simultaneous(support, np.full(k, count), n, level).low[0] > 0)

    return bisect_left(range(n + 1), True, key=is_distinguishable)


def power(support: Support, holders: int, n: int, count: int) -> float:
    """The probability that a value which `holders` of n devices have is supported `count` times.

    Or more often: the tail of Bin(holders, p) + Bin(n − holders, q), summed up exactly over
    the narrower of the two.
    """
    p, q = support
    own, other = _Binomial(holders, float(p)), _Binomial(n - holders, float(q))
    narrow, wide = sorted((own, other), key=lambda law: law.deviation)
    middle, far = narrow.n * narrow.probability, _REACH * (1 + narrow.deviation)
    first, last = max(0, int(middle - far)), min(narrow.n, int(middle + far) + 1)
    # What the wide one has to reach falls by one for every step of the narrow one.
    steps = wide.law(count - last, count - first - 1)[::-1]
    tails = wide.tail(count - first) + np.concatenate([[0.0], np.cumsum(steps)])
    return float(narrow.law(first, last) @ tails)
