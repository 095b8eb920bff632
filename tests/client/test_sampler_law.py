"""The law of the shipped samplers, enumerated over every tape of random digits."""

import pytest

from hubbub import exact, mechanisms, randomness
from hubbub.exact import Certificate, Epsilon
from hubbub.mechanisms import MECHANISMS, OptimisedUnary, RandomisedResponse, SymmetricUnary
from hubbub.mechanisms.coin import Resolution
from tests.proofs import CHECKS, PROOFS, Core, check_below, check_law, walks

SHIPPED = Core(exact, randomness, mechanisms)

# Unary encoding's own bit is fair, which needs an even base.
UNARY_RESOLUTIONS = [Resolution(2, 3), Resolution(4, 2)]
RESOLUTIONS = [*UNARY_RESOLUTIONS, Resolution(3, 2), Resolution(4, 3)]


@pytest.mark.parametrize("proof", PROOFS)
def test_the_shipped_core_passes_every_proof(proof: str) -> None:
    PROOFS[proof](SHIPPED)


@pytest.mark.parametrize("resolution", RESOLUTIONS, ids=str)
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_randomised_response_for_every_threshold(k: int, resolution: Resolution) -> None:
    """Useful or not: the law holds for all of them."""
    for keep in range(resolution.one):
        mechanism = RandomisedResponse(k, keep, resolution)
        check_law(mechanism, walks(mechanism))


@pytest.mark.parametrize("resolution", UNARY_RESOLUTIONS, ids=str)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", [SymmetricUnary, OptimisedUnary], ids=lambda kind: kind.__name__)
def test_unary_encoding_for_every_threshold(
    kind: type[SymmetricUnary | OptimisedUnary], k: int, resolution: Resolution
) -> None:
    for threshold in range(resolution.one):
        mechanism = kind(k, threshold, resolution)
        check_law(mechanism, walks(mechanism))


@pytest.mark.parametrize("epsilon", ["0.5", "1", "ln 3", "2"])
@pytest.mark.parametrize(
    ("name", "k", "resolution"),
    [
        *(("randomised-response", k, Resolution(4, 3)) for k in (2, 3, 4, 9)),
        *(("symmetric-unary", k, Resolution(4, 3)) for k in (2, 3)),
        *(("optimised-unary", k, Resolution(4, 3)) for k in (2, 3)),
        ("symmetric-unary", 4, Resolution(2, 5)),
        ("symmetric-unary", 3, Resolution(3, 3)),
        ("optimised-unary", 4, Resolution(2, 5)),
    ],
    ids=str,
)
def test_everything_about_a_calibrated_mechanism(
    name: str, k: int, resolution: Resolution, epsilon: str
) -> None:
    declared = Epsilon.parse(epsilon)
    mechanism = MECHANISMS[name].calibrate(k, declared, resolution)
    walked = walks(mechanism)
    for check in CHECKS.values():
        check(mechanism, walked)
    assert Certificate(declared, mechanism.ratio).holds


@pytest.mark.parametrize("n", [*range(1, 65), 255, 256])
def test_a_uniform_integer_is_uniform_whenever_it_is_kept(n: int) -> None:
    check_below(randomness.uniform_below, 4, n)
