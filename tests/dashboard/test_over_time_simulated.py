"""Over time where nothing changes: real mechanisms and estimators, and crowds of known law."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism
from hubbub_aggregator.crowd import SeededChance, sampler_for
from hubbub_aggregator.estimation.comparison import Sample
from hubbub_aggregator.estimation.differences import between
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.planning.choice import most_accurate
from hubbub_aggregator.tally import Tally
from hubbub_dashboard.over_time.changes import marked
from hubbub_dashboard.over_time.figures import Changes, Shares
from hubbub_dashboard.over_time.series import (
    LEVEL,
    Series,
    level_of_step,
    steps_between,
)
from hubbub_dashboard.reading.answers import Round, Target
from tests.dashboard.series import CLOSED, make_series
from tests.harness import proportion_range

SERIES = 400
VALUES = ("a", "b", "c", "d")
EVERY = np.arange(len(VALUES))
MECHANISM: Mechanism = most_accurate(len(VALUES), Epsilon.parse("1"))


def tally(shares: Sequence[float], n: int, target: Target, seed: int) -> Tally:
    """A round's; respondents hold exactly these shares, a population is drawn from."""
    counts = np.rint(np.array(shares) * n)
    if target is Target.POPULATION:
        counts = np.random.default_rng(seed).multinomial(n, shares)
    values = np.repeat(np.arange(len(VALUES), dtype=np.uint64), counts.astype(int))
    payloads = sampler_for(MECHANISM).randomise(values, SeededChance(seed))
    return Tally(len(values), oracle_for(MECHANISM).fold(payloads))


def snapshot(number: int, reports: Tally, target: Target) -> Shares:
    """The figures that `hubbub estimate` would give."""
    counts = oracle_for(MECHANISM).supports(reports.cells)
    found = estimate(MECHANISM.support, counts, reports.n, target=target.value)
    return Shares(
        round=number,
        state=CLOSED,
        n=reports.n,
        as_of=0.0,
        estimate=found.estimate,
        std_error=found.std_error,
        low=found.simultaneous_low,
        high=found.simultaneous_high,
        influence=float(found.influence.max()),
    )


def compared(before: Tally, after: Tally, target: Target, level: float) -> Changes:
    """The figures that `hubbub compare` would give."""
    samples = Sample(MECHANISM, after), Sample(MECHANISM, before)
    found = between(*samples, EVERY, EVERY, target=target.value, level=level)
    return Changes(
        (CLOSED, before.n),
        (CLOSED, after.n),
        level,
        found.estimate,
        found.std_error,
        found.simultaneous_low,
        found.simultaneous_high,
        found.distinguishable,
    )


def simulated(
    rounds: Sequence[Sequence[float]], sizes: Sequence[int], target: Target, seed: int
) -> Series:
    """As the page puts it together, gaps and all."""
    tallies = [
        tally(shares, n, target, len(rounds) * seed + number)
        for number, (shares, n) in enumerate(zip(rounds, sizes, strict=True))
    ]
    shares = tuple(snapshot(number, each, target) for number, each in enumerate(tallies))
    steps = steps_between(tuple(Round(each.round, CLOSED, each.n) for each in shares), shares)
    level = level_of_step(len(steps))
    changes = [
        compared(tallies[before.number], tallies[after.number], target, level)
        for before, after in steps
    ]
    return make_series(*shares, values=VALUES, changes=changes, target=target)


def even(_: np.random.Generator) -> list[int]:
    return [1_500] * 8


def uneven(chance: np.random.Generator) -> list[int]:
    """From ten reports to 5,000; whole numbers of devices have each value."""
    return [10 * int(size) for size in np.exp(chance.uniform(0, np.log(500), 12))]


def barely(chance: np.random.Generator) -> list[int]:
    """About as many as a round needs to be drawn: some are, and some are not."""
    return [10 * int(size) for size in chance.uniform(25, 55, 8)]


@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("sizes", [even, uneven, barely])
def test_where_nothing_changes_at_most_one_series_in_twenty_has_a_mark(
    sizes: Callable[[np.random.Generator], list[int]], target: Target
) -> None:
    with_marks = steps = 0
    for seed in range(SERIES):
        reports = sizes(np.random.default_rng(seed))
        series = simulated([[0.4, 0.3, 0.2, 0.1]] * len(reports), reports, target, seed)
        with_marks += bool(marked(series))
        steps += len(series.steps)
    # Else there would be nothing to mark.
    assert steps > 2 * SERIES
    assert with_marks <= proportion_range(1 - LEVEL, SERIES).high


def test_a_large_change_is_marked_where_it_came_and_nowhere_else() -> None:
    before, after = [0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1]
    series = simulated([before] * 3 + [after] * 3, [1_500] * 6, Target.RESPONDENTS, 7)
    found = {(change.step.after.number, change.value, change.rose) for change in marked(series)}
    assert found == {(3, 0, False), (3, 1, True)}
