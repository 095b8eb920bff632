"""Metrics that ask for more than a device ever spends: said before anybody is asked."""

from hubbub.contract import Metric
from hubbub.limits import MAX_CHARGE_PER_SOURCE


def early_end(metric: Metric) -> str | None:
    """Why devices stop before a metric's last round, or None if they need not: one sentence.

    A device may stop sooner, for its app's budget or for what other metrics cost.
    """
    affordable = MAX_CHARGE_PER_SOURCE // metric.epsilon.charge
    rounds = metric.schedule.rounds
    if rounds <= affordable:
        return None
    return (
        f"{metric.name} has {rounds:,} rounds, but devices stop after {affordable:,}: ε in all is "
        f"at most 32 for a source"
    )
