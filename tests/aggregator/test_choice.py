"""The choice before signing: really the best, within the limits, and explained."""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import sqrt

import pytest

from hubbub.exact import Epsilon
from hubbub.limits import MAX_VALUES
from hubbub.mechanisms import MECHANISMS, Mechanism
from hubbub.mechanisms.local_hashing import LISTED_PRIME, OPEN_PRIME
from hubbub.mechanisms.primes import is_prime
from hubbub.mechanisms.projective_space import points
from hubbub_aggregator.planning.choice import (
    ANY,
    Aim,
    NothingFits,
    best,
    explain,
    least_variance,
    most_accurate,
    ranked,
    size_of,
    variance_at,
)
from tools import accuracy_table

EPSILONS = ("0.000000001", "0.5", "ln 3", "4")


def every_choice(name: str, k: int) -> Iterator[tuple[int, ...]]:
    """Parameters that a contract may hold, far beyond those that are likely to be best."""
    match name:
        case "subset-selection":
            yield from ((size,) for size in range(1, k))
        case "projective-geometry":
            yield from (
                (field, dimensions)
                for field in filter(is_prime, range(2, 60))
                for dimensions in range(2, 7)
                if k <= points(field, dimensions) <= 20_000
            )
        case "local-hashing":
            yield from ((buckets, LISTED_PRIME) for buckets in range(2, 120))
        case _:
            yield ()


@cache
def every_mechanism(name: str, k: int, epsilon: str) -> list[Mechanism]:
    declared = Epsilon.parse(epsilon)
    return [
        MECHANISMS[name].calibrate(k, declared, *parameters) for parameters in every_choice(name, k)
    ]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_parameters_are_the_best_there_are(name: str, epsilon: str) -> None:
    for k in (2, 5, 30):
        for share in (0, 0.1, 1):
            # Exactly, from the integers of a contract.
            least = min(variance_at(one, share) for one in every_mechanism(name, k, epsilon))
            found = variance_at(best(name, k, Epsilon.parse(epsilon), Aim(share)), share)
            assert found == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("limit", [1, 2, 7, 8, 100])
def test_no_payload_is_larger_than_allowed_nor_a_better_one_left_out(limit: int) -> None:
    declared, aim = Epsilon.parse("1"), Aim(max_bytes=limit)
    for name in MECHANISMS:
        for k in (3, 30, 150):
            fitting = [m for m in every_mechanism(name, k, "1") if m.payload_size <= limit]
            if not fitting:
                with pytest.raises(NothingFits):
                    best(name, k, declared, aim)
                continue
            found = best(name, k, declared, aim)
            assert found.payload_size <= limit
            least = min(variance_at(mechanism, 0) for mechanism in fitting)
            assert variance_at(found, 0) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize(("aim", "most"), [(ANY, 1.005), (Aim(max_bytes=8), 1.04)])
def test_auto_is_as_close_to_the_bound_as_promised(aim: Aim, most: float) -> None:
    for k in accuracy_table.SIZES:
        for text in accuracy_table.EPSILONS:
            epsilon = Epsilon.parse(text)
            chosen = most_accurate(k, epsilon, aim)
            assert chosen.payload_size <= (aim.max_bytes or chosen.payload_size)
            assert variance_at(chosen, 0) <= most * least_variance(k, epsilon)


def test_the_table_in_the_documents_is_up_to_date() -> None:
    assert accuracy_table.DOCUMENT.read_text(encoding="utf-8") == accuracy_table.document()


def test_nothing_goes_below_the_bound() -> None:
    for k in (2, 4, 31, 200):
        for text in EPSILONS:
            epsilon = Epsilon.parse(text)
            bounds = {share: least_variance(k, epsilon, share) for share in (0, 1 / k)}
            for mechanism in ranked(k, epsilon):
                for share, bound in bounds.items():
                    assert variance_at(mechanism, share) >= bound * (1 - 1e-9)


def test_the_average_over_all_values_is_the_variance_at_the_average_share() -> None:
    shares = [0.5, 0.3, 0.15, 0.05, 0]
    for mechanism in ranked(len(shares), Epsilon.parse("1")):
        total = sum(variance_at(mechanism, share) for share in shares)
        assert total == pytest.approx(len(shares) * variance_at(mechanism, 1 / len(shares)))


@pytest.mark.parametrize(
    ("k", "epsilon", "ratios"),
    [
        # n · Var over the bound: GRR, SUE, OUE, one-block Hadamard response, PGR.
        (4, "1", (1.000, 2.452, 2.304, 2.930, 1.000)),
        (16, "1", (1.820, 1.259, 1.184, 1.505, 1.129)),
        (128, "1", (12.08, 1.085, 1.020, 1.297, 1.037)),
        (1024, "1", (94.5, 1.066, 1.002, 1.275, 1.024)),
        (16, "2", (1.008, 1.771, 1.393, 3.317, 1.102)),
        (128, "2", (4.688, 1.321, 1.039, 2.473, 1.022)),
        (1024, "2", (34.99, 1.277, 1.005, 2.392, 1.014)),
        (128, "4", (1.076, 3.098, 1.301, 18.4, 1.076)),
        (1024, "4", (5.071, 2.449, 1.029, 14.6, 1.019)),
    ],
)
def test_distances_from_the_bound_as_derived_elsewhere(
    k: int, epsilon: str, ratios: tuple[float, ...]
) -> None:
    declared = Epsilon.parse(epsilon)
    names = ("randomised-response", "symmetric-unary", "optimised-unary", "projective-geometry")
    cell = accuracy_table.Cell(k, declared, most_accurate(k, declared), most_accurate(k, declared))
    found = [cell.ratio(best(name, k, declared)) for name in names]
    found.insert(3, cell.hadamard)
    assert found == pytest.approx(ratios, rel=5e-3)
    assert found[:3] + found[4:] == pytest.approx(ratios[:3] + ratios[4:], rel=6e-4)


@pytest.mark.parametrize(
    ("name", "k", "epsilon", "parameter", "golden"),
    [
        ("subset-selection", 16, "0.5", 6, 0.03709),
        ("subset-selection", 16, "1", 4, 0.01798),
        ("subset-selection", 16, "2", 2, 0.007831),
        ("subset-selection", 16, "4", 1, 0.002236),
        ("subset-selection", 256, "0.5", 97, 0.03955),
        ("subset-selection", 256, "1", 69, 0.01935),
        ("subset-selection", 256, "2", 31, 0.008991),
        ("subset-selection", 256, "4", 5, 0.003997),
        ("local-hashing", 16, "0.5", 3, 0.04000),
        ("local-hashing", 16, "1", 4, 0.01953),
        ("local-hashing", 16, "2", 8, 0.009042),
        ("local-hashing", 256, "4", 56, 0.004205),
        ("local-hashing", 256, "0.5", 2, 0.04071),
        ("local-hashing", 256, "1", 2, 0.02141),
        ("local-hashing", 16, "2", 2, 0.01274),
        ("local-hashing", 16, "4", 2, 0.009879),
    ],
)
def test_golden_standard_errors(
    name: str, k: int, epsilon: str, parameter: int, golden: float
) -> None:
    """Of a share of 0.1 among 10,000 devices, at the parameters of the tables in the literature."""
    more = (LISTED_PRIME,) if name == "local-hashing" else ()
    mechanism = MECHANISMS[name].calibrate(k, Epsilon.parse(epsilon), parameter, *more)
    assert f"{sqrt(variance_at(mechanism, 0.1) / 10_000):.4g}" == f"{golden:.4g}"


def test_the_two_worked_examples_of_the_field() -> None:
    # Warner's die tells the truth with probability 2/3; the threshold is rounded down.
    die = best("randomised-response", 2, Epsilon.parse("ln 2"))
    assert die.parameters == {"keep": 2 * 2**64 // 3}
    # Two coins: who cheated says so with probability 3/4, who did not with 1/4.
    coins = best("randomised-response", 2, Epsilon.parse("ln 3"))
    assert coins.support == (Fraction(3, 4), Fraction(1, 4))
    assert coins.ratio == 3


def test_projective_geometry_over_two_is_hadamard_response_without_its_constant_row() -> None:
    epsilon = Epsilon.parse("1")
    variances = [
        variance_at(MECHANISMS["projective-geometry"].calibrate(2**t - 1, epsilon, 2, t), 0)
        for t in (4, 8, 17)
    ]
    cell = accuracy_table.Cell(2, epsilon, *ranked(2, epsilon)[:2])
    hadamard = cell.hadamard * cell.bound
    assert variances == sorted(variances)
    assert variances[0] == pytest.approx(3.83, abs=0.005)
    assert variances[-1] == pytest.approx(hadamard, rel=1e-4)
    assert hadamard == pytest.approx(4.68, abs=0.005)


@pytest.mark.parametrize(
    ("k", "epsilon", "aim", "says"),
    [
        (
            128,
            "1",
            ANY,
            "subset-selection: 2 % less variance than the next, optimised-unary",
        ),
        # Subset selection of one value is the same law.
        (3, "1", ANY, "randomised-response: as accurate as subset-selection, and simpler"),
        (
            60_000,
            "1",
            Aim(max_bytes=2),
            "projective-geometry: over 99 % less variance than the next, randomised-response",
        ),
        (OPEN_PRIME, "1", ANY, "local-hashing: the only one for an open domain"),
    ],
)
def test_the_pick_is_explained(k: int, epsilon: str, aim: Aim, says: str) -> None:
    assert explain(ranked(k, Epsilon.parse(epsilon), aim), aim) == says


def test_the_only_one_that_fits_needs_no_rival() -> None:
    (only, *_) = ranked(128, Epsilon.parse("1"))
    assert explain([only]) == "subset-selection: nothing else fits"


@pytest.mark.parametrize(
    ("name", "k", "says"),
    [
        ("randomised-response", 4, "1 byte"),
        ("subset-selection", 128, "size 34, 16 bytes"),
        ("local-hashing", OPEN_PRIME, f"buckets 4, prime {OPEN_PRIME}, 24 bytes"),
    ],
)
def test_what_was_chosen_is_told_with_the_size_of_a_report(name: str, k: int, says: str) -> None:
    assert size_of(best(name, k, Epsilon.parse("1"))) == says


def test_an_expected_share_steers_the_choice() -> None:
    """Where randomised response is best for absent values, subset selection is for common ones."""
    epsilon = Epsilon.parse("4")
    for_none, for_many = (most_accurate(64, epsilon, Aim(share)) for share in (0, 0.1))
    assert (for_none.name, for_many.name) == ("randomised-response", "subset-selection")
    assert variance_at(for_many, 0.1) < variance_at(for_none, 0.1)
    assert variance_at(for_many, 0) > variance_at(for_none, 0)


def test_what_does_not_fit_is_refused_with_what_would() -> None:
    with pytest.raises(NothingFits, match="local-hashing has at least 7 bytes here, more than 6"):
        best("local-hashing", 128, Epsilon.parse("1"), Aim(max_bytes=6))
    with pytest.raises(
        NothingFits, match="every mechanism's payload has at least 2 bytes"
    ) as found:
        most_accurate(MAX_VALUES, Epsilon.parse("1"), Aim(max_bytes=1))
    assert found.value.least == 2


def test_every_mechanism_is_ranked_by_its_variance() -> None:
    ranking = ranked(100, Epsilon.parse("2"))

    def variance(mechanism: Mechanism) -> float:
        return variance_at(mechanism, 0)

    assert sorted(ranking, key=variance) == ranking
    assert {mechanism.name for mechanism in ranking} == set(MECHANISMS)
