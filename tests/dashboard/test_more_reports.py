"""How many reports tell two values apart: as many as Compare says do, and fewer do not."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism
from hubbub_aggregator.crowd import SeededChance, sampler_for
from hubbub_aggregator.estimation.comparison import Sample
from hubbub_aggregator.estimation.differences import Differences, within
from hubbub_aggregator.estimation.intervals import SCORE_FROM
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.planning.choice import best
from hubbub_aggregator.tally import Tally
from hubbub_dashboard import text
from hubbub_dashboard.comparing import sentences
from hubbub_dashboard.comparing.more_reports import reports_needed
from hubbub_dashboard.reading.answers import Comparison, Estimates, RoundState, Target
from tests.dashboard.snapshots import make_estimates, make_value
from tests.dashboard.test_comparing import make_difference, make_side
from tests.harness import proportion_range

TRIALS = 400
LEVEL = 0.95
LEFT, RIGHT = np.array([0]), np.array([1])


class Crowd(NamedTuple):
    """Devices of which two values' shares differ; the other values have the rest alike."""

    mechanism: Mechanism
    n: int
    shares: tuple[float, float]

    def tally(self, n: int, target: Target, seed: int) -> Tally:
        """The reports of n devices: with these shares, or drawn from a population with them."""
        k = self.mechanism.k
        rest = (1 - sum(self.shares)) / max(1, k - 2)
        shares = np.array([*self.shares, *[rest] * (k - 2)])
        counts = np.diff(np.rint(np.cumsum([0, *shares]) * n))
        if target is Target.POPULATION:
            counts = np.random.default_rng(seed).multinomial(n, shares)
        values = np.repeat(np.arange(k, dtype=np.uint64), counts.astype(int))
        payloads = sampler_for(self.mechanism).randomise(values, SeededChance(seed))
        return Tally(n, oracle_for(self.mechanism).fold(payloads))

    def compared(self, n: int, target: Target, seed: int) -> Differences:
        """The two values, as `hubbub compare` compares them."""
        sample = Sample(self.mechanism, self.tally(n, target, seed))
        return within(sample, LEFT, RIGHT, target=target.value, level=LEVEL)

    def looked_at(self, target: Target) -> tuple[Comparison, Estimates]:
        """What the page has, where the shares look like what they are."""
        p, q = map(float, self.mechanism.support)
        difference = make_difference("a", "b", self.shares[0] - self.shares[1])
        # Estimated variances are unbiased: their mean is that of the crowd itself.
        errors = [self.compared(self.n, target, seed).std_error[0] for seed in range(50)]
        error = float(np.sqrt(np.mean(np.square(errors))))
        difference = replace(difference, std_error=error, distinguishable=False)
        side = make_side(n=self.n)
        values = [
            replace(
                make_value(label, share),
                count=self.n * (q + share * (p - q)),  # type: ignore[arg-type]
                influence=1 / (self.n * (p - q)),
            )
            for label, share in zip("ab", self.shares, strict=True)
        ]
        estimates = make_estimates(*values, n=self.n, state=RoundState.CLOSED)
        return Comparison(side, side, target, LEVEL, (difference,)), estimates


CROWDS = [
    (("randomised-response", 2, "1"), 400, (0.53, 0.47)),
    (("randomised-response", 4, "3"), 30, (0.35, 0.25)),
    (("randomised-response", 8, "8"), 20, (0.5, 0.3)),
    (("symmetric-unary", 8, "2"), 500, (0.2, 0.14)),
    (("optimised-unary", 256, "4"), 200, (0.3, 0.12)),
    (("subset-selection", 16, "2"), 100, (0.35, 0.25)),
    (("local-hashing", 1_000, "3"), 200, (0.2, 0.1)),
]


@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize(("mechanism", "n", "shares"), CROWDS)
def test_so_many_show_it_in_four_of_five_collections(
    mechanism: tuple[str, int, str], n: int, shares: tuple[float, float], target: Target
) -> None:
    name, k, epsilon = mechanism
    crowd = Crowd(best(name, k, Epsilon.parse(epsilon)), n, shares)
    needed = reports_needed(*crowd.looked_at(target))
    assert needed is not None
    told = text.rounded_up(needed, 2)
    shown = sum(
        bool(crowd.compared(told, target, seed).distinguishable[0]) for seed in range(TRIALS)
    )
    assert proportion_range(0.75, TRIALS).low <= shown <= proportion_range(0.88, TRIALS).high


def test_where_the_score_interval_takes_over_no_more_are_asked_for() -> None:
    """There the number of reports that is needed falls: fewer are judged by wider intervals."""
    crowd = Crowd(best("optimised-unary", 16, Epsilon.parse("4")), 60, (0.3, 0.15))
    needed = reports_needed(*crowd.looked_at(Target.RESPONDENTS))
    assert needed is not None
    p, q = crowd.mechanism.support
    assert needed == pytest.approx(SCORE_FROM / float(min(q, 1 - p)))
    few, enough = (
        sum(
            bool(crowd.compared(n, Target.RESPONDENTS, seed).distinguishable[0])
            for seed in range(TRIALS)
        )
        for n in (int(needed) - 5, text.rounded_up(needed, 2))
    )
    assert few <= proportion_range(0.85, TRIALS).high
    assert enough >= proportion_range(0.9, TRIALS).low


def test_nothing_is_asked_for_that_is_shown_or_out_of_reach() -> None:
    crowd = Crowd(best("symmetric-unary", 8, Epsilon.parse("2")), 500, (0.2, 0.14))
    comparison, estimates = crowd.looked_at(Target.RESPONDENTS)
    assert reports_needed(comparison, estimates) is not None
    (difference,) = comparison.differences
    for facts in (
        {"distinguishable": True},
        {"estimate": 0.0},
        {"estimate": 1.01},
        {"estimate": 1e-6},
    ):
        changed = replace(comparison, differences=(replace(difference, **facts),))
        assert reports_needed(changed, estimates) is None
    assert reports_needed(replace(comparison, differences=()), estimates) is None
    still_open = replace(comparison, left=make_side(n=500, state=RoundState.OPEN))
    assert reports_needed(still_open, estimates) is None
    # Of another snapshot of the round.
    assert reports_needed(comparison, replace(estimates, n=400)) is None
    assert sentences.more_reports(comparison, None) is None
