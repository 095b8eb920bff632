"""What each mechanism promises beside its law: sizes, refusals, the choice of `auto`."""

from fractions import Fraction
from itertools import product
from math import exp
from typing import Any, Literal

import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MECHANISMS,
    Mechanism,
    OptimisedUnary,
    RandomisedResponse,
    SymmetricUnary,
    most_accurate,
)
from hubbub.randomness import SYSTEM

ONE = 1 << 64
each_mechanism = pytest.mark.parametrize("name", MECHANISMS)


def calibrated(name: str, k: int, epsilon: str = "1") -> Mechanism:
    return MECHANISMS[name].calibrate(k, Epsilon.parse(epsilon))


@pytest.mark.parametrize(
    ("name", "k", "size"),
    [
        *(("randomised-response", k, 1) for k in (2, 255, 256)),
        *(("randomised-response", k, 2) for k in (257, 65_536)),
        *((name, k, 1) for name in ("symmetric-unary", "optimised-unary") for k in (2, 8)),
        *((name, k, 2) for name in ("symmetric-unary", "optimised-unary") for k in (9, 16)),
        *((name, 65_536, 8_192) for name in ("symmetric-unary", "optimised-unary")),
    ],
)
def test_every_payload_has_the_size_of_its_metric(name: str, k: int, size: int) -> None:
    mechanism = calibrated(name, k)
    assert mechanism.payload_size == size
    for value in (0, k // 2, k - 1):
        payload = mechanism.randomise(value, SYSTEM)
        assert len(payload) == size
        assert set(mechanism.supported(payload)) <= set(range(k))


@pytest.mark.parametrize(
    ("mechanism", "byte_order", "largest"),
    [
        (RandomisedResponse(300, ONE // 2), "big", 299),
        (SymmetricUnary(9, ONE // 4), "little", 511),
    ],
)
def test_of_all_payloads_of_two_bytes_only_those_that_can_be_made_are_read(
    mechanism: Mechanism, byte_order: Literal["big", "little"], largest: int
) -> None:
    for number in range(65_536):
        payload = number.to_bytes(2, byte_order)
        if number <= largest:
            mechanism.supported(payload)
        else:
            with pytest.raises(ValueError, match=r"^not "):
                mechanism.supported(payload)


@each_mechanism
@pytest.mark.parametrize("k", [2, 8, 9, 300])
def test_a_payload_of_another_length_is_refused(name: str, k: int) -> None:
    mechanism = calibrated(name, k)
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
    """At the shipped resolution, on a thousand tapes, most of them with ties."""
    mechanism = calibrated(name, 300)
    for seed in range(1_000):
        tapes = [Replay(seed) for _ in range(3)]
        for value, tape in zip((0, 150, 299), tapes, strict=True):
            mechanism.randomise(value, tape)
        assert tapes[0].asked == tapes[1].asked == tapes[2].asked


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
    best = min(papers.values())
    chosen = most_accurate(k, Epsilon.parse(epsilon))
    assert papers[chosen.name] == pytest.approx(best)


@pytest.mark.parametrize(
    ("k", "epsilon", "name"),
    [
        (2, "1", "randomised-response"),
        (4, "1", "randomised-response"),
        (128, "1", "optimised-unary"),
        (128, "4", "randomised-response"),
        (1_024, "4", "optimised-unary"),
    ],
)
def test_auto(k: int, epsilon: str, name: str) -> None:
    """Randomised response wins while k < 3·e^ε + 2."""
    assert most_accurate(k, Epsilon.parse(epsilon)).name == name


def test_mechanisms_are_values() -> None:
    assert calibrated("optimised-unary", 4) == calibrated("optimised-unary", 4)
    assert len({calibrated(name, k) for name, k in product(MECHANISMS, (4, 4, 5))}) == 6
    with pytest.raises(AttributeError):
        calibrated("optimised-unary", 4).k = 5  # type: ignore[misc]


def test_thresholds_bear_the_contract_s_names() -> None:
    assert RandomisedResponse(4, 7).thresholds == {"keep": 7}
    assert SymmetricUnary(4, 7).thresholds == {"flip": 7}
    assert OptimisedUnary(4, 7).thresholds == {"raised": 7}
