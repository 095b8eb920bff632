"""A crowd with stated answers, counted and estimated as a real one."""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Final

import numpy as np

from hubbub.mechanisms import Mechanism
from hubbub_aggregator.crowd import SeededChance, sampler_for
from hubbub_aggregator.crowd.population import Population
from hubbub_aggregator.estimation.consistent import consistent
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.services.figures import rows_of
from hubbub_aggregator.simulate import collect
from hubbub_aggregator.tally import Counts
from hubbub_dashboard.planning.question import Question, answered
from hubbub_dashboard.selection import Order, Selection, select
from hubbub_dashboard.source import Epsilon, Estimates, RoundState, Value

# Rows of the chart: enough to see where a ladder's steps drown.
MAX_ROWS: Final = 12

# A crowd whose reports take more numbers than this, or of sets of more values, would take
# longer to make than a viewer waits.
_MOST_NUMBERS: Final = 10**7
_MOST_VALUES: Final = 1_024

_FIGURES: Final = tuple(field.name for field in fields(Value))


@dataclass(frozen=True, slots=True, eq=False)
class Crowd:
    """A collection as it would have gone, closed."""

    selection: Selection
    """Its values: all, as listed; or the `MAX_ROWS` largest."""
    truth: tuple[float, ...]
    """The true share of each of them."""
    together: bool
    """Whether every report was made, and counts have their law together; else each its own."""

    @property
    def inside(self) -> tuple[bool, ...]:
        """Whether each truth lies in the interval that is drawn."""
        ends = ((self.selection.low(value), self.selection.high(value)) for value in self.values)
        return tuple(
            low <= truth <= high for (low, high), truth in zip(ends, self.truth, strict=True)
        )

    @property
    def values(self) -> tuple[Value, ...]:
        """What is drawn."""
        return self.selection.values


def ladder(k: int, n: int) -> Population:
    """Half of n devices have the first of k values, half of the others the second, and so on.

    The last has all that remain.
    """
    devices = {index: n >> (index + 1) for index in range(min(k - 1, n.bit_length()))}
    devices[k - 1] = n - sum(devices.values())
    return Population(k, devices)


@lru_cache(maxsize=64)
def crowd(question: Question, seed: int) -> Crowd:
    """The ladder's answers, with the mechanism that "auto" picks; the same for the same seed.

    Of a series, one round. No two values may have one name. Raises CommandError where there is
    no plan.
    """
    plan = answered(question)
    mechanism, n = plan.prospects[0].mechanism, plan.reports
    population = ladder(plan.values, n)
    together = mechanism.k <= _MOST_VALUES and n * sampler_for(mechanism).width <= _MOST_NUMBERS
    if together:
        oracle = oracle_for(mechanism)
        counts = oracle.supports(collect(mechanism, population, oracle.fold, SeededChance(seed)))
    else:
        counts = separate(mechanism, population, seed)
    shares = estimate(mechanism.support, counts, n, level=plan.level)
    rows = rows_of(
        shares,
        label=question.labels,
        count=counts.tolist(),
        consistent=consistent(shares.estimate).tolist(),
        found=shares.distinguishable.tolist(),
    )
    values = tuple(Value(**{name: row[name] for name in _FIGURES}) for row in rows)
    estimates = Estimates(
        metric="",
        digest=b"",
        round=0,
        state=RoundState.CLOSED,
        n=n,
        mechanism=mechanism.name,
        epsilon=Epsilon(plan.epsilon.decimal, plan.epsilon.decimal),
        level=plan.level,
        as_of=0.0,
        publish_step=1,
        values=values,
    )
    selection = select(estimates, Order.LISTED if len(values) <= MAX_ROWS else Order.LARGEST)
    shown = selection.values[:MAX_ROWS]
    truth = {label: population.share(index) for index, label in enumerate(question.labels)}
    return Crowd(
        replace(selection, values=shown), tuple(truth[value.label] for value in shown), together
    )


def separate(mechanism: Mechanism, population: Population, seed: int) -> Counts:
    """How many reports support each value: every count by its own law, exactly, but by itself.

    Reports that support a value are those of its holders, each with probability p, and those
    of the others, with q.
    """
    p, q = map(float, mechanism.support)
    chance = np.random.default_rng(seed)
    holders = np.zeros(population.k, np.int64)
    holders[[*population.devices]] = [*population.devices.values()]
    return chance.binomial(holders, p) + chance.binomial(population.n - holders, q)
