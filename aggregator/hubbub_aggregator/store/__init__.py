"""The store: contracts, ids, tallies and snapshots, through SQLAlchemy Core."""

from hubbub_aggregator.store.errors import (
    NewerSchema,
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
)
from hubbub_aggregator.store.store import (
    Batch,
    Closed,
    Committed,
    Published,
    Snapshot,
    Store,
)

__all__ = [
    "Batch",
    "Closed",
    "Committed",
    "NewerSchema",
    "NotAStore",
    "Published",
    "Snapshot",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreUnavailable",
]
