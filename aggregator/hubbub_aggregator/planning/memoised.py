"""Which memoised mechanism is the most accurate, of those whose memo can be paid for.

How accurate a round is depends on ε₁ alone: the chain's two probabilities are those that the
same mechanism without a memo has at ε₁. What ε∞ decides is the price, which is for every row of
the memo; so values that are too many for a row each are hashed to fewer cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hubbub.exact import Epsilon, charge_text
from hubbub.limits import MAX_CHARGE_PER_SOURCE
from hubbub.mechanisms import (
    MEMOISED,
    MemoisedLocalHashing,
    MemoisedMechanism,
    MemoisedRandomisedResponse,
    MemoisedUnary,
    OptimisedUnary,
    RandomisedResponse,
    SymmetricUnary,
)
from hubbub_aggregator.planning.choice import ANY, Aim, NothingFits, by_variance, explain
from hubbub_aggregator.planning.parameters import choices

_HASHING: Final = "memoised-local-hashing"


@dataclass(frozen=True, slots=True)
class Memo:
    """What a memo may cost."""

    permanent: Epsilon
    """ε∞, the price of a row: above ε₁, at most 8."""
    cells: int | None = None
    """The most rows that it may have, at least 2; None: as many as a source can pay for."""

    @property
    def rows(self) -> int:
        """The most rows, for either reason."""
        affordable = MAX_CHARGE_PER_SOURCE // self.permanent.charge
        return affordable if self.cells is None else min(affordable, self.cells)

    def price(self, rows: int) -> str:
        """What so many rows cost: ε as decimal text."""
        return charge_text(rows * self.permanent.charge)

    def shortage(self, rows: int) -> str:
        """Why it cannot have so many rows: half a sentence."""
        if self.cells is not None and self.cells < rows:
            return f"are more than cells = {self.cells:,}"
        return f"would cost ε = {self.price(rows)} in all, above 32"


class NoMemo(Exception):
    """The named mechanism has no memo that is small enough; local hashing always has one."""

    def __init__(self, name: str, k: int, memo: Memo) -> None:
        if k > memo.rows:
            reason = (
                f"{k:,} rows, one for each value, {memo.shortage(k)}; ε∞ may be at most "
                f"{charge_text(MAX_CHARGE_PER_SOURCE // k)} for so many, or {_HASHING} hashes the "
                f"values to {memo.rows:,} cells or fewer"
            )
        else:
            reason = f"a memo of {name} is too large for {k:,} values; take another mechanism"
        super().__init__(reason)


def best_memoised(
    name: str, k: int, epsilon: Epsilon, memo: Memo, aim: Aim = ANY
) -> MemoisedMechanism:
    """The named mechanism, with the number of cells that has the smallest variance at the aim.

    `k`: values in [2, 65,536]; ε, of one report, is less than ε∞. Raises NoMemo; or
    NothingFits, if but for its payloads there were one.
    """
    sizes: list[int] = []
    for rows in _row_counts(name, k, epsilon, aim):
        if rows > memo.rows:
            continue
        try:
            mechanism = _calibrated(name, k, rows, memo.permanent, epsilon)
        except ValueError:
            # Its memo would take more bytes than a device keeps.
            continue
        sizes.append(mechanism.payload_size)
        if aim.max_bytes is None or sizes[-1] <= aim.max_bytes:
            return mechanism
    if sizes:
        raise NothingFits([name], aim.max_bytes or 0, min(sizes))
    raise NoMemo(name, k, memo)


def ranked_memoised(
    k: int, epsilon: Epsilon, memo: Memo, aim: Aim = ANY
) -> list[MemoisedMechanism]:
    """Every mechanism that fits, each at its best for the aim, the most accurate first.

    Of two with the same law the simpler comes first. Arguments as for `best_memoised`. Raises
    NothingFits: but for the size of payloads, two cells are within every memo's means.
    """
    found: list[MemoisedMechanism] = []
    too_large: list[int] = []
    for name in MEMOISED:
        try:
            found.append(best_memoised(name, k, epsilon, memo, aim))
        except NothingFits as refusal:
            too_large.append(refusal.least)
        except NoMemo:
            pass
    if too_large and not found:
        raise NothingFits(list(MEMOISED), aim.max_bytes or 0, min(too_large))
    return by_variance(found, aim.share)


def explain_memoised(ranking: Sequence[MemoisedMechanism], memo: Memo, aim: Aim = ANY) -> str:
    """Why the first of `ranked_memoised` is the first: a sentence without its full stop."""
    first, *others = ranking
    if isinstance(first, MemoisedLocalHashing) and first.k > memo.rows:
        return (
            f"{first.name}: {first.k:,} rows, one for each value, {memo.shortage(first.k)}, so the "
            f"values are hashed to {first.cells} cells"
        )
    reason = explain(ranking, aim)
    if others and others[0].rows < first.rows:
        reason += f", which would cost ε = {memo.price(others[0].rows)} in all"
    return reason


def _row_counts(name: str, k: int, epsilon: Epsilon, aim: Aim) -> list[int]:
    """How many rows a memo may have, the most accurate first."""
    if name != _HASHING:
        return [k]
    possible = choices(name, k, epsilon)
    order = np.argsort(possible.variances(aim.share), kind="stable")
    return [int(cells) for cells in possible.parameters[order, 0]]


def _calibrated(
    name: str, k: int, rows: int, permanent: Epsilon, epsilon: Epsilon
) -> MemoisedMechanism:
    """`rows` is for hashing; the other memos have a row for each value."""
    if name == "memoised-symmetric-unary":
        return MemoisedUnary.calibrate(SymmetricUnary.calibrate(k, permanent), epsilon)
    if name == "memoised-optimised-unary":
        return MemoisedUnary.calibrate(OptimisedUnary.calibrate(k, permanent), epsilon)
    responses = RandomisedResponse.calibrate(rows, permanent)
    if name == _HASHING:
        return MemoisedLocalHashing.calibrate(k, responses, epsilon)
    return MemoisedRandomisedResponse.calibrate(responses, epsilon)
