"""Finding what a request names; the same words for the same mistakes everywhere."""

import grpc

from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric
from hubbub_aggregator.refusals import Refused


def find_metric(catalogue: Catalogue, name: str) -> CataloguedMetric:
    """Raises Refused: NOT_FOUND."""
    metric = catalogue.by_name.get(name)
    if metric is None:
        known = ", ".join(catalogue.by_name) or "none"
        raise Refused(
            grpc.StatusCode.NOT_FOUND, f"there is no metric {name[:64]!r}; there are: {known}"
        )
    return metric


def require_round(metric: CataloguedMetric, number: int) -> int:
    """Raises Refused: NOT_FOUND."""
    if not metric.has_round(number):
        last = metric.metric.schedule.rounds - 1
        raise Refused(
            grpc.StatusCode.NOT_FOUND,
            f"metric {metric.metric.name!r} has rounds 0 to {last}, not {number}",
        )
    return number
