"""Weighted sums and differences: what a request asks of whom, and the figures that answer it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import grpc
import numpy as np

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services.lookup import find_value
from hubbub_aggregator.store import Snapshot

if TYPE_CHECKING:
    from hubbub_aggregator.comparison import Indices
    from hubbub_aggregator.intervals import Floats, Target

# Squares and sums of weights stay far from what a float64 cannot hold.
MAX_WEIGHT: Final = 1e100

# Pairs times cells of one call within a snapshot: some 15 seconds where reports are points of
# a projective space, 10 µs a cell; elsewhere a thousandth.
MAX_PAIR_CELLS: Final = 2_000_000

Pairs = Sequence[estimate_pb2.ValuePair]


def weights_of(
    metric: CataloguedMetric, weights: Iterable[estimate_pb2.Weight]
) -> dict[int, float]:
    """What each value that is named weighs, by its place in the domain. Raises Refused."""
    found: dict[int, float] = {}
    for weight in weights:
        index = find_value(metric, weight.value)
        if index in found:
            raise _refused(f"value {weight.value!r} is weighed twice")
        if not (isfinite(weight.weight) and abs(weight.weight) <= MAX_WEIGHT):
            raise _refused(f"{weight.value!r} weighs {weight.weight}; at most 1e100 is possible")
        found[index] = weight.weight
    if not any(found.values()):
        raise _refused("nothing is weighed; name at least one value with a weight that is not 0")
    return found


def query_figures(
    metric: CataloguedMetric,
    snapshot: Snapshot | None,
    weights: dict[int, float],
    target: "Target",
    level: float,
) -> dict[str, float]:
    """The figures of a QueryResponse, by their names; without a snapshot, none."""
    if snapshot is None:
        return {}
    # Imported here, as everywhere in the services: scipy is a third of a restart.
    from hubbub_aggregator.linear import linear_estimate

    mechanism = metric.metric.mechanism
    vector: Floats = np.zeros(mechanism.k)
    vector[list(weights)] = list(weights.values())
    return asdict(linear_estimate(mechanism, snapshot.tally, vector, target=target, level=level))


def pairs_of(left: CataloguedMetric, right: CataloguedMetric, pairs: Pairs, *, same: bool) -> Pairs:
    """The pairs of values to compare: those asked for, else every value with itself.

    `same`: whether both sides are one round of one metric. Raises Refused.
    """
    if not pairs:
        if same:
            raise _refused(
                "both sides are the same round; name two values, or two rounds or metrics"
            )
        _require_one_domain(left, right)
        labels = left.metric.domain.labels
        return [estimate_pb2.ValuePair(left=label, right=label) for label in labels]
    for pair in pairs:
        find_value(left, pair.left)
        find_value(right, pair.right)
        if same and pair.left == pair.right:
            raise _refused(f"{pair.left!r} is compared with itself; name two values")
    most = MAX_PAIR_CELLS // left.oracle.cells
    if same and len(pairs) > most:
        raise _refused(
            f"{most:,} pairs of {left.metric.name!r} can be compared at once, not {len(pairs):,}"
        )
    return pairs


class Side(NamedTuple):
    """One side of a comparison."""

    metric: CataloguedMetric
    snapshot: Snapshot | None


def differences(
    left: Side, right: Side, pairs: Pairs, target: "Target", level: float, *, same: bool
) -> list[estimate_pb2.Difference]:
    """One message for each pair; figures only if both sides have a snapshot."""
    if left.snapshot is None or right.snapshot is None:
        return [estimate_pb2.Difference(values=pair) for pair in pairs]
    from hubbub_aggregator.comparison import Sample
    from hubbub_aggregator.differences import between, within

    one = Sample(left.metric.metric.mechanism, left.snapshot.tally)
    other = Sample(right.metric.metric.mechanism, right.snapshot.tally)
    values = (
        _places(left.metric, (pair.left for pair in pairs)),
        _places(right.metric, (pair.right for pair in pairs)),
    )
    if same:
        found = within(one, *values, target=target, level=level)
    else:
        found = between(one, other, *values, target=target, level=level)
    columns: dict[str, list[Any]] = {"values": list(pairs)}
    columns |= {field.name: getattr(found, field.name).tolist() for field in fields(found)}
    return [
        estimate_pb2.Difference(**dict(zip(columns, row, strict=True)))
        for row in zip(*columns.values(), strict=True)
    ]


def _places(metric: CataloguedMetric, labels: Iterable[str]) -> "Indices":
    return np.array([metric.metric.domain.indices[label] for label in labels], np.int64)


def _require_one_domain(left: CataloguedMetric, right: CataloguedMetric) -> None:
    for metric, other in ((left, right), (right, left)):
        missing = set(metric.metric.domain.labels) - set(other.metric.domain.labels)
        if missing:
            raise _refused(
                f"{other.metric.name!r} has no {min(missing)!r}, which {metric.metric.name!r} "
                f"has; name the values to compare"
            )
        if metric.metric.domain.open:
            raise _refused(f"metric {metric.metric.name!r} lists no values to compare")


def _refused(sentence: str) -> Refused:
    return Refused(grpc.StatusCode.INVALID_ARGUMENT, sentence)
