"""A collection as it would have gone: a crowd with known answers, randomised and counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hubbub.contract import Metric
from hubbub.domain import text_index
from hubbub.mechanisms import Mechanism
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.crowd import batch_size, sampler_for
from hubbub_aggregator.crowd.chance import Chance
from hubbub_aggregator.crowd.population import Population
from hubbub_aggregator.estimation.intervals import Target
from hubbub_aggregator.oracles import OpenHashingOracle, Payloads, oracle_for
from hubbub_aggregator.records import TARGETS, as_report
from hubbub_aggregator.services.figures import epsilon_of, figures_of
from hubbub_aggregator.tally import Counts


@dataclass(frozen=True, eq=False)
class Simulation:
    """What was asked, what is true, and what was reported."""

    metric: CataloguedMetric
    n: int
    """How many people there are, each with one report."""
    outside: int
    """How many of them answered outside the domain, and had a random value reported on."""
    labels: Sequence[str]
    truth: Sequence[float]
    """For each label, the share of people who gave it as their answer."""
    counts: Counts
    """For each label, the reports that support it: int64, in [0, n]."""

    def report(self, *, target: Target = "respondents", level: float = 0.95) -> dict[str, Any]:
        """What `hubbub estimate --format json` prints, with every value's `truth`."""
        metric = self.metric.metric
        answer = estimate_pb2.Estimates(
            metric=metric.name,
            digest=metric.digest,
            n=self.n,
            mechanism=metric.mechanism.name,
            epsilon=epsilon_of(self.metric),
            kind="unbiased",
            target=TARGETS[target],
            level=level,
            values=figures_of(
                metric.mechanism.support,
                self.labels,
                self.counts,
                self.n,
                closed=True,
                whole=not metric.domain.open,
                target=target,
                level=level,
            ),
        )
        report = as_report(answer)
        for value, truth in zip(report["values"], self.truth, strict=True):
            value["truth"] = truth
        # No snapshot was ever taken.
        return report | {"as_of": None, "simulated": True, "outside": self.outside}


def simulate(
    metric: Metric,
    answers: Mapping[str | None, int],
    chance: Chance,
    candidates: Sequence[str] = (),
) -> Simulation:
    """Let everybody answer on a device of their own, once, and count the reports.

    `answers`: how many people give each one, None for nothing to report; at least one person.
    `candidates`: the texts that an open domain is asked about; other domains take none.
    """
    population = Population.answering(metric.domain, answers)
    oracle = oracle_for(metric.mechanism)
    if isinstance(oracle, OpenHashingOracle) and metric.domain.open:
        labels, indices = candidates, [text_index(candidate) for candidate in candidates]
        count = partial(oracle.candidate_supports, indices=indices)
        counts = collect(metric.mechanism, population, count, chance)
    else:
        labels, indices = metric.domain.labels, [*range(metric.domain.k)]
        counts = oracle.supports(collect(metric.mechanism, population, oracle.fold, chance))
    return Simulation(
        metric=CataloguedMetric(metric, metric.digest, oracle, listed=True),
        n=population.n,
        outside=population.outside,
        labels=labels,
        truth=[population.share(index) for index in indices],
        counts=counts,
    )


def collect(
    mechanism: Mechanism,
    population: Population,
    count: Callable[[Payloads], Counts],
    chance: Chance,
) -> Counts:
    """Add up what `count` says of the devices' reports, batch by batch.

    `count`: from payloads to int64 of one shape. Memory does not grow with the crowd.
    """
    sampler, size, n = sampler_for(mechanism), batch_size(mechanism), population.n
    total: Any = 0
    for start in range(0, n, size):
        values = population.values(start, min(start + size, n), chance)
        total += count(sampler.randomise(values, chance))
    counts: Counts = total
    return counts
