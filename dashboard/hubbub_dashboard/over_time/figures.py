"""A round's shares, and what changed between two rounds, as arrays. Pure.

A value's figures as an object of its own take some hundred bytes; of a thousand values over a
hundred rounds that would be too much to keep.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.v1 import estimate_pb2
from hubbub_dashboard.reading.answers import RoundState

Floats = NDArray[np.float64]


# By identity, as snapshots.
@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """One snapshot of one round; arrays of shape (k,), in the domain's order, never clipped."""

    round: int
    state: RoundState
    n: int
    """Reports in it; 0: there is no snapshot, and arrays are empty."""
    as_of: float
    estimate: Floats
    std_error: Floats
    low: Floats
    high: Floats
    """Intervals that cover all values of this round at once."""
    influence: float
    """How far one hostile report moves a share."""

    @property
    def size(self) -> int:
        return len(self.estimate)


# By identity, as snapshots.
@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What the shares of a round are more than those of one before; arrays of shape (k,)."""

    before: tuple[RoundState, int]
    after: tuple[RoundState, int]
    """State and n of the snapshots that are compared."""
    level: float
    """Probability that the intervals of this one step cover all values at once."""
    estimate: Floats
    std_error: Floats
    low: Floats
    high: Floats
    distinguishable: NDArray[np.bool_]
    """Whether the interval excludes 0."""

    @property
    def size(self) -> int:
        return len(self.estimate)


def shares_of(message: estimate_pb2.Estimates) -> Shares:
    """Read a GetEstimates answer."""
    values = message.values if message.n else ()
    return Shares(
        round=message.round,
        state=RoundState(message.state),
        n=message.n,
        as_of=message.as_of,
        estimate=_floats(value.estimate for value in values),
        std_error=_floats(value.std_error for value in values),
        low=_floats(value.simultaneous_low for value in values),
        high=_floats(value.simultaneous_high for value in values),
        influence=max((value.influence for value in values), default=0.0),
    )


def changes_of(message: estimate_pb2.CompareResponse) -> Changes:
    """Read a Compare answer, whose left is the later round."""
    left, right = message.left, message.right
    rows = message.differences if left.n and right.n else ()
    return Changes(
        before=(RoundState(right.state), right.n),
        after=(RoundState(left.state), left.n),
        level=message.level,
        estimate=_floats(row.estimate for row in rows),
        std_error=_floats(row.std_error for row in rows),
        low=_floats(row.simultaneous_low for row in rows),
        high=_floats(row.simultaneous_high for row in rows),
        distinguishable=np.array([row.distinguishable for row in rows], np.bool_),
    )


def _floats(figures: Iterable[float]) -> Floats:
    return np.fromiter(figures, np.float64)
