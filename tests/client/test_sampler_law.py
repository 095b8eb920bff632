"""The law of the shipped samplers, enumerated over every tape of random digits."""

from contextlib import nullcontext

import pytest

from hubbub import randomness
from hubbub.exact import Certificate, Epsilon
from hubbub.mechanisms import (
    MECHANISMS,
    LocalHashing,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.mechanisms.coin import Resolution
from tests.core import SHIPPED
from tests.memoised_proofs import MEMOISED_PROOFS
from tests.proofs import CHECKS, PROOFS, check_below, check_consumption, check_law, walks

# Unary encoding's own bit is fair, which needs an even base.
UNARY = [(2, Resolution(2, 3)), (2, Resolution(4, 2)), (3, Resolution(2, 3)), (4, Resolution(2, 2))]
RESOLUTIONS = [Resolution(2, 3), Resolution(4, 2), Resolution(3, 2), Resolution(4, 3)]


@pytest.mark.parametrize("proof", PROOFS | MEMOISED_PROOFS)
def test_the_shipped_core_passes_every_proof(proof: str) -> None:
    (PROOFS | MEMOISED_PROOFS)[proof](SHIPPED)


@pytest.mark.parametrize("resolution", RESOLUTIONS, ids=str)
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_randomised_response_for_every_threshold(k: int, resolution: Resolution) -> None:
    """Useful or not: the law holds for all of them."""
    for keep in range(resolution.one):
        mechanism = RandomisedResponse(k, keep, resolution)
        check_law(mechanism, walks(mechanism))


@pytest.mark.parametrize(("k", "resolution"), UNARY, ids=str)
@pytest.mark.parametrize("kind", [SymmetricUnary, OptimisedUnary], ids=lambda kind: kind.__name__)
def test_unary_encoding_for_every_threshold(
    kind: type[SymmetricUnary | OptimisedUnary], k: int, resolution: Resolution
) -> None:
    for threshold in range(resolution.one):
        mechanism = kind(k, threshold, resolution)
        walked = walks(mechanism)
        check_law(mechanism, walked)
        check_consumption(mechanism, walked)


@pytest.mark.parametrize("ranked", [True, False], ids=["ranks", "bit-vectors"])
@pytest.mark.parametrize(("k", "size"), [(3, 1), (3, 2), (4, 3), (5, 1), (5, 2), (5, 3), (5, 4)])
def test_subset_selection_for_every_threshold(k: int, size: int, *, ranked: bool) -> None:
    with nullcontext() if ranked else SHIPPED.bit_vectors():
        for included in range(4):
            mechanism = SubsetSelection(k, included, size, Resolution(2, 2))
            walked = walks(mechanism)
            check_law(mechanism, walked)
            check_consumption(mechanism, walked)


@pytest.mark.parametrize(("field", "dimensions"), [(2, 3), (3, 2), (3, 3), (5, 2), (2, 4)])
def test_projective_geometry_for_every_threshold(field: int, dimensions: int) -> None:
    for within in range(8):
        mechanism = ProjectiveGeometry(4, within, field, dimensions, Resolution(2, 3))
        check_law(mechanism, walks(mechanism))


@pytest.mark.parametrize(("buckets", "prime"), [(2, 2), (2, 3), (3, 3), (2, 5)])
def test_local_hashing_for_every_threshold(buckets: int, prime: int) -> None:
    for keep in range(4):
        mechanism = LocalHashing(prime, keep, buckets, prime, Resolution(2, 2))
        check_law(mechanism, walks(mechanism))


@pytest.mark.parametrize("epsilon", ["0.5", "1", "ln 3", "2"])
@pytest.mark.parametrize(
    ("name", "k", "parameters", "resolution"),
    [
        *(("randomised-response", k, (), Resolution(4, 3)) for k in (2, 3, 4, 9)),
        *((name, 2, (), Resolution(4, 3)) for name in ("symmetric-unary", "optimised-unary")),
        *((name, 2, (), Resolution(2, 5)) for name in ("symmetric-unary", "optimised-unary")),
        ("symmetric-unary", 3, (), Resolution(3, 2)),
        ("optimised-unary", 3, (), Resolution(2, 4)),
        *(("subset-selection", 3, (size,), Resolution(4, 3)) for size in (1, 2)),
        *(("subset-selection", 4, (size,), Resolution(3, 3)) for size in (1, 2, 3)),
        *(("subset-selection", 5, (size,), Resolution(2, 4)) for size in (2, 3)),
        ("projective-geometry", 7, (2, 3), Resolution(4, 3)),
        ("projective-geometry", 4, (3, 3), Resolution(3, 3)),
        ("local-hashing", 3, (2, 3), Resolution(4, 3)),
        ("local-hashing", 3, (3, 5), Resolution(2, 3)),
    ],
    ids=str,
)
def test_everything_about_a_calibrated_mechanism(
    name: str, k: int, parameters: tuple[int, ...], resolution: Resolution, epsilon: str
) -> None:
    declared = Epsilon.parse(epsilon)
    mechanism = MECHANISMS[name].calibrate(k, declared, *parameters, resolution=resolution)
    walked = walks(mechanism)
    for check in CHECKS.values():
        check(mechanism, walked)
    assert Certificate(declared, mechanism.ratio).holds


@pytest.mark.parametrize("n", [*range(1, 65), 255, 256])
def test_a_uniform_integer_is_uniform_whenever_it_is_kept(n: int) -> None:
    check_below(randomness.uniform_below, 4, n)


def test_a_uniform_integer_of_the_systems_digits_is_uniform_whenever_it_is_kept() -> None:
    check_below(randomness.uniform_below, randomness.SYSTEM.base, 7)
