"""From counts to the figures that readers get."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hubbub.mechanisms import Support
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.store import Snapshot

if TYPE_CHECKING:
    from hubbub_aggregator.intervals import Target
    from hubbub_aggregator.tally import Counts


def figures(
    metric: CataloguedMetric, snapshot: Snapshot | None, target: "Target", level: float
) -> list[estimate_pb2.ValueEstimate]:
    """One message for each value, in the domain's order; without a snapshot, no figures.

    An open domain has no values but those that somebody asks about: none.
    """
    if metric.metric.domain.open:
        return []
    labels = metric.metric.domain.labels
    if snapshot is None:
        return no_figures(labels)
    counts = metric.oracle.supports(snapshot.tally.cells)
    return figures_of(
        metric.metric.mechanism.support,
        labels,
        counts,
        snapshot.tally.n,
        target=target,
        level=level,
    )


def no_figures(labels: Sequence[str]) -> list[estimate_pb2.ValueEstimate]:
    """One message for each label, which says nothing yet."""
    return [estimate_pb2.ValueEstimate(value=label) for label in labels]


def figures_of(
    support: Support,
    labels: Sequence[str],
    counts: "Counts",
    n: int,
    *,
    target: "Target",
    level: float,
) -> list[estimate_pb2.ValueEstimate]:
    """One message for each label, from how many of n reports support it.

    Simultaneous intervals and ranks are over these labels.
    """
    # Imported here: scipy is a third of a restart, and devices wait for none of it.
    from hubbub_aggregator.estimate import estimate

    shares = estimate(support, counts, n, target=target, level=level)
    # The arrays of an Estimate carry the message's names. A domain may have 65,536 values,
    # so each array becomes Python's numbers at once.
    columns: dict[str, list[Any]] = {"value": list(labels), "count": counts.tolist()}
    columns |= {field.name: getattr(shares, field.name).tolist() for field in fields(shares)}
    return [
        estimate_pb2.ValueEstimate(**dict(zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]
