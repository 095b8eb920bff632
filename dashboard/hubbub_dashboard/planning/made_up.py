"""A crowd with stated answers, counted and estimated as a real one."""

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Final

import numpy as np

from hubbub.mechanisms import Mechanism
from hubbub_aggregator.crowd import SeededChance, sampler_for
from hubbub_aggregator.crowd.population import Population
from hubbub_aggregator.estimation.consistent import consistent
from hubbub_aggregator.estimation.estimate import Estimate, estimate
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.services.figures import rows_of
from hubbub_aggregator.simulate import collect
from hubbub_aggregator.tally import Counts
from hubbub_dashboard import text
from hubbub_dashboard.planning.question import Question, answered
from hubbub_dashboard.reading.answers import Value
from hubbub_dashboard.shares.selection import Selection

# Rows of the chart: enough to see where a ladder's steps drown.
MAX_ROWS: Final = 12

# A crowd whose reports take more numbers than this, or of sets of more values, would take
# longer to make than a viewer waits.
_MOST_NUMBERS: Final = 10**7
_MOST_VALUES: Final = 1_024

_FIGURES: Final = tuple(field.name for field in fields(Value))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
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

    Of a series, one round. Raises CommandError where there is no plan.
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
    labels, shown = question.labels, np.arange(plan.values)
    if plan.values > MAX_ROWS:
        shown = np.argsort(-shares.estimate, kind="stable")[:MAX_ROWS]
    rows = rows_of(
        Estimate(*(getattr(shares, field.name)[shown] for field in fields(Estimate))),
        label=[labels[index] for index in shown],
        count=counts[shown].tolist(),
        consistent=consistent(shares.estimate)[shown].tolist(),
        found=shares.distinguishable[shown].tolist(),
    )
    selection = Selection(
        tuple(Value(**{name: row[name] for name in _FIGURES}) for row in rows),
        total=plan.values,
        # The largest are those that noise favoured.
        simultaneous=plan.values > MAX_ROWS,
        places=text.decimals(shares.std_error.tolist()),
        doubt=text.doubt(final=True),
    )
    return Crowd(selection, tuple(population.share(index) for index in shown.tolist()), together)


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
