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
from hubbub.exposure import Resemblance, resemblance
from hubbub.mechanisms import Mechanism, Support
from hubbub_aggregator.estimation.intervals import Interval, one_value, simultaneous
from hubbub_aggregator.planning.choice import (
    ANY,
    Aim,
    explain,
    least_variance,
    most_accurate,
    ranked,
    variance_at,
)
from hubbub_aggregator.planning.memoised import explain_memoised, ranked_memoised
from hubbub_aggregator.planning.power import detectable
from hubbub_aggregator.planning.series import ONCE, Series
from hubbub_aggregator.planning.work import Work, work

# What a tally can count to.
_MOST_REPORTS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Memory:
    """What comes of answering every round from one memo."""

    rows: int
    alike: Resemblance


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
    charge: int
    """What a device pays for all rounds, in units of 10^-12 of ε."""
    memory: Memory | None
    """What comes of answering from a memo; None without one."""


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
class Fresh:
    """What fresh noise in every round would be, if "auto" had to cost the same in all."""

    epsilon: Epsilon
    """Of a report."""
    std_error: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Every mechanism that fits, the most accurate first, and what a curator would pay.

    All of it is about a single round, but for what all of them cost.
    """

    values: int
    epsilon: Epsilon
    devices: int
    series: Series
    reports: int
    """Of one round."""
    level: float
    aim: Aim
    wanted: float
    """The half-width that `reports_needed` is about."""
    prospects: tuple[Prospect, ...]
    curator: Curator
    reason: str
    """Why the first is what "auto" picks."""
    fresh: Fresh | None
    """The alternative to a sample of the rounds, or to a memo."""

    @property
    def price(self) -> float:
        """What it costs to trust nobody: how often the curator's standard error, with "auto".

        Its square is how many times the reports would make up for it.
        """
        return self.prospects[0].std_error / self.curator.std_error


def plan(
    values: int,
    epsilon: Epsilon,
    devices: int,
    *,
    series: Series = ONCE,
    aim: Aim = ANY,
    level: float = 0.95,
    wanted: float = 0.01,
) -> Plan:
    """Plan a metric of `values` answers in [2, 65,536] with ε ≤ 8, and `devices` ≥ 1 to ask.

    For an open domain `values` is the number of candidates that will be asked about, and local
    hashing the only prospect; its reports have 24 bytes there, whatever is said here.
    `level` and `wanted`, a half-width, are in (0, 1). A memo costs more than ε a row. Raises
    NothingFits.
    """
    reports = series.reports(devices)
    figures = _Figures(epsilon, reports, aim.share, level, wanted, series)
    if series.memo is None:
        ranking = ranked(values, epsilon, aim)
        prospects = [figures.prospect(mechanism) for mechanism in ranking]
        reason = explain(ranking, aim)
    else:
        memoised = ranked_memoised(values, epsilon, series.memo, aim)
        prospects = [
            figures.prospect(
                mechanism, Memory(mechanism.rows, resemblance(mechanism, series.rounds))
            )
            for mechanism in memoised
        ]
        reason = explain_memoised(memoised, series.memo, aim)
    thinned = series.join is not None or series.memo is not None
    return Plan(
        values=values,
        epsilon=epsilon,
        devices=devices,
        series=series,
        reports=reports,
        level=level,
        aim=aim,
        wanted=wanted,
        prospects=tuple(prospects),
        curator=curator(values, epsilon, reports, level),
        reason=reason,
        fresh=_fresh(values, series.fresh(prospects[0].charge), devices, aim) if thinned else None,
    )


def _fresh(values: int, epsilon: Epsilon, n: int, aim: Aim) -> Fresh:
    mechanism = most_accurate(values, epsilon, aim)
    return Fresh(epsilon, sqrt(variance_at(mechanism, 0) / n))


@dataclass(frozen=True, slots=True)
class _Figures:
    """What every prospect of a plan is worked out for."""

    epsilon: Epsilon
    n: int
    share: float
    level: float
    wanted: float
    series: Series

    def prospect(self, mechanism: Mechanism, memory: Memory | None = None) -> Prospect:
        support, k, n, level = mechanism.support, mechanism.k, self.n, self.level
        nobody, average = variance_at(mechanism, 0), variance_at(mechanism, 1 / k)
        absent = np.full(k, n * float(support.q))
        return Prospect(
            mechanism=mechanism,
            std_error=sqrt(nobody / n),
            std_error_at_share=sqrt(variance_at(mechanism, self.share) / n),
            half_width=half_width(support, n, level),
            simultaneous_half_width=_half(simultaneous(support, absent, n, level)),
            detectable=detectable(support, n, k, level),
            reports_needed=reports_needed(support, self.wanted, level),
            influence=1 / (n * float(support.p - support.q)),
            to_bound=nobody / least_variance(k, self.epsilon),
            # The variances of k values sum up to k times the one at their average share.
            to_bound_l2=average / least_variance(k, self.epsilon, 1 / k),
            work=work(mechanism),
            charge=self.series.charge(self.epsilon, memory.rows if memory else None),
            memory=memory,
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
