"""What more reports would show: with the mechanism that "auto" picks, which they do not change."""

from functools import lru_cache
from typing import Final, NamedTuple

from hubbub_aggregator.planning.planner import half_width
from hubbub_aggregator.planning.power import detectable, reports_to_detect
from hubbub_dashboard.planning.question import Question, answered

_REPORTS: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class Step(NamedTuple):
    """What so many reports show; see `Prospect`."""

    reports: int
    detectable: float | None
    half_width: float


@lru_cache(maxsize=64)
def steps(question: Question) -> tuple[Step, ...]:
    """A thousand reports to ten million, and the number that was asked about."""
    plan = answered(question)
    first = plan.prospects[0]
    support, k, level = first.mechanism.support, plan.values, plan.level
    planned = Step(plan.reports, first.detectable, first.half_width)
    others = (
        Step(n, detectable(support, n, k, level), half_width(support, n, level))
        for n in _REPORTS
        if n != plan.reports
    )
    return tuple(sorted((planned, *others)))


@lru_cache(maxsize=64)
def reports_to_see(question: Question, share: float) -> int | None:
    """How many reports it takes for a share in (0, 1] to be detectable, of three digits."""
    plan = answered(question)
    return reports_to_detect(plan.prospects[0].mechanism.support, share, plan.values, plan.level)
