"""What each mechanism promises beside its law: sizes, refusals, draws, the papers' variance."""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp
from typing import Any, Literal

import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MECHANISMS,
    MEMOISED,
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.mechanisms.local_hashing import LISTED_PRIME, OPEN_PRIME
from hubbub.mechanisms.primes import is_prime
from hubbub.randomness import SYSTEM
from tests.calibrated import calibrated, memoised
from tests.core import is_read

ONE = 1 << 64
each_mechanism = pytest.mark.parametrize("name", MECHANISMS)


@pytest.mark.parametrize(
    ("name", "k", "size"),
    [
        *(("randomised-response", k, 1) for k in (2, 255, 256)),
        *(("randomised-response", k, 2) for k in (257, 65_536)),
        *((name, k, 1) for name in ("symmetric-unary", "optimised-unary") for k in (2, 8)),
        *((name, k, 2) for name in ("symmetric-unary", "optimised-unary") for k in (9, 16)),
        *((name, 65_536, 8_192) for name in ("symmetric-unary", "optimised-unary")),
        *(("subset-selection", k, size) for k, size in ((2, 1), (16, 2), (32, 3), (128, 16))),
        ("subset-selection", 65_536, 8_192),
        *(("projective-geometry", k, size) for k, size in ((2, 1), (128, 2), (65_536, 3))),
        *(("local-hashing", k, 7) for k in (2, 65_536)),
    ],
)
def test_every_payload_has_the_size_of_its_metric(name: str, k: int, size: int) -> None:
    mechanism = calibrated(name, k, "1")
    assert mechanism.payload_size == size
    for value in (0, k // 2, k - 1):
        payload = mechanism.randomise(value, SYSTEM)
        assert len(payload) == size
        assert set(mechanism.supported(payload)) <= set(range(k))


@pytest.mark.parametrize(
    ("mechanism", "size"),
    [
        *((SubsetSelection(67, 0, size), 8) for size in (32, 33, 34)),
        *((SubsetSelection(68, 0, size), 9) for size in (33, 34, 35)),
        # C(65,536, 4) sets have ranks of 8 bytes, C(65,536, 5) have not; nor has a set of more
        # than 64 members, however many there are.
        (SubsetSelection(65_536, 0, 1), 2),
        (SubsetSelection(65_536, 0, 4), 8),
        *((SubsetSelection(65_536, 0, size), 8_192) for size in (5, 32_768, 65_532, 65_535)),
        *(
            (SubsetSelection(66, 0, size), size_in_bytes)
            for size, size_in_bytes in ((64, 2), (65, 9))
        ),
        *((ProjectiveGeometry(2, 0, 2, t), size) for t, size in ((8, 1), (9, 2), (18, 3))),
        (LocalHashing(2, 0, 2, 2), 1),
        (LocalHashing(2, 0, 4_096, LISTED_PRIME), 8),
        *((LocalHashing(2, 0, g, OPEN_PRIME), size) for g, size in ((512, 24), (513, 25))),
    ],
    ids=str,
)
def test_a_payload_is_as_short_as_its_reports_allow(mechanism: Mechanism, size: int) -> None:
    assert mechanism.payload_size == size


@pytest.mark.parametrize(
    ("mechanism", "byte_order", "largest"),
    [
        (RandomisedResponse(300, ONE // 2), "big", 299),
        (SymmetricUnary(9, ONE // 4), "little", 511),
        (SubsetSelection(12, ONE // 2, 4), "big", 494),
        (ProjectiveGeometry(300, ONE // 2, 17, 3), "big", 306),
        (LocalHashing(5, ONE // 2, 3, 5), "big", 374),
    ],
)
def test_of_all_payloads_of_two_bytes_only_those_that_can_be_made_are_read(
    mechanism: Mechanism, byte_order: Literal["big", "little"], largest: int
) -> None:
    payloads = (number.to_bytes(2, byte_order) for number in range(65_536))
    read = [number for number, payload in enumerate(payloads) if is_read(mechanism, payload)]
    assert read == [*range(largest + 1)]


@each_mechanism
@pytest.mark.parametrize("k", [2, 8, 9, 300])
def test_a_payload_of_another_length_is_refused(name: str, k: int) -> None:
    mechanism = calibrated(name, k, "1")
    size = mechanism.payload_size
    for length in {0, size - 1, size + 1, 2 * size, 10_000}:
        with pytest.raises(ValueError, match=r"^not "):
            mechanism.supported(bytes(length))


class Replay:
    """The same digits for every caller, and what was asked of them."""

    base = 256

    def __init__(self, seed: int) -> None:
        self.asked: list[tuple[str, int]] = []
        self._state = seed

    def digits(self, count: int) -> bytes:
        self.asked.append(("digits", count))
        return bytes(self._next() for _ in range(count))

    def below(self, n: int) -> int:
        self.asked.append(("below", n))
        return self._next() % n

    def _next(self) -> int:
        self._state = (self._state * 6_364_136_223_846_793_005 + 1) % ONE
        return self._state >> 56


@each_mechanism
def test_what_is_drawn_does_not_depend_on_the_value(name: str) -> None:
    """At the shipped resolution, on three hundred tapes."""
    mechanism = calibrated(name, 300, "1")
    for seed in range(300):
        tapes = [Replay(seed) for _ in range(3)]
        for value, tape in zip((0, 150, 299), tapes, strict=True):
            mechanism.randomise(value, tape)
        assert tapes[0].asked == tapes[1].asked == tapes[2].asked


@pytest.mark.parametrize("name", MEMOISED)
def test_what_a_memoised_round_draws_does_not_depend_on_the_value_or_its_row(name: str) -> None:
    mechanism = memoised(name, 300)
    memos = [mechanism.memorise(SYSTEM) for _ in range(2)]
    for seed in range(100):
        tapes = {(memo, value): Replay(seed) for memo, value in product(memos, (0, 150, 299))}
        for (memo, value), tape in tapes.items():
            mechanism.respond(memo, value, tape)
        assert len({tuple(tape.asked) for tape in tapes.values()}) == 1


@pytest.mark.parametrize(
    "mechanism",
    [
        *(RandomisedResponse(2, keep) for keep in (0, 1, ONE // 2)),
        *(RandomisedResponse(4, keep) for keep in (0, 1, ONE // 4)),
        *(
            kind(4, t)
            for kind in (SymmetricUnary, OptimisedUnary)
            for t in (0, ONE // 2, ONE // 2 + 1, ONE - 1)
        ),
        *(SubsetSelection(4, included, 2) for included in (0, 1, ONE // 2, ONE)),
        *(ProjectiveGeometry(4, within, 3, 2) for within in (0, 1, ONE // 4, ONE)),
        *(LocalHashing(4, keep, 4, LISTED_PRIME) for keep in (0, 1, ONE // 4, ONE)),
    ],
    ids=str,
)
def test_thresholds_that_tell_nothing_or_everything_have_no_ratio(mechanism: Any) -> None:
    with pytest.raises(ValueError, match="nothing or everything"):
        _ = mechanism.ratio


@pytest.mark.parametrize(
    ("mechanism", "ratio"),
    [
        (RandomisedResponse(2, ONE // 4 * 3), Fraction(3)),
        (RandomisedResponse(4, ONE // 2), Fraction(3)),
        (SymmetricUnary(4, ONE // 4), Fraction(9)),
        (OptimisedUnary(4, ONE // 4), Fraction(3)),
        (SubsetSelection(4, ONE // 4 * 3, 2), Fraction(3)),
        (SubsetSelection(8, ONE // 2, 2), Fraction(3)),
        (ProjectiveGeometry(4, ONE // 2, 3, 2), Fraction(3)),
        (ProjectiveGeometry(4, ONE // 4 * 3, 2, 3), Fraction(4)),
        (LocalHashing(4, ONE // 2, 4, LISTED_PRIME), Fraction(3)),
    ],
    ids=str,
)
def test_the_ratio_of_round_thresholds(mechanism: Any, ratio: Fraction) -> None:
    assert mechanism.ratio == ratio


@pytest.mark.parametrize("k", [2, 4, 16, 128, 1_024])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4", "8"])
def test_the_variance_is_that_of_the_papers(k: int, epsilon: str) -> None:
    """n · Var at share 0: Wang et al. (2017), equations 9 (GRR), 10 (SUE) and 11 (OUE)."""
    e = exp(float(epsilon))
    root = exp(float(epsilon) / 2)
    papers = {
        "randomised-response": (k - 2 + e) / (e - 1) ** 2,
        "symmetric-unary": root / (root - 1) ** 2,
        "optimised-unary": 4 * e / (e - 1) ** 2,
    }
    for name, variance in papers.items():
        assert float(calibrated(name, k, epsilon).support.variance) == pytest.approx(variance)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
def test_the_support_is_that_of_the_papers(epsilon: str) -> None:
    """Ye and Barg (2018), Feldman et al. (2022), Wang et al. (2017): p* and q*."""
    declared, e = Epsilon.parse(epsilon), exp(float(epsilon))
    for k, size in ((4, 1), (16, 4), (128, 34), (128, 3)):
        total = size * e + k - size
        p, q = SubsetSelection.calibrate(k, declared, size).support
        assert float(p) == pytest.approx(size * e / total)
        others = size * e * (size - 1) + (k - size) * size
        assert float(q) == pytest.approx(others / ((k - 1) * total))
    for field, dimensions in ((3, 3), (2, 7), (5, 4), (53, 2)):
        cells, c, i = ((field ** (dimensions - j) - 1) // (field - 1) for j in range(3))
        p, q = ProjectiveGeometry.calibrate(4, declared, field, dimensions).support
        total = c * e + cells - c
        assert float(p) == pytest.approx(c * e / total)
        assert float(q) == pytest.approx(((e - 1) * i + c) / total)
    for buckets in (2, 4, 56):
        p, q = LocalHashing.calibrate(4, declared, buckets, LISTED_PRIME).support
        assert float(p) == pytest.approx(e / (e + buckets - 1))
        # The buckets are not quite equal, but nearly.
        assert q != Fraction(1, buckets)
        assert float(q) == pytest.approx(1 / buckets, rel=1e-6)


@pytest.mark.parametrize("prime", [3, 5, 7, 65_537])
@pytest.mark.parametrize("buckets", [2, 3])
def test_the_collision_probability_is_counted(buckets: int, prime: int) -> None:
    sizes = Counter(hashed * buckets // prime for hashed in range(prime))
    mechanism = LocalHashing(2, 0, buckets, prime)
    for values in (2, 3):
        alike = sum(Fraction(size, prime) ** values for size in sizes.values())
        assert mechanism.collision(values) == alike


def test_primes() -> None:
    sieve = {n for n in range(2, 2_000) if all(n % d for d in range(2, n))}
    assert {n for n in range(-2, 2_000) if is_prime(n)} == sieve
    # Fermat's, the one before, and the square of the largest prime below 2^9.
    assert [is_prime(n) for n in (65_537, 65_521, 65_535, 509**2)] == [True, True, False, False]


def test_mechanisms_are_values() -> None:
    assert calibrated("optimised-unary", 4, "1") == calibrated("optimised-unary", 4, "1")
    assert len({calibrated(name, k, "1") for name, k in product(MECHANISMS, (4, 4, 5))}) == 12
    with pytest.raises(AttributeError):
        calibrated("optimised-unary", 4, "1").k = 5  # type: ignore[misc]


def test_parameters_bear_the_contract_s_names() -> None:
    assert RandomisedResponse(4, 7).parameters == {"keep": 7}
    assert SymmetricUnary(4, 7).parameters == {"flip": 7}
    assert OptimisedUnary(4, 7).parameters == {"raised": 7}
    assert SubsetSelection(4, 7, 2).parameters == {"included": 7, "size": 2}
    geometry = {"within": 7, "field": 3, "dimensions": 2}
    assert ProjectiveGeometry(4, 7, 3, 2).parameters == geometry
    assert LocalHashing(4, 7, 3, 5).parameters == {"keep": 7, "buckets": 3, "prime": 5}
