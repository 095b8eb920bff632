"""Made-up rounds for pure functions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hubbub.schedule import Periodic
from hubbub_dashboard.over_time.figures import Changes, Shares
from hubbub_dashboard.over_time.series import (
    Revision,
    Series,
    Subject,
    level_of_step,
    series,
    steps_between,
)
from hubbub_dashboard.reading.answers import Round, RoundState, Target

DAY = 86_400
# 2026-11-01 00:00:00 UTC.
STARTS = 1_793_491_200
DAILY = Periodic(STARTS, DAY, 365, 0)

OPEN, CLOSED = RoundState.OPEN, RoundState.CLOSED


def make_shares(
    number: int,
    estimates: Sequence[float],
    *,
    error: float = 0.01,
    state: RoundState = CLOSED,
    n: int = 1_000,
    influence: float = 0.001,
) -> Shares:
    """A snapshot whose intervals are 3 standard errors wide on each side."""
    estimate = np.array(estimates)
    return Shares(
        round=number,
        state=state,
        n=n,
        as_of=0.0,
        estimate=estimate,
        std_error=np.full(len(estimate), error),
        low=estimate - 3 * error,
        high=estimate + 3 * error,
        influence=influence,
    )


def make_changes(before: Shares, after: Shares, steps: int) -> Changes:
    """A step whose intervals are 4 standard errors of a share wide on each side."""
    estimate = after.estimate - before.estimate
    reach = 4 * after.std_error
    return Changes(
        before=(before.state, before.n),
        after=(after.state, after.n),
        level=level_of_step(steps),
        estimate=estimate,
        std_error=1.4 * after.std_error,
        low=estimate - reach,
        high=estimate + reach,
        distinguishable=abs(estimate) > reach,
    )


def make_series(
    *shares: Shares | None,
    values: Sequence[str] = ("good", "fair", "poor"),
    first: int = 0,
    schedule: Periodic = DAILY,
    revisions: Sequence[Revision] | None = (),
    changes: Sequence[Changes | None] | None = None,
    **subject: Any,
) -> Series:
    """Rounds from `first` on; None: a closed one that has no figures."""
    rounds = tuple(
        Round(number, CLOSED if known is None else known.state, 0 if known is None else known.n)
        for number, known in enumerate(shares, first)
    )
    steps = steps_between(rounds, shares)
    by_number = {known.round: known for known in shares if known is not None}
    if changes is None:
        changes = [
            make_changes(by_number[before.number], by_number[after.number], len(steps))
            for before, after in steps
        ]
    return series(
        Subject("health", tuple(values), subject.get("target", Target.RESPONDENTS), schedule),
        rounds,
        shares,
        tuple(changes),
        None if revisions is None else tuple(revisions),
    )


def closed_series(*estimates: Sequence[float], **facts: Any) -> Series:
    """Closed rounds of these shares."""
    return make_series(*(make_shares(number, row) for number, row in enumerate(estimates)), **facts)


def numbers_of(steps: Sequence[tuple[Round, Round]]) -> list[tuple[int, int]]:
    return [(before.number, after.number) for before, after in steps]
