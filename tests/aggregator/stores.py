"""Stores and reports for their tests: small steps, and payloads that say where they come from."""

import os
from collections.abc import Mapping
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text

from hubbub_aggregator.store import Batch, Store, as_ids

STEP = 10
NOW = 1_000.0


def open_store(location: Path | str, writer: int = 1) -> Store:
    return Store(str(location), writer=writer, publish_step=STEP)


def run(store: Store, statement: str, values: Mapping[str, Any] | None = None) -> list[Any]:
    """Do to an open store's rows what the store itself would not; what it says, if anything."""
    with store._engine.begin() as connection:
        result = connection.execute(text(statement), values)
        return [tuple(row) for row in result] if result.returns_rows else []


def batch(digest: bytes, ids: list[bytes], number: int = 0) -> Batch:
    """Reports that all support value 1 of 4."""

    def fold(new: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.array([0, new.sum(), 0, 0])

    return Batch(digest, number, as_ids(b"".join(ids)), fold)


def fresh(n: int) -> list[bytes]:
    return [os.urandom(16) for _ in range(n)]


def n_published(store: Store, digest: bytes, number: int = 0) -> int:
    published = store.published(digest, number)
    if published is None or published.snapshot is None:
        return 0
    n, cells = published.snapshot.tally.n, published.snapshot.tally.cells
    assert cells.tolist() in ([0, n, 0, 0], [])
    return n


def sent(name: str, n: int) -> list[bytes]:
    """Payloads of 4 bytes that say which commit they are of, as a store puts them in order."""
    return [f"{name}{i:03}".encode() for i in range(n)]


def kept(digest: bytes, payloads: list[bytes], ids: list[bytes] | None = None) -> Batch:
    """Reports of a metric that retains them."""

    def retain(new: NDArray[np.bool_]) -> bytes:
        return b"".join(compress(payloads, new))

    ids = fresh(len(payloads)) if ids is None else ids
    return replace(batch(digest, ids), retain=retain)


def retained(store: Store, digest: bytes, n: int, number: int = 0) -> list[bytes]:
    """What a snapshot of n reports counts."""
    arrays = list(store.retained(digest, number, n, 4))
    assert all(array.dtype == np.uint8 and array.shape[1] == 4 for array in arrays)
    return [payload.tobytes() for array in arrays for payload in array]
