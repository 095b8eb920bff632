"""What memoised mechanisms have in common: a memo of permanent responses, asked every round.

Erlingsson, Pihur and Korolova (CCS 2014); the chains are those of Arcolezi et al. ("Improving
the Utility of Locally Differentially Private Protocols for Longitudinal and Multidimensional
Frequency Estimates"). Every row of the memo is drawn before anything is asked, so neither the
memo nor what it costs tells which values there were. What is protected is what the values were,
between histories that change, and come back to an earlier value, in the same rounds: the same
rows of another memo. When they changed is not.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from hubbub.limits import MAX_MEMO_BYTES
from hubbub.mechanisms.base import Mechanism, Support
from hubbub.randomness import Source


class MemoisedMechanism(Mechanism, Protocol):
    """A mechanism that answers every round from one memo.

    `ratio`, `support` and `randomise` are about a single round of a device: its report, with
    the memo unknown. Whoever asks again must not `randomise` again, but `respond` from the memo
    that was drawn first.
    """

    @property
    def rows(self) -> int:
        """How many permanent responses a memo holds, each of which is charged."""
        ...

    @property
    def row_ratio(self) -> Fraction:
        """The largest P(row | value) / P(row | other value), exactly: what ε∞ bounds."""
        ...

    @property
    def memo_size(self) -> int:
        """Bytes of a memo."""
        ...

    @property
    def carried(self) -> Support:
        """P(two rounds both support a value), given that the device's value is the same in both:
        p for the device's own value, q for another."""
        ...

    def memorise(self, source: Source) -> bytes:
        """Draw a memo: once in a device's life."""
        ...

    def respond(self, memo: bytes, value: int, source: Source) -> bytes:
        """Return a payload for a value in [0, k): a fresh response to its row.

        Given the memo and the payload, neither draws nor steps depend on the value.
        """
        ...


def require_memo(mechanism: MemoisedMechanism) -> None:
    """Raise ValueError if a memo would be larger than a device keeps."""
    if mechanism.memo_size > MAX_MEMO_BYTES:
        raise ValueError(f"its memo of {mechanism.memo_size:,} bytes is too large")


def row(memo: bytes, number: int, size: int) -> bytes:
    """A row of a memo whose rows have this size."""
    # All are read, so that it takes as long for every row.
    return [memo[place : place + size] for place in range(0, len(memo), size)][number]


def least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least number in [low, high) that holds, given that every larger one does as well.

    Returns `high` if none does.
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
