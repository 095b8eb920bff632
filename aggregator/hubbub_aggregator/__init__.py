"""Hubbub's aggregator: counts sealed reports exactly once, and says what the crowd says.

import hubbub_aggregator

with hubbub_aggregator.connect() as aggregator:
    aggregator.estimates("health.self_rated").to_pandas()
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub_aggregator.reader import connect

__all__ = ["connect"]


def __getattr__(name: str) -> object:
    # Every command imports this package, and few of them read estimates.
    if name not in __all__:
        raise AttributeError(f"module 'hubbub_aggregator' has no attribute {name!r}")
    from hubbub_aggregator.reader import connect

    return connect
