"""Memoised mechanisms before signing: really the best, paid for, and explained."""

from functools import cache
from itertools import product
from typing import Any

import pytest

from hubbub.exact import Epsilon
from hubbub.limits import MAX_CELLS, MAX_CHARGE_PER_SOURCE, MAX_MEMO_BYTES, MAX_VALUES
from hubbub.mechanisms import MECHANISMS, MEMOISED, MemoisedLocalHashing, MemoisedMechanism
from hubbub.mechanisms.primes import is_prime
from hubbub_aggregator.planning.choice import ANY, Aim, NothingFits, best, size_of, variance_at
from hubbub_aggregator.planning.memoised import (
    Memo,
    NoMemo,
    best_memoised,
    explain_memoised,
    ranked_memoised,
)
from tests.calibrated import memoised

ONE, TWO = Epsilon.parse("1"), Epsilon.parse("2")
HASHING = "memoised-local-hashing"


@cache
def every_memo(k: int, epsilon: str, permanent: str) -> list[MemoisedMechanism]:
    """All that a contract may hold, whatever it costs."""
    epsilons: dict[str, Any] = {"permanent": permanent, "epsilon": epsilon}
    found = [memoised(name, k, **epsilons) for name in MEMOISED if name != HASHING]
    found += [
        memoised(HASHING, k, cells=cells, **epsilons) for cells in filter(is_prime, range(2, 24))
    ]
    return [mechanism for mechanism in found if is_one(mechanism)]


def is_one(mechanism: MemoisedMechanism) -> bool:
    try:
        return mechanism.ratio > 0
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("epsilon", "permanent", "k"),
    [*product(["0.1", "1", "ln 9"], ["2.5", "8"], [2, 12]), ("1", "1.5", 40), ("1", "2", 400)],
)
def test_the_first_is_the_best_that_can_be_paid_for(epsilon: str, permanent: str, k: int) -> None:
    declared, memo = Epsilon.parse(epsilon), Memo(Epsilon.parse(permanent))
    fitting = [
        mechanism
        for mechanism in every_memo(k, epsilon, permanent)
        if mechanism.rows * memo.permanent.charge <= MAX_CHARGE_PER_SOURCE
    ]
    for share in (0, 0.3):
        ranking = ranked_memoised(k, declared, memo, Aim(share))
        least = min(variance_at(mechanism, share) for mechanism in fitting)
        assert variance_at(ranking[0], share) == pytest.approx(least, rel=1e-9)
        variances = [variance_at(mechanism, share) for mechanism in ranking]
        assert variances == sorted(variances)
        for mechanism in ranking:
            assert mechanism in fitting


@pytest.mark.parametrize("epsilon", ["0.1", "1", "ln 3"])
@pytest.mark.parametrize("name", [name for name in MEMOISED if name != HASHING])
def test_a_round_is_as_accurate_as_without_a_memo(name: str, epsilon: str) -> None:
    """Whatever a row costs: ε∞ decides the price, ε₁ the variance."""
    declared, one_time = Epsilon.parse(epsilon), name.removeprefix("memoised-")
    for k, share, permanent in product((2, 9), (0, 0.5), ("1.2", "3.5")):
        memo = Memo(Epsilon.parse(permanent))
        with_memo = best_memoised(name, k, declared, memo)
        assert variance_at(with_memo, share) == pytest.approx(
            variance_at(best(one_time, k, declared), share), rel=1e-9
        )


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_no_payload_is_larger_than_allowed(limit: int) -> None:
    aim, memo = Aim(max_bytes=limit), Memo(Epsilon.parse("1.5"))
    for k in (3, 300):
        fitting = [
            mechanism
            for mechanism in every_memo(k, "1", "1.5")
            if mechanism.rows <= memo.rows and mechanism.payload_size <= limit
        ]
        if not fitting:
            with pytest.raises(NothingFits):
                ranked_memoised(k, ONE, memo, aim)
            continue
        chosen = ranked_memoised(k, ONE, memo, aim)[0]
        assert chosen.payload_size <= limit
        least = min(variance_at(mechanism, 0) for mechanism in fitting)
        assert variance_at(chosen, 0) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(("cells", "rows"), [(None, 6), (6, 6), (5, 3), (4, 3), (3, 3), (2, 2)])
def test_fewer_cells_hash_the_values(cells: int | None, rows: int) -> None:
    chosen = ranked_memoised(6, ONE, Memo(TWO, cells))[0]
    assert chosen.rows == rows
    assert isinstance(chosen, MemoisedLocalHashing) == (rows < 6)


def test_the_most_cells_are_those_that_a_source_pays_for() -> None:
    epsilon = Epsilon.parse("3")
    for permanent, rows in (("8", 4), ("5", 6), ("3.1", 10)):
        memo = Memo(Epsilon.parse(permanent))
        assert memo.rows == rows
        best_hash = best_memoised(HASHING, 1_000, epsilon, memo)
        assert best_hash.rows == max(filter(is_prime, range(rows + 1)))


def test_a_memo_that_would_be_too_large_is_not_chosen() -> None:
    memo = Memo(Epsilon.parse("0.01"))
    chosen = ranked_memoised(3_000, Epsilon.parse("0.005"), memo)
    assert {mechanism.name for mechanism in chosen} == {"memoised-randomised-response", HASHING}
    assert all(mechanism.memo_size <= MAX_MEMO_BYTES for mechanism in chosen)
    with pytest.raises(NoMemo, match="a memo of memoised-optimised-unary is too large for 3,000"):
        best_memoised("memoised-optimised-unary", 3_000, Epsilon.parse("0.005"), memo)


@pytest.mark.parametrize(
    ("name", "k", "memo", "says"),
    [
        (
            "memoised-optimised-unary",
            40,
            Memo(TWO),
            "40 rows, one for each value, would cost ε = 80 in all, above 32; ε∞ may be at most "
            "0.8 for so many, or memoised-local-hashing hashes the values to 16 cells or fewer",
        ),
        (
            "memoised-randomised-response",
            6,
            Memo(TWO, 4),
            "6 rows, one for each value, are more than cells = 4; ε∞ may be at most",
        ),
    ],
)
def test_what_is_too_dear_is_refused_with_what_would_do(
    name: str, k: int, memo: Memo, says: str
) -> None:
    with pytest.raises(NoMemo) as refusal:
        best_memoised(name, k, ONE, memo)
    assert str(refusal.value).startswith(says)


def test_hashing_has_room_for_every_domain() -> None:
    for memo in (Memo(TWO), Memo(Epsilon.parse("8")), Memo(TWO, 2)):
        (only,) = ranked_memoised(MAX_VALUES, ONE, memo)
        assert isinstance(only, MemoisedLocalHashing)
        assert only.reports <= MAX_CELLS
    with pytest.raises(NothingFits, match="every mechanism's payload has at least 2 bytes"):
        ranked_memoised(300, ONE, Memo(TWO), Aim(max_bytes=1))


@pytest.mark.parametrize(
    ("k", "memo", "aim", "says"),
    [
        (
            4,
            Memo(TWO),
            ANY,
            "memoised-randomised-response: 57 % less variance than the next, "
            "memoised-optimised-unary",
        ),
        (
            16,
            Memo(TWO),
            ANY,
            "memoised-optimised-unary: 2.3 % less variance than the next, memoised-local-hashing, "
            "which would cost ε = 6 in all",
        ),
        (
            17,
            Memo(TWO),
            ANY,
            "memoised-local-hashing: 17 rows, one for each value, would cost ε = 34 in all, above "
            "32, so the values are hashed to 3 cells",
        ),
        (
            16,
            Memo(TWO, 8),
            ANY,
            "memoised-local-hashing: 16 rows, one for each value, are more than cells = 8, so the "
            "values are hashed to 3 cells",
        ),
    ],
)
def test_the_pick_is_explained(k: int, memo: Memo, aim: Aim, says: str) -> None:
    assert explain_memoised(ranked_memoised(k, ONE, memo, aim), memo, aim) == says


def test_what_was_chosen_is_told_without_the_thresholds() -> None:
    assert size_of(memoised(HASHING, 20, cells=3)) == "cells 3, dimensions 4, 1 byte"
    assert size_of(memoised("memoised-optimised-unary", 20)) == "3 bytes"


def test_mechanisms_with_and_without_a_memo_have_names_of_their_own() -> None:
    assert not {*MECHANISMS} & {*MEMOISED}
