"""Shares over several rounds of one metric, each round weighing as many reports as it has.

So the reports of all rounds are one tally, and the estimate is that of the tally: unbiased for
the share of the reports whose device had the value in that round. How sure it is depends on who
answered. One device's reports vary together in two ways:

    noise      a memoised device tells the same row in all rounds. Given its value, two of its
               reports have the covariance κ of what both support: `carried` less p² or q².
               Noise that is drawn afresh has none.
    sampling   for a population: devices that answer every round are one sample, not many.

The aggregator cannot tell which reports are one device's, nor whose value changed, so it takes
the most that is possible: of two rounds every device in the smaller one answered both, and with
one value. Whoever answered only one adds no covariance. Whose value changed adds no more than κ
of either value: nothing if the memo has a row for each (or both share a cell by chance once in
g); values of a person that change vary less together than ones that do not. So errors are *at
most* those given here, and intervals cover at least about as often as they say.
"""

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from math import inf, log, sqrt
from typing import Final, NamedTuple

import numpy as np

from hubbub.mechanisms import (
    Mechanism,
    MemoisedLocalHashing,
    MemoisedRandomisedResponse,
    MemoisedUnary,
    Support,
)
from hubbub_aggregator.estimation.estimate import Estimate, estimate, ranks
from hubbub_aggregator.estimation.intervals import (
    Floats,
    Interval,
    Target,
    Variance,
    as_share,
    normal_quantile,
    rarer,
    score,
    share_variance,
)
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.tally import Tally

# A score interval needs this many of the rarer kind, of rows as of reports, counted as if from so
# many devices: over many rounds the rows' noise is what is left.
POOLED_SCORE_FROM: Final = 30


class Pool(NamedTuple):
    """What is known of the reports of several rounds."""

    rounds: int
    """How many have reports."""
    tally: Tally
    """All reports."""
    pairs: Tally
    """Of every two rounds the reports of the smaller one, twice: in as many ordered pairs, at
    most, both reports are one device's."""

    @property
    def devices(self) -> float:
        """How many devices with one report each would be as good a sample, at least."""
        return self.tally.n**2 / (self.tally.n + self.pairs.n)


def pool(tallies: Iterable[Tally]) -> Pool | None:
    """Pool the tallies of rounds, each of at least one report, the largest first; None: of none.

    Raises ValueError for another order.
    """
    rounds, total, pairs, smallest = 0, None, None, inf
    for tally in tallies:
        if not 0 < tally.n <= smallest:
            raise ValueError("rounds are pooled from the one with the most reports to the least")
        more = Tally(2 * rounds * tally.n, 2 * rounds * tally.cells)
        total = tally if total is None else total + tally
        pairs = more if pairs is None else pairs + more
        rounds, smallest = rounds + 1, tally.n
    return None if total is None or pairs is None else Pool(rounds, total, pairs)


def pooled_estimate(
    mechanism: Mechanism, pool: Pool, *, target: Target = "respondents", level: float = 0.95
) -> Estimate:
    """Estimate every value's share of all reports.

    Where rounds are independent the figures are those of one round with all these reports. Where
    not, an interval for one value is a score interval, with the variance that is possible at
    most, if x = devices · min(q, 1 − p) ≥ 30, of rows as of reports; below that, and for all
    values at once, one by Bernstein's inequality (1927), which holds for every number of reports.
    Raises ValueError for a target or level out of range.
    """
    support, n = mechanism.support, pool.tally.n
    counts = oracle_for(mechanism).supports(pool.tally.cells)
    figures = estimate(support, counts, n, target=target, level=level)
    if not vary_together(mechanism, pool, target):
        return figures
    between = _between_rounds(mechanism, pool, target)
    variance = _sum(share_variance(support, counts, n, target), between)
    # In every round one report of a device, which moves the estimate so far.
    jump = pool.rounds / (n * float(support.p - support.q))
    rarest = min(rarer(each, pool.devices) for each in (support, *_rows(mechanism)))
    if rarest < POOLED_SCORE_FROM:
        alone = _bernstein(figures.estimate, variance, jump, (1 - level) / 2)
    else:
        alone = score(figures.estimate, variance, normal_quantile(level))
    miss = -float(np.expm1(log(level) / mechanism.k))
    together = _bernstein(figures.estimate, variance, jump, miss / 2)
    rank_low, rank_high = ranks(together)
    return replace(
        figures,
        std_error=np.sqrt(figures.std_error**2 + between.at),
        low=alone.low,
        high=alone.high,
        simultaneous_low=together.low,
        simultaneous_high=together.high,
        distinguishable=together.low > 0,
        rank_low=rank_low,
        rank_high=rank_high,
    )


def vary_together(mechanism: Mechanism, pool: Pool, target: Target) -> bool:
    """Whether reports of one device do, so that errors are the largest that are possible."""
    return pool.pairs.n > 0 and (target == "population" or any(_carried(mechanism)))


def _between_rounds(mechanism: Mechanism, pool: Pool, target: Target) -> Variance:
    """What pairs of reports of one device add to the variance of the shares, at most."""
    p, q = mechanism.support
    counts = oracle_for(mechanism).supports(pool.pairs.cells)
    shares = as_share(mechanism.support, counts / pool.pairs.n)
    own, other = (float(kappa / (p - q) ** 2) for kappa in _carried(mechanism))
    # A share below 0 or above 1 is noise, and must not take away what every device adds.
    covariance = Variance(np.maximum(other + (own - other) * shares, min(own, other)), own - other)
    if target == "population":
        held = np.clip(shares, 0, 1)
        covariance = _sum(covariance, Variance(held * (1 - held), 1 - 2 * held, 1.0))
    weight = pool.pairs.n / pool.tally.n**2
    return Variance(*(weight * part for part in covariance))


def _carried(mechanism: Mechanism) -> tuple[Fraction, Fraction]:
    """κ of a value that is the device's in both rounds, and of one that is in neither."""
    match mechanism:
        case MemoisedUnary() | MemoisedRandomisedResponse() | MemoisedLocalHashing():
            (p, q), both = mechanism.support, mechanism.carried
            return both.p - p * p, both.q - q * q
        case _:
            return Fraction(0), Fraction(0)


def _rows(mechanism: Mechanism) -> list[Support]:
    """What a memo's rows support, as if they were reports; nothing without a memo."""
    match mechanism:
        case MemoisedUnary(permanent=permanent) | MemoisedRandomisedResponse(permanent=permanent):
            return [permanent.support]
        case MemoisedLocalHashing(chain=chain):
            return [Support(chain.permanent.support.p, mechanism.support.q)]
        case _:
            return []


def _sum(one: Variance, other: Variance) -> Variance:
    return Variance(*(a + b for a, b in zip(one, other, strict=True)))


def _bernstein(estimates: Floats, variance: Variance, jump: float, tail: float) -> Interval:
    """What the truth may be, each tail at most `tail`, if no device moves an estimate by more
    than `jump`.

    Excluded is a truth t off the estimate with t² > 2 ln(1/tail) (variance there + jump |t|/3):
    a score interval, with the jump in its slope.
    """
    z = sqrt(2 * log(1 / tail))
    below, above = (
        score(estimates, variance._replace(slope=variance.slope + third), z)
        for third in (-jump / 3, jump / 3)
    )
    return Interval(below.low, above.high)
