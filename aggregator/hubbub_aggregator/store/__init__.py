"""The store: contracts, ids, tallies and snapshots, through SQLAlchemy Core."""

from hubbub_aggregator.store.errors import (
    NewerSchema,
    NotAStore,
    ReportsForgotten,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
)
from hubbub_aggregator.store.id_set import Ids, as_ids
from hubbub_aggregator.store.store import Store
from hubbub_aggregator.store.types import (
    Batch,
    Closed,
    Committed,
    KeptReports,
    Published,
    Snapshot,
    Unpaired,
)

__all__ = [
    "Batch",
    "Closed",
    "Committed",
    "Ids",
    "KeptReports",
    "NewerSchema",
    "NotAStore",
    "Published",
    "ReportsForgotten",
    "Snapshot",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreUnavailable",
    "Unpaired",
    "as_ids",
]
