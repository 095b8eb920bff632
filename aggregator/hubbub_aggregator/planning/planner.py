"""What a mechanism, an ε and a number of reports will buy, before anything is collected.

Every figure is about shares (1 = everybody) and the noise alone (target respondents), and is
what `estimate` will say of the expected counts: nothing here has formulas of its own for it.
"""

from bisect import bisect_left
from dataclasses import dataclass
from math import expm1, log, sqrt
from typing import Final

import numpy as np

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    SubsetSelection,
    Support,
    SymmetricUnary,
)
from hubbub_aggregator.estimation.intervals import Interval, one_value, simultaneous
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.planning.choice import ANY, Aim, explain, least_variance, ranked, variance_at
from hubbub_aggregator.planning.power import detectable

# What a tally can count to.
_MOST_REPORTS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Work:
    """What a mechanism's reports cost the aggregator."""

    cells: int
    """Counts kept for a metric and round, 8 bytes each."""
    per_report: int
    """Cells that one report is compared with or added to, when it comes in."""
    per_reading: int
    """Additions and copies of a cell from the tally to a count for each value."""


@dataclass(frozen=True, slots=True)
class Prospect:
    """What one mechanism, at its best parameters, will do."""

    mechanism: Mechanism
    std_error: float
    """Of the estimated share of a value that nobody has."""
    std_error_at_share: float
    """The same for a value that has the share which the parameters are the best for."""
    half_width: float
    """Of the interval for one value, at the expected count of a value that nobody has."""
    simultaneous_half_width: float
    """The same for the interval that holds for all values at once."""
    detectable: float | None
    """Smallest share that comes out as distinguishable in 4 of 5 collections; None: not even 1."""
    reports_needed: int | None
    """Reports from which on `half_width` is at most the one asked for; None: beyond 2^63."""
    influence: float
    """How far one hostile report moves an estimate."""
    to_bound: float
    """n · Var of a value that nobody has, over the least that any mechanism can have for all."""
    to_bound_l2: float
    """The sum of the variances of all values, over its own least."""
    work: Work


@dataclass(frozen=True, slots=True)
class Curator:
    """What somebody whom everybody trusts with the true answers would pay for the same ε.

    The Laplace mechanism on the histogram of k counts (Dwork, McSherry, Nissim and Smith 2006).
    Neighbours are the same as on a device: one person's answer replaced by another, which
    changes two counts by 1, so the scale is 2/ε people.
    """

    std_error: float
    half_width: float
    simultaneous_half_width: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Every mechanism that fits, the most accurate first, and what a curator would pay."""

    values: int
    epsilon: Epsilon
    reports: int
    level: float
    aim: Aim
    wanted: float
    """The half-width that `reports_needed` is about."""
    prospects: tuple[Prospect, ...]
    curator: Curator
    reason: str
    """Why the first is what "auto" picks."""

    @property
    def price(self) -> float:
        """What it costs to trust nobody: how often the curator's standard error, with "auto".

        Its square is how many times the reports would make up for it.
        """
        return self.prospects[0].std_error / self.curator.std_error


def plan(
    values: int,
    epsilon: Epsilon,
    reports: int,
    *,
    aim: Aim = ANY,
    level: float = 0.95,
    wanted: float = 0.01,
) -> Plan:
    """Plan a metric of `values` answers in [2, 65,536] with ε ≤ 8, and `reports` ≥ 1.

    For an open domain `values` is the number of candidates that will be asked about, and local
    hashing the only prospect; its reports have 24 bytes there, whatever is said here.
    `level` and `wanted`, a half-width, are in (0, 1). Raises NothingFits.
    """
    ranking = ranked(values, epsilon, aim)
    return Plan(
        values=values,
        epsilon=epsilon,
        reports=reports,
        level=level,
        aim=aim,
        wanted=wanted,
        prospects=tuple(
            _prospect(mechanism, epsilon, reports, share=aim.share, level=level, wanted=wanted)
            for mechanism in ranking
        ),
        curator=curator(values, epsilon, reports, level),
        reason=explain(ranking, aim),
    )


def _prospect(
    mechanism: Mechanism, epsilon: Epsilon, n: int, *, share: float, level: float, wanted: float
) -> Prospect:
    support, k = mechanism.support, mechanism.k
    nobody, average = variance_at(mechanism, 0), variance_at(mechanism, 1 / k)
    absent = np.full(k, n * float(support.q))
    return Prospect(
        mechanism=mechanism,
        std_error=sqrt(nobody / n),
        std_error_at_share=sqrt(variance_at(mechanism, share) / n),
        half_width=half_width(support, n, level),
        simultaneous_half_width=_half(simultaneous(support, absent, n, level)),
        detectable=detectable(support, n, k, level),
        reports_needed=reports_needed(support, wanted, level),
        influence=1 / (n * float(support.p - support.q)),
        to_bound=nobody / least_variance(k, epsilon),
        # The variances of k values sum up to k times the one at their average share.
        to_bound_l2=average / least_variance(k, epsilon, 1 / k),
        work=work(mechanism),
    )


def half_width(support: Support, n: int, level: float = 0.95) -> float:
    """Half the interval for one value, at the expected count of a value that nobody has."""
    absent = np.array([n * float(support.q)])
    return _half(one_value(support, absent, n, "respondents", level))


def _half(interval: Interval) -> float:
    return float(interval.high[0] - interval.low[0]) / 2


def reports_needed(support: Support, wanted: float, level: float = 0.95) -> int | None:
    """The least number of reports for which `half_width` is at most `wanted`, in (0, 1)."""
    reports = range(1, _MOST_REPORTS)
    place = bisect_left(reports, True, key=lambda n: half_width(support, n, level) <= wanted)
    return reports[place] if place < len(reports) else None


def work(mechanism: Mechanism) -> Work:
    """What its reports cost the aggregator, in cells and in steps on one of them."""
    cells = oracle_for(mechanism).cells
    match mechanism:
        case SymmetricUnary() | OptimisedUnary() | LocalHashing():
            return Work(cells, per_report=cells, per_reading=cells)
        case SubsetSelection():
            # A set that is sent as its rank lists its members; a bit vector is gone through.
            members = mechanism.size if mechanism.ranks is not None else cells
            return Work(cells, per_report=members, per_reading=cells)
        case ProjectiveGeometry():
            additions = cells * mechanism.field * mechanism.dimensions
            return Work(cells, per_report=1, per_reading=additions)
        case _:
            return Work(cells, per_report=1, per_reading=cells)


def curator(values: int, epsilon: Epsilon, n: int, level: float = 0.95) -> Curator:
    """What a trusted curator of n answers pays; see `Curator`."""
    scale = 2 / float(epsilon.decimal) / n
    # P(|noise| > t) = e^(−t/scale), independently for every value.
    miss = -expm1(log(level) / values)
    return Curator(
        std_error=sqrt(2) * scale,
        half_width=-scale * log(1 - level),
        simultaneous_half_width=-scale * log(miss),
    )
