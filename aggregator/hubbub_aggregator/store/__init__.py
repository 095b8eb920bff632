"""The store: contracts, ids, tallies and snapshots, through SQLAlchemy Core."""

from hubbub_aggregator.store.errors import (
    NewerSchema,
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
)
from hubbub_aggregator.store.id_set import Ids, as_ids
from hubbub_aggregator.store.store import Store
from hubbub_aggregator.store.types import Batch, Closed, Committed, Published, Snapshot

__all__ = [
    "Batch",
    "Closed",
    "Committed",
    "Ids",
    "NewerSchema",
    "NotAStore",
    "Published",
    "Snapshot",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreUnavailable",
    "as_ids",
]
