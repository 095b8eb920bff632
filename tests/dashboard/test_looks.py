"""A thousand looks at an open round's page: a value that nobody has is seldom called present.

Every look is what the aggregator answers about a snapshot, and what the page makes of that: its
sentence, its table and its chart.
"""

import numpy as np

from hubbub.exact import Epsilon
from hubbub.mechanisms import OptimisedUnary
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.services.figures import figures_of
from hubbub_dashboard import markup
from hubbub_dashboard.reading.answers import Estimates, estimates_of
from hubbub_dashboard.shares import findings, share_chart
from hubbub_dashboard.shares.selection import Order, select
from tests.harness import proportion_range

LOOKS = 1_000
STEP = 100
RUNS = 100
LABELS = ("everybody", "nobody")
NULL = LABELS.index("nobody")

MECHANISM = OptimisedUnary.calibrate(len(LABELS), Epsilon.parse("1"))


def look(counts: np.ndarray, n: int) -> Estimates:  # type: ignore[type-arg]
    """The page's snapshot of n reports, of which so many support each value."""
    values = figures_of(
        MECHANISM.support,
        LABELS,
        counts,
        n,
        closed=False,
        whole=True,
        target="respondents",
        level=0.95,
    )
    return estimates_of(
        estimate_pb2.Estimates(
            metric="null",
            round=0,
            state=estimate_pb2.ROUND_STATE_OPEN,
            n=n,
            mechanism="optimised-unary",
            target=estimate_pb2.TARGET_RESPONDENTS,
            level=0.95,
            values=values,
        )
    )


def is_marked(estimates: Estimates) -> bool:
    """Whether the page says, in any of its ways, that the value is really there."""
    selection = select(estimates, Order.LISTED)
    ways = {
        "All 2 values" in findings.answer(estimates),
        markup.table(selection, 0.95).count("yes</td>") == len(LABELS),
        share_chart.rows(selection)["found"].to_pylist()[NULL],
    }
    assert len(ways) == 1
    return ways.pop()


def test_a_thousand_looks_mark_a_value_that_nobody_has_in_at_most_one_run_of_twenty() -> None:
    rng = np.random.default_rng(61)
    p, q = map(float, MECHANISM.support)
    marked, above = 0, 0
    for _ in range(RUNS):
        steps = rng.binomial(STEP, [p, q], size=(LOOKS, len(LABELS)))
        looks = np.cumsum(steps, axis=0)
        reports = STEP * np.arange(1, LOOKS + 1)
        errors = (looks[:, NULL] - reports * q) / np.sqrt(reports * q * (1 - q))
        # No rule marks what is less than one error above zero; some such are looked at too.
        telling = np.flatnonzero((errors > 1) | (reports % (50 * STEP) == 0))
        seen = [look(looks[turn], int(reports[turn])) for turn in telling]
        marked += any(is_marked(estimates) for estimates in seen)
        above += any(estimates.values[NULL].low > 0 for estimates in seen)
    assert marked <= proportion_range(0.05, RUNS).high
    # The looks are such that the interval of one look would have been wrong far more often.
    assert above > proportion_range(0.05, RUNS).high
