"""Memoised mechanisms: laws of whole histories, what they protect, and the papers' figures.

That memo and rounds have their laws at every tape is proved in memoised_proofs.py.
"""

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.mechanisms import MEMOISED, MemoisedLocalHashing, MemoisedMechanism
from hubbub.mechanisms.projective_space import points
from hubbub.randomness import SYSTEM
from tests.calibrated import memoised
from tests.core import SHIPPED, is_read
from tests.harness import divergence, divergence_limit, mean_range
from tests.memoised_laws import history_law
from tests.memoised_proofs import check_histories, check_memo, check_response, walked

UNARY = ("memoised-symmetric-unary", "memoised-optimised-unary")
RESPONSE, HASHING = "memoised-randomised-response", "memoised-local-hashing"
each_mechanism = pytest.mark.parametrize("name", MEMOISED)


def prove(mechanism: Any) -> None:
    seen = walked(mechanism)
    for check in (check_memo, check_response, check_histories):
        check(seen)


# Every threshold.


@pytest.mark.parametrize("name", UNARY)
def test_unary_encoding_for_every_pair_of_thresholds(name: str) -> None:
    for flip, permanent in product(range(4), repeat=2):
        prove(SHIPPED.of(name, 2, flip, permanent, base=2, width=2))


@pytest.mark.parametrize("k", [2, 3])
def test_randomised_response_for_every_pair_of_thresholds(k: int) -> None:
    for keep, permanent in product(range(4), repeat=2):
        prove(SHIPPED.of(RESPONSE, k, keep, permanent, base=2, width=2))


@pytest.mark.parametrize(
    ("name", "integers", "base", "width"),
    [
        ("memoised-symmetric-unary", (2, 3, 2), 2, 3),
        ("memoised-optimised-unary", (2, 2, 1), 2, 3),
        (RESPONSE, (3, 9, 11), 4, 2),
        (HASHING, (3, 50, 60, 2, 2), 4, 3),
        (HASHING, (7, 3, 3, 2, 3), 2, 2),
    ],
    ids=str,
)
def test_larger_ones(name: str, integers: tuple[int, ...], base: int, width: int) -> None:
    prove(SHIPPED.of(name, *integers, base=base, width=width))


# What is protected.


def apart(mechanism: Any, one: tuple[int, ...], other: tuple[int, ...]) -> Fraction:
    """The worst ratio of likelihoods of two histories, over all that they may send."""
    law, other_law = history_law(mechanism, one), history_law(mechanism, other)
    return max(max(p / other_law[told], other_law[told] / p) for told, p in law.items())


def partition(history: tuple[int, ...]) -> tuple[int, ...]:
    """Which rounds are about one value: for each round the first that is about its."""
    return tuple(map(history.index, history))


@pytest.mark.parametrize(
    ("name", "k", "rounds"), [*((name, 2, 3) for name in UNARY), (RESPONSE, 3, 3), (RESPONSE, 4, 2)]
)
def test_histories_of_one_partition_are_no_further_apart_than_their_rows(
    name: str, k: int, rounds: int
) -> None:
    """Those that change, and come back, in the same rounds: ε∞ for each distinct value."""
    mechanism = memoised(name, k, permanent="1", epsilon="0.9")
    histories = list(product(range(k), repeat=rounds))
    pairs = [(a, b) for a, b in combinations(histories, 2) if partition(a) == partition(b)]
    assert len(pairs) > k
    for one, other in pairs:
        assert apart(mechanism, one, other) <= mechanism.row_ratio ** len(set(one))


@pytest.mark.parametrize(
    ("name", "k"), [("memoised-symmetric-unary", 3), ("memoised-optimised-unary", 3), (RESPONSE, 8)]
)
@pytest.mark.parametrize(
    ("one", "other"),
    [((0, 0), (1, 2)), ((0, 1, 0), (0, 1, 2))],
    ids=["change-or-none", "back-or-on"],
)
def test_when_a_value_changes_and_comes_back_is_not_protected(
    name: str, k: int, one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    """Not even by all the distinct values together; (a, b, a) and (a, b, c) change at the same
    instants, and are told apart."""
    mechanism = memoised(name, k, permanent="0.5", epsilon="0.45")
    assert apart(mechanism, one, other) > mechanism.row_ratio ** len(set(other))


def test_a_change_is_told_apart_by_as_much_as_was_reckoned() -> None:
    """(a, a) against (c, d): a ratio of e^2.144, where two values' rows have e^2."""
    mechanism = memoised(RESPONSE, 16, permanent="1", epsilon="0.5")
    assert log(apart(mechanism, (0, 0), (1, 2))) == pytest.approx(2.144, abs=5e-4)


def test_with_hashing_it_is_histories_of_cells_that_are_protected() -> None:
    """Of values 0, 1 and 2, under a public hash, two may share a cell: then a change among them
    is none, and one from another value is."""
    mechanism = memoised(HASHING, 3, permanent="1", epsilon="0.9")
    assert isinstance(mechanism, MemoisedLocalHashing)
    assert apart(mechanism, (0, 0, 0), (1, 1, 1)) <= mechanism.row_ratio
    for one, other in (((0, 1), (1, 0)), ((0, 1, 0), (1, 0, 1))):
        assert apart(mechanism.chain, one, other) <= mechanism.row_ratio**2
        assert apart(mechanism, one, other) <= mechanism.row_ratio**2
    assert apart(mechanism, (0, 1), (0, 2)) > mechanism.row_ratio**2


# The papers' figures.


@pytest.mark.parametrize(("permanent", "epsilon"), [("1", "0.5"), ("2", "1"), ("4", "2")])
def test_rounds_are_as_telling_as_the_papers_say(permanent: str, epsilon: str) -> None:
    """Arcolezi et al.: p₂ of L-SUE and L-OSUE, and of L-GRR for two values.

    For more values theirs keeps more noise than ε₁ needs: it reckons with two of the k alone.
    """
    up, down = float(permanent), float(epsilon)
    symmetric = (exp((up + down) / 2) - 1) / ((exp(down / 2) + 1) * (exp(up / 2) - 1))
    others = (exp(up + down) - 1) / (exp(up + down) - 1 + exp(up) - exp(down))
    for name, p in zip(MEMOISED, (others, symmetric, others), strict=False):
        made = memoised(name, 2, permanent=permanent, epsilon=epsilon)
        integers = made.parameters
        share = integers.get("keep", (1 << 64) - integers.get("flip", 0)) / 2**64
        assert share == pytest.approx(p)


def test_the_chained_variance_is_that_of_the_issue() -> None:
    """L-OSUE, ε∞ = 2, ε₁ = 1, share 1/2: n · Var over the noise, and over the sampling too."""
    a, b = map(float, memoised("memoised-optimised-unary", 2).support)
    respondents = (a * (1 - a) + b * (1 - b)) / 2 / (a - b) ** 2
    rate = (a + b) / 2
    assert respondents == pytest.approx(4.183, abs=5e-4)
    assert rate * (1 - rate) / (a - b) ** 2 == pytest.approx(4.433, abs=5e-4)
    assert rate * (1 - rate) / (a - b) ** 2 == pytest.approx(respondents + 1 / 4)


def test_naive_errors_of_thirty_rounds_are_three_times_too_small() -> None:
    """Rounds of the same devices do not average: the row stays."""
    mechanism = memoised("memoised-optimised-unary", 2)
    variances, covariances = zip(
        *(
            (x * (1 - x), both - x**2)
            for x, both in zip(mechanism.support, mechanism.carried, strict=True)
        ),
        strict=True,
    )
    naive = sum(variances) / 30
    true = naive + sum(covariances) * Fraction(29, 30)
    assert sqrt(true / naive) == pytest.approx(3.1, abs=0.05)


# The list of hashes.


@pytest.mark.parametrize(("cells", "k", "dimensions"), [(2, 3, 2), (2, 4, 3), (3, 4, 2), (3, 5, 3)])
def test_the_list_of_hashes_is_as_short_as_the_domain_allows(
    cells: int, k: int, dimensions: int
) -> None:
    mechanism = memoised(HASHING, k, cells=cells)
    assert isinstance(mechanism, MemoisedLocalHashing)
    assert (mechanism.dimensions, mechanism.seeds) == (dimensions, cells**dimensions)
    assert points(cells, dimensions - 1) < k <= points(cells, dimensions)


def falls(mechanism: MemoisedLocalHashing) -> NDArray[np.int64]:
    """Where the values fall: shape (seeds, k)."""
    seeds, values = range(mechanism.seeds), range(mechanism.k)
    return np.array([[mechanism.cell(seed, value) for value in values] for seed in seeds])


def crowd_estimates(
    mechanism: MemoisedLocalHashing, table: NDArray[np.int64], devices: int
) -> NDArray[np.float64]:
    """Estimated shares from that many devices of value 0, hashed by this table."""
    a, b = map(float, mechanism.chain.support)
    told = np.where(np.arange(mechanism.cells) == table[:, :1], a, b) / len(table)
    counts = np.random.default_rng(7).multinomial(devices, told.ravel()).reshape(told.shape)
    supports = np.take_along_axis(counts, table, axis=1).sum(axis=0)
    p, q = map(float, mechanism.support)
    return np.asarray((supports / devices - q) / (p - q))


def test_more_devices_mend_every_error_of_hashing() -> None:
    """A hundred million devices: nothing is left that would not fall with their number.

    A list of 64 hashes drawn by chance has a floor: values collide under some more of them than
    under others, and no crowd mends that.
    """
    devices = 100_000_000
    mechanism = memoised(HASHING, 50, cells=2)
    assert isinstance(mechanism, MemoisedLocalHashing)
    truth = np.zeros(mechanism.k)
    truth[0] = 1
    (p, q), spread = map(float, mechanism.support), float(mechanism.support.p - mechanism.support.q)
    rates = np.where(truth, p, q)
    allowed = mean_range(
        truth, rates * (1 - rates) / spread**2, 1 / spread, devices, figures=mechanism.k
    )
    by_chance = np.random.default_rng(8).integers(0, 2, (mechanism.seeds, mechanism.k))

    assert allowed.holds(crowd_estimates(mechanism, falls(mechanism), devices))
    assert not allowed.holds(crowd_estimates(mechanism, by_chance, devices))


# The shipped samplers, on the system's randomness.


@each_mechanism
@pytest.mark.parametrize("history", [(0, 0), (0, 1)], ids=["unchanged", "changed"])
def test_two_rounds_of_many_devices(name: str, history: tuple[int, ...]) -> None:
    mechanism = memoised(name, 3 if name == HASHING else 2)
    devices = 5_000
    seen = Counter[tuple[bytes, ...]]()
    for _ in range(devices):
        memo = mechanism.memorise(SYSTEM)
        seen[tuple(mechanism.respond(memo, value, SYSTEM) for value in history)] += 1
    law = history_law(mechanism, history)
    assert seen.keys() <= law.keys()

    counts = np.array([seen[told] for told in law])

    assert divergence(counts, np.array([float(p) for p in law.values()])) <= divergence_limit(
        len(law)
    )


# Form.


@pytest.mark.parametrize(
    ("mechanism", "payload", "memo"),
    [
        *((memoised(name, 9), 2, 18) for name in UNARY),
        *((memoised(name, 300), 38, 11_400) for name in UNARY),
        (memoised(RESPONSE, 256), 1, 256),
        (memoised(RESPONSE, 257), 2, 514),
        (memoised(HASHING, 127, cells=2), 1, 3),
        (memoised(HASHING, 128, cells=2), 2, 3),
        (memoised(HASHING, 900, cells=31), 3, 33),
    ],
    ids=str,
)
def test_sizes(mechanism: MemoisedMechanism, payload: int, memo: int) -> None:
    assert (mechanism.payload_size, mechanism.memo_size) == (payload, memo)
    drawn = mechanism.memorise(SYSTEM)
    assert len(drawn) == memo
    for value in (0, mechanism.k - 1):
        for told in (mechanism.respond(drawn, value, SYSTEM), mechanism.randomise(value, SYSTEM)):
            assert len(told) == payload
            assert set(mechanism.supported(told)) <= set(range(mechanism.k))
    for length in (0, payload - 1, payload + 1):
        assert not is_read(mechanism, bytes(length))


def test_rows_and_parameters() -> None:
    integers = {
        "memoised-symmetric-unary": ((4, 5, 7), ["flip", "permanent_flip"], 4),
        "memoised-optimised-unary": ((4, 5, 7), ["flip", "permanent_raised"], 4),
        RESPONSE: ((4, 5, 7), ["keep", "permanent_keep"], 4),
        HASHING: ((4, 5, 7, 3, 2), ["keep", "permanent_keep", "cells", "dimensions"], 3),
    }
    assert integers.keys() == MEMOISED.keys()
    for name, ((k, *rest), parameters, rows) in integers.items():
        mechanism = SHIPPED.of(name, k, *rest)
        assert mechanism.name == name
        assert mechanism.parameters == dict(zip(parameters, rest, strict=True))
        assert mechanism.rows == rows


@each_mechanism
def test_rounds_tell_what_epsilon_allows_and_less_than_a_row(name: str) -> None:
    for epsilon in ("0.1", "1.9", "1.999999"):
        mechanism = memoised(name, 3, epsilon=epsilon)
        assert 1 < mechanism.ratio < mechanism.row_ratio
        assert exp(float(epsilon)) == pytest.approx(float(mechanism.ratio))
