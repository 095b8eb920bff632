"""A simulated crowd has the law of the SDK's samplers.

Exactly, for small domains: both sides are walked through all their draws at a resolution of 16,
the crowd with a device for each. At the size they are shipped in, by the shared harness.
"""

from collections import Counter
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MEMOISED,
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
    subset_selection,
)
from hubbub.mechanisms.coin import Resolution
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub_aggregator.crowd import SeededChance, Values, sampler_for
from hubbub_aggregator.crowd.chance import Draws
from hubbub_aggregator.oracles import Payloads, oracle_for
from tests.calibrated import calibrated, memoised
from tests.core import SHIPPED
from tests.harness import divergence, divergence_limit, proportion_range
from tests.laws import pair_chance, resolution_of, specified_law
from tests.tapes import Law, TapeSource, law_of, walk

SMALL = Resolution(4, 2)
ONE = Epsilon.parse("1")
SEED = 20_261_128


class Dry:
    """A chance that notes what one device asks for."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    def below(self, limit: int, *shape: int) -> Draws:
        self.limits += [limit] * prod(shape[1:])
        return np.zeros(shape, np.uint64)


class EveryTape:
    """A chance that gives each device another one of all tapes."""

    def __init__(self, limits: list[int]) -> None:
        self.tapes = np.arange(prod(limits), dtype=np.uint64)
        self._limits = limits
        self._weight = prod(limits)

    def below(self, limit: int, *shape: int) -> Draws:
        columns = [self._next(limit) for _ in range(prod(shape[1:]))]
        return np.stack(columns, axis=-1).reshape(shape)

    def _next(self, limit: int) -> Draws:
        assert limit == self._limits.pop(0)
        self._weight //= limit
        return self.tapes // np.uint64(self._weight) % np.uint64(limit)


def crowd_law(mechanism: Mechanism, value: int) -> Law:
    """How often every payload comes when each tape is one device's."""
    sampler, dry = sampler_for(mechanism), Dry()
    sampler.randomise(np.full(1, value, np.uint64), dry)
    chance = EveryTape(dry.limits)
    payloads = sampler.randomise(np.full(len(chance.tapes), value, np.uint64), chance)
    seen = Counter(map(bytes, payloads))
    return {payload: Fraction(count, len(payloads)) for payload, count in seen.items()}


def device_law(mechanism: Mechanism, value: int) -> Law:
    """The law of the SDK's own sampler."""

    def sample(source: TapeSource) -> bytes:
        return mechanism.randomise(value, source)

    law: Law = law_of(list(walk(resolution_of(mechanism).base, sample)))
    return law


@pytest.mark.parametrize(
    "mechanism",
    [
        *(RandomisedResponse.calibrate(k, ONE, resolution=SMALL) for k in (2, 3, 4)),
        *(SymmetricUnary.calibrate(k, ONE, resolution=SMALL) for k in (2, 3)),
        *(OptimisedUnary.calibrate(k, ONE, resolution=SMALL) for k in (2, 3)),
        *(
            SubsetSelection.calibrate(k, ONE, size, resolution=SMALL)
            for k in (2, 3, 4)
            for size in range(1, k)
        ),
        *(
            ProjectiveGeometry.calibrate(k, ONE, field, dimensions, resolution=SMALL)
            for k, field, dimensions in ((3, 2, 2), (4, 3, 2), (6, 5, 2), (7, 2, 3))
        ),
        *(
            LocalHashing.calibrate(k, ONE, buckets, prime, resolution=SMALL)
            for k, buckets, prime in ((2, 2, 3), (3, 3, 3), (4, 2, 5))
        ),
        *(mechanism for name in MEMOISED for mechanism in SHIPPED.small(name)),
    ],
    ids=str,
)
def test_the_law_is_exactly_the_devices(mechanism: Mechanism) -> None:
    for value in range(mechanism.k):
        assert crowd_law(mechanism, value) == device_law(mechanism, value)


@pytest.mark.parametrize(("k", "size"), [(3, 1), (3, 2), (4, 2)])
def test_so_is_that_of_sets_sent_as_bit_vectors(
    monkeypatch: pytest.MonkeyPatch, k: int, size: int
) -> None:
    monkeypatch.setattr(subset_selection, "MOST_RANKS", 0)
    test_the_law_is_exactly_the_devices(SubsetSelection.calibrate(k, ONE, size, resolution=SMALL))


# -- As shipped -----------------------------------------------------------------------------


def made(mechanism: Mechanism, value: int, n: int) -> Payloads:
    """Reports of n devices that have the same value."""
    return sampler_for(mechanism).randomise(np.full(n, value, np.uint64), SeededChance(SEED))


@pytest.mark.parametrize(
    "mechanism",
    [
        calibrated("randomised-response", 300, "4"),
        calibrated("symmetric-unary", 6, "1"),
        calibrated("optimised-unary", 6, "1"),
        calibrated("subset-selection", 10, "1"),
        ProjectiveGeometry.calibrate(31, ONE, 5, 3),
        LocalHashing.calibrate(5, ONE, 3, 5),
        memoised("memoised-symmetric-unary", 6),
        memoised("memoised-optimised-unary", 6),
        memoised("memoised-randomised-response", 40, permanent="5", epsilon="4"),
        memoised("memoised-local-hashing", 13, cells=3),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_whole_payloads_come_as_often_as_they_should(mechanism: Mechanism) -> None:
    for value in (0, 3, mechanism.k - 1):
        law = specified_law(mechanism, value)
        seen = Counter(map(bytes, made(mechanism, value, 50_000)))
        counts = np.array([seen.pop(payload, 0) for payload in law])
        assert not seen
        chances = np.array([float(p) for p in law.values()])
        assert divergence(counts, chances) <= divergence_limit(len(law))


@pytest.fixture(
    params=[
        calibrated("randomised-response", 64, "2"),
        calibrated("symmetric-unary", 64, "2"),
        calibrated("optimised-unary", 64, "2"),
        calibrated("subset-selection", 64, "2"),  # as a rank
        calibrated("subset-selection", 128, "0.5"),  # as a bit vector
        calibrated("projective-geometry", 64, "2"),
        calibrated("local-hashing", 64, "2"),
        *(memoised(name, 24, permanent="4", epsilon="2", cells=3) for name in MEMOISED),
    ],
    ids=lambda mechanism: f"{mechanism.name}-{mechanism.k}",
)
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    found: Mechanism = request.param
    return found


def supports(mechanism: Mechanism, payloads: Payloads) -> NDArray[np.bool_]:
    """What each payload supports, by the SDK's own reading: shape (n, k)."""
    found = np.zeros((len(payloads), mechanism.k), np.bool_)
    for row, payload in zip(found, payloads, strict=True):
        row[mechanism.supported(payload.tobytes())] = True
    return found


def test_values_are_supported_as_often_as_they_should_one_by_one_and_in_pairs(
    mechanism: Mechanism,
) -> None:
    n, own = 3_000, 5
    p, q = map(float, mechanism.support)
    found = supports(mechanism, made(mechanism, own, n)).astype(np.int64)
    together = found.T @ found
    pairs = [(u, w) for u in range(mechanism.k) for w in range(u)]
    for value in range(mechanism.k):
        chance = p if value == own else q
        allowed = proportion_range(chance, n, figures=mechanism.k)
        assert allowed.holds(together[value, value])
    for u, w in pairs[:200]:
        chance = float(pair_chance(mechanism, own, u, w))
        assert proportion_range(chance, n, figures=200).holds(together[u, w])


@pytest.mark.parametrize("k", [2, 9, 257, 1_000])
def test_every_payload_is_canonical_and_its_devices_own(mechanism: Mechanism, k: int) -> None:
    """Whatever the values are, and at every size of a payload."""
    if mechanism.name in MEMOISED:
        mechanism = memoised(mechanism.name, k, cells=2 if k > 2 else 3)
    else:
        mechanism = calibrated(mechanism.name, k, "1")
    n = 4_000
    values: Values = np.arange(n, dtype=np.uint64) * np.uint64(7) % np.uint64(k)
    payloads = sampler_for(mechanism).randomise(values, SeededChance(SEED))

    assert payloads.dtype == np.uint8
    assert payloads.shape == (n, mechanism.payload_size)
    assert oracle_for(mechanism).canonical(payloads).all()
    own = [
        value in mechanism.supported(payload.tobytes())
        for value, payload in zip(values[:100].tolist(), payloads, strict=False)
    ]
    assert proportion_range(float(mechanism.support.p), 100, figures=44).holds(sum(own))


def test_texts_are_hashed_modulo_a_large_prime() -> None:
    mechanism = calibrated("local-hashing", OPEN_PRIME, "2")
    assert isinstance(mechanism, LocalHashing)
    n, own, other = 4_000, OPEN_PRIME - 1, 12_345_678_901
    reports = [mechanism.read(payload.tobytes()) for payload in made(mechanism, own, n)]
    for value, chance in ((own, mechanism.support.p), (other, mechanism.support.q)):
        count = sum(mechanism.bucket(seed, value) == bucket for seed, bucket in reports)
        assert proportion_range(float(chance), n, figures=2).holds(count)


def test_a_seed_gives_the_same_crowd_and_none_another() -> None:
    mechanism = calibrated("optimised-unary", 64, "1")
    one, again = made(mechanism, 0, 10), made(mechanism, 0, 10)
    assert (one == again).all()
    values = np.zeros(10, np.uint64)
    others = [sampler_for(mechanism).randomise(values, SeededChance()) for _ in range(2)]
    assert (others[0] != others[1]).any()


@pytest.mark.parametrize("limit", [1, 2, 65_537, OPEN_PRIME, 1 << 64])
def test_draws_are_uniform_up_to_their_limit(limit: int) -> None:
    draws = SeededChance(SEED).below(limit, 500, 40)
    assert draws.dtype == np.uint64
    assert draws.shape == (500, 40)
    cut = limit // 2
    below = int((draws < np.uint64(cut)).sum())
    assert proportion_range(cut / limit, draws.size, figures=5).holds(below)
    assert int(draws.max()) <= limit - 1
