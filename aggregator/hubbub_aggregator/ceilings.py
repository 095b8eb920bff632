"""What metrics cost a device in its life, and where that is more than it ever spends.

Said before anybody is asked. A device may stop sooner, for its app's budgets or for what it spent
on metrics that are no longer asked.
"""

from collections import defaultdict
from collections.abc import Iterable

from hubbub.contract import Metric
from hubbub.exact import charge_text
from hubbub.limits import MAX_CHARGE_PER_DEVICE, MAX_CHARGE_PER_SOURCE
from hubbub.schedule import Once


def price(metric: Metric) -> str | None:
    """What all rounds of a metric cost together, and why; None if there is only one."""
    if isinstance(metric.schedule, Once):
        return None
    rounds, join = metric.schedule.rounds, metric.schedule.join
    if metric.memoised is not None and metric.permanent is not None:
        parts = f"{metric.memoised.rows:,} rows at {metric.permanent.text}"
    elif join:
        parts = f"{join:,} of {rounds:,} rounds at {metric.epsilon.text}"
    else:
        parts = f"{rounds:,} rounds at {metric.epsilon.text}"
    at_once = "" if metric.series_charge is None else ", charged before the first report"
    return f"ε = {charge_text(metric.total_charge)} in all: {parts}{at_once}"


def early_ends(metrics: Iterable[Metric]) -> list[str]:
    """Why devices stop before the last rounds of some metrics: a sentence for each reason."""
    by_source: dict[str, list[Metric]] = defaultdict(list)
    sentences: list[str] = []
    for metric in metrics:
        by_source[metric.source].append(metric)
        # A series is paid for as a whole, and no contract has one that is too dear.
        if metric.total_charge > MAX_CHARGE_PER_SOURCE:
            affordable = MAX_CHARGE_PER_SOURCE // metric.epsilon.charge
            sentences.append(
                f"{metric.name} has {metric.schedule.rounds:,} rounds, but devices stop after "
                f"{affordable:,}: ε in all is at most 32 for a source"
            )
    spendable = 0
    for source, sharing in by_source.items():
        charge = sum(metric.total_charge for metric in sharing)
        spendable += min(charge, MAX_CHARGE_PER_SOURCE)
        if charge > MAX_CHARGE_PER_SOURCE and len(sharing) > 1:
            names = ", ".join(metric.name for metric in sharing)
            sentences.append(
                f"{names} cost ε = {charge_text(charge)} together, but devices stop at 32, the "
                f"most for their source {source}"
            )
    if spendable > MAX_CHARGE_PER_DEVICE:
        sentences.append(
            f"all sources together cost ε = {charge_text(spendable)}, but devices stop at 64"
        )
    return sentences
