"""From counts to the figures that readers get."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hubbub.mechanisms import Support
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.store import Snapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hubbub_aggregator.estimation.estimate import Estimate
    from hubbub_aggregator.estimation.intervals import Target
    from hubbub_aggregator.tally import Counts


def epsilon_of(metric: CataloguedMetric) -> estimate_pb2.Epsilon:
    """What a report is charged, and the exact worst case of the contract's integers."""
    return estimate_pb2.Epsilon(declared=metric.metric.epsilon.decimal, realised=metric.realised)


def figures(
    metric: CataloguedMetric,
    snapshot: Snapshot | None,
    *,
    closed: bool,
    target: "Target",
    level: float,
) -> list[estimate_pb2.ValueEstimate]:
    """One message for each value, in the domain's order; without a snapshot, no figures.

    `closed`: whether the snapshot is the round's last.
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
        closed=closed,
        whole=True,
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
    closed: bool,
    whole: bool,
    target: "Target",
    level: float,
) -> list[estimate_pb2.ValueEstimate]:
    """One message for each label, from how many of n reports support it.

    Simultaneous intervals, ranks, and what is found are over these labels. `closed`: whether no
    more reports come, so that nobody looks again; `whole`: whether these are all values.
    """
    # Imported here: scipy is a third of a restart, and devices wait for none of it.
    from hubbub_aggregator.estimation.anytime import found
    from hubbub_aggregator.estimation.estimate import estimate

    shares = estimate(support, counts, n, target=target, level=level)
    present = shares.distinguishable if closed else found(support, counts, n, level=level)
    return messages_of(shares, labels, counts, present, whole=whole)


def messages_of(
    shares: "Estimate",
    labels: Sequence[str],
    counts: "Counts",
    found: "NDArray[np.bool_]",
    *,
    whole: bool,
) -> list[estimate_pb2.ValueEstimate]:
    """One message for each label, from its figures, how many reports support it, and whether it
    may be called present; if they are all values, a `whole`, with consistent shares.
    """
    from hubbub_aggregator.estimation.consistent import consistent

    more = {"consistent": consistent(shares.estimate).tolist()} if whole else {}
    columns = {"value": labels, "count": counts.tolist(), "found": found.tolist(), **more}
    return [estimate_pb2.ValueEstimate(**row) for row in rows_of(shares, **columns)]


def rows_of(figures: Any, **more: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """A row for each place in a dataclass's arrays, which carry a message's names; and `more`."""
    # A domain may have 65,536 values, so each array becomes Python's numbers at once.
    arrays = {field.name: getattr(figures, field.name) for field in fields(figures)}
    columns = more | {name: array.tolist() for name, array in arrays.items()}
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))
