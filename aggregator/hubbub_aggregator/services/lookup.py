"""Finding what a request names; the same words for the same mistakes everywhere."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

import grpc

from hubbub_aggregator.catalogue import Catalogue, CataloguedMetric
from hubbub_aggregator.refusals import Refused

# A status travels in headers, which hold 8 KiB.
_NAMES: Final = 10
_NAME_LENGTH: Final = 64


def find_metric(catalogue: Catalogue, name: str) -> CataloguedMetric:
    """Raises Refused: NOT_FOUND."""
    metric = catalogue.by_name.get(name)
    if metric is None:
        asked = name[:_NAME_LENGTH]
        raise Refused(
            grpc.StatusCode.NOT_FOUND,
            f"there is no metric {asked!r}; there are: {_some(list(catalogue.by_name), asked)}",
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


def _some(names: Sequence[str], asked: str) -> str:
    """All the names if they are few, else the nearest to what was asked, or the first."""
    if len(names) <= _NAMES:
        return ", ".join(names) or "none"
    shown = get_close_matches(asked, names, _NAMES) or names[:_NAMES]
    return f"{', '.join(shown)} and {len(names) - len(shown):,} more"
