"""What the store takes and gives."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub_aggregator.store.id_set import Ids
from hubbub_aggregator.tally import Counts, Tally


@dataclass(frozen=True, slots=True)
class Batch:
    """Reports of one metric and round, to be counted together."""

    digest: bytes
    round: int
    ids: Ids
    """n of them."""
    fold: Callable[[NDArray[np.bool_]], Counts]
    """From which of the n reports to count, bool of shape (n,), to what they add to the cells."""
    retain: Callable[[NDArray[np.bool_]], bytes] | None = None
    """From the same to their payloads, back to back in the order of the ids; None: reports are
    counted and not kept."""
    plain: NDArray[np.bool_] | None = None
    """Which of them came unsealed, bool of shape (n,); None: none of them."""


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit did."""

    new: list[NDArray[np.bool_] | None]
    """For each batch, which reports are counted now for the first time; None: closed round."""
    published: bool
    """Whether there is a new snapshot."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A fixed state of a round, the only one that readers see."""

    tally: Tally
    as_of: float
    """When it was taken, seconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class Published:
    """What readers may know of a round."""

    closed: bool
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class KeptReports:
    """The reports of a round that is being closed, with their ids; of use until it is closed."""

    n: int
    """How many the round counted."""
    plain: int
    """How many of them came unsealed."""
    read: Callable[[int], Iterator[NDArray[np.uint8]]]
    """From the bytes of a payload to ids and payloads side by side: arrays of shape
    (some, 16 + size), of some MiB. Raises Unpaired or StoreError."""


class Unpaired(Exception):
    """Some of a round's reports were counted by a version that did not note whose id is whose."""


@dataclass(frozen=True, slots=True)
class Closed:
    """What closing a round came to."""

    n: int
    closed_now: bool
    """False: it was closed before."""
