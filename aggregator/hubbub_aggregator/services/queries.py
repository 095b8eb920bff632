"""Weighted sums and differences: what a request asks of whom, and the figures that answer it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

import grpc
import numpy as np

from hubbub.mechanisms import MemoisedLocalHashing, ProjectiveGeometry
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import CataloguedMetric
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services.figures import rows_of
from hubbub_aggregator.services.lookup import find_value, require_listed
from hubbub_aggregator.store import Snapshot

if TYPE_CHECKING:
    from hubbub_aggregator.estimation.comparison import Indices
    from hubbub_aggregator.estimation.intervals import Floats, Target

# Squares and sums of weights stay far from what a float64 cannot hold.
MAX_WEIGHT: Final = 1e60

# Pairs times cells of one call within a snapshot: where values are points of a projective
# space some 10 seconds of one core, 20 µs a cell; elsewhere a fraction of a second.
MAX_POINT_PAIRS: Final = 500_000
MAX_PAIRS: Final = 2_000_000

Pairs = Sequence[estimate_pb2.ValuePair]


def weights_of(
    metric: CataloguedMetric, weights: Iterable[estimate_pb2.Weight]
) -> dict[int, float]:
    """What each value that is named weighs, by its place in the domain. Raises Refused."""
    require_listed(metric)
    found: dict[int, float] = {}
    for weight in weights:
        index = find_value(metric, weight.value)
        if index in found:
            raise _refused(f"value {weight.value!r} is weighed twice")
        if not (isfinite(weight.weight) and abs(weight.weight) <= MAX_WEIGHT):
            raise _refused(f"{weight.value!r} weighs {weight.weight}; at most 1e60 is possible")
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
    from hubbub_aggregator.estimation.linear import linear_estimate

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
    is_space = isinstance(left.metric.mechanism, ProjectiveGeometry | MemoisedLocalHashing)
    most = (MAX_POINT_PAIRS if is_space else MAX_PAIRS) // left.oracle.cells
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
    from hubbub_aggregator.estimation.comparison import Sample
    from hubbub_aggregator.estimation.differences import between, within

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
    return [estimate_pb2.Difference(**row) for row in rows_of(found, values=pairs)]


def _places(metric: CataloguedMetric, labels: Iterable[str]) -> "Indices":
    return np.array([metric.metric.domain.indices[label] for label in labels], np.int64)


def _require_one_domain(left: CataloguedMetric, right: CataloguedMetric) -> None:
    for metric in (left, right):
        require_listed(metric)
    for metric, other in ((left, right), (right, left)):
        missing = set(metric.metric.domain.labels) - set(other.metric.domain.labels)
        if missing:
            raise _refused(
                f"{other.metric.name!r} has no {min(missing)!r}, which {metric.metric.name!r} "
                f"has; name the values to compare"
            )


def _refused(sentence: str) -> Refused:
    return Refused(grpc.StatusCode.INVALID_ARGUMENT, sentence)
