"""How many reports tell two values apart, if their shares are what they look like. Pure."""

import math
from statistics import NormalDist

from hubbub_dashboard.comparing.shown import Kind, kind_of
from hubbub_dashboard.reading.answers import Comparison, Difference, Estimates, Target, Value
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares.findings import MOST_TIMES, POWER, support


def doubtful(comparison: Comparison) -> Difference | None:
    """The difference of two values that a closed round does not show; None if there is none."""
    if kind_of(comparison) is not Kind.VALUES or not comparison.final:
        return None
    if not comparison.differences:
        return None
    (difference,) = comparison.differences
    # Nothing can really be ahead by more than everybody.
    shown = difference.distinguishable or not 0 < abs(difference.estimate) <= 1
    return None if shown else difference


@derived
def reports_needed(comparison: Comparison, estimates: Estimates) -> float | None:
    """How many reports show the difference that is doubtful in 4 of 5 closed rounds.

    `estimates`: of the same round. From some number on the score interval decides, and below it
    exact ones, which are wider: see `hubbub_aggregator.estimation.differences`. None: out of
    reach, or nothing is doubtful.
    """
    # Imported here: most looks at the page need none of scipy's laws, nor its memory.
    from hubbub_aggregator.estimation.intervals import SCORE_FROM

    difference, n = doubtful(comparison), comparison.left.n
    if difference is None or estimates.n != n:
        return None
    shares = {value.label: value for value in estimates.values}
    sides = shares[difference.left], shares[difference.right]
    p, q = support(sides[0], n)
    needed = _by_score(difference, comparison)
    score_from = SCORE_FROM / min(q, 1 - p)
    if needed < score_from:
        needed = min(_end_to_end(difference, comparison, sides), score_from)
    return needed if needed <= MOST_TIMES * n else None


def _by_score(difference: Difference, comparison: Comparison) -> float:
    """Standard errors of as many reports: where there is no difference, and where it is this."""
    ahead = abs(difference.estimate)
    error = difference.std_error * math.sqrt(comparison.left.n)
    # A sample of devices varies by (the two shares together less the difference's square)/n.
    drawn = ahead if comparison.target is Target.POPULATION else 0.0
    at_none = math.hypot(error, drawn)
    z = NormalDist().inv_cdf((1 + comparison.level) / 2)
    return ((z * at_none + POWER * error) / ahead) ** 2


def _end_to_end(
    difference: Difference, comparison: Comparison, sides: tuple[Value, Value]
) -> float:
    """Both shares' intervals have to lie apart.

    By the arcsine of the rates of support, on which a count's spread is the same everywhere.
    """
    n = comparison.left.n
    p, q = support(sides[0], n)
    rates = [side.count / n for side in sides]
    apart = abs(math.asin(math.sqrt(rates[0])) - math.asin(math.sqrt(rates[1])))
    spreads = sum(math.sqrt(rate * (1 - rate)) for rate in rates) / (p - q)
    # Of the difference, in such spreads: less than both together, unless they vary against
    # each other.
    error = difference.std_error * math.sqrt(n) / spreads
    z = NormalDist().inv_cdf(1 - (1 - comparison.level) / 4)
    return ((z + POWER * error) / apart) ** 2
