"""Finding what a request names; the same words for the same mistakes everywhere."""

from typing import Final

import grpc

from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.some_names import some

# A status travels in headers, which hold 8 KiB.
_NAME_LENGTH: Final = 64
_LABEL_LENGTH: Final = 40


def find_metric(catalogue: Catalogue, name: str) -> CataloguedMetric:
    """Raises Refused: NOT_FOUND."""
    metric = catalogue.by_name.get(name)
    if metric is None:
        asked = name[:_NAME_LENGTH]
        raise Refused(
            grpc.StatusCode.NOT_FOUND,
            f"there is no metric {asked!r}; there are: {some(list(catalogue.by_name), asked)}",
        )
    return metric


def require_round(metric: CataloguedMetric, number: int) -> int:
    """Raises Refused: NOT_FOUND."""
    if not metric.has_round(number):
        raise Refused(
            grpc.StatusCode.NOT_FOUND,
            f"metric {metric.metric.name!r} has {metric.which_rounds}, not {number}",
        )
    return number


def require_listed(metric: CataloguedMetric) -> None:
    """Raises Refused if the metric has an open domain: INVALID_ARGUMENT."""
    name = metric.metric.name
    if metric.metric.domain.open:
        raise Refused(
            grpc.StatusCode.INVALID_ARGUMENT,
            f"metric {name!r} has an open domain, in which there are no sums or differences; ask "
            f"about single texts: hubbub estimate {name} --candidates FILE",
        )


def find_value(metric: CataloguedMetric, label: str) -> int:
    """The place of a value in the domain. Raises Refused: NOT_FOUND, INVALID_ARGUMENT."""
    require_listed(metric)
    domain, name = metric.metric.domain, metric.metric.name
    index = domain.indices.get(label)
    if index is None:
        asked, labels = label[:_LABEL_LENGTH], [known[:_LABEL_LENGTH] for known in domain.labels]
        raise Refused(
            grpc.StatusCode.NOT_FOUND,
            f"metric {name!r} has no value {asked!r}; it has: {some(labels, asked)}",
        )
    return index
