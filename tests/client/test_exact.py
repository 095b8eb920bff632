"""Exact arithmetic, held against Python's decimal module at 200 digits."""

from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.exact import (
    CHARGE_UNIT,
    Certificate,
    Epsilon,
    charge_text,
    exponential,
    is_at_most,
    logarithm_rounded_up,
    square_root,
    threshold,
    upper_text,
)
from hubbub.mechanisms import MECHANISMS, Mechanism, SymmetricUnary
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from tests.calibrated import calibrated
from tests.proofs import nudged

DECIMALS = ["0.000000000001", "0.0001", "0.1", "0.5", "0.693147180559", "1", "2", "3.25", "8"]
LOGARITHMS = ["ln 1.000000000001", "ln 1.5", "ln 2", "ln 3", "ln 4", "ln 4.84", "ln 9", "ln 2980.9"]
SIZES = [2, 3, 5, 16, 100, 1_024, 65_536]

ONE = 1 << 64


def precise(x: Fraction | int) -> Decimal:
    """x as a decimal of the precision in force."""
    x = Fraction(x)
    return Decimal(x.numerator) / Decimal(x.denominator)


def exponential_of(epsilon: Epsilon) -> Decimal:
    number = precise(epsilon.number)
    return number if epsilon.logarithm else number.exp()


@pytest.fixture(autouse=True)
def _two_hundred_digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 200
        yield


# -- Brackets -----------------------------------------------------------------------------


@given(
    x=st.fractions(min_value=0, max_value=128, max_denominator=10**12),
    bits=st.sampled_from([1, 64, 128, 256]),
)
def test_the_bracket_of_the_exponential_holds_it(x: Fraction, bits: int) -> None:
    with localcontext() as context:
        context.prec = 250
        true = precise(x).exp()
        slack = true.scaleb(-248)
        bracket = exponential(x, bits)
        assert precise(bracket.low) <= true + slack
        assert precise(bracket.high) >= true - slack
        assert bracket.high - bracket.low < Fraction(1, 1 << bits)


@given(x=st.fractions(min_value=0, max_value=10**6, max_denominator=10**12))
def test_the_bracket_of_the_square_root_holds_it(x: Fraction) -> None:
    bracket = square_root(x, 100)
    assert bracket.low**2 <= x <= bracket.high**2
    assert bracket.high - bracket.low <= Fraction(1, 1 << 100)


@given(root=st.fractions(min_value=0, max_value=10**3, max_denominator=10**6))
def test_a_rational_square_root_is_exact(root: Fraction) -> None:
    bracket = square_root(root**2, 8)
    assert bracket.low == bracket.high == root


# -- Thresholds and certificates ----------------------------------------------------------


@pytest.mark.parametrize("text", DECIMALS + LOGARITHMS)
@pytest.mark.parametrize("root", [1, 2])
def test_thresholds_are_the_floor(text: str, root: int) -> None:
    epsilon = Epsilon.parse(text)
    x = exponential_of(epsilon)
    if root == 2:
        x = x.sqrt()
    for others in [1, *(k - 1 for k in SIZES)]:
        exact = ONE * x / (x + others)
        # 200 digits must tell the floor, unless the quotient is a whole number itself.
        assert abs(exact - round(exact)) > Decimal("1e-150") or exact == round(exact)
        assert threshold(epsilon, others, ONE, root) == int(exact)


# Parameters that are hardly ever the best: of which mechanism, for how many values.
ODD = [
    *(
        ("subset-selection", k, (size,))
        for k, size in ((3, 2), (100, 99), (65_536, 1), (65_536, 40_000))
    ),
    *(
        ("projective-geometry", k, space)
        for k, space in ((2, (2, 18)), (3, (3, 2)), (2, (131_071, 2)))
    ),
    *(
        ("local-hashing", 2, (buckets, prime))
        for buckets, prime in ((2, 2), (3, 5), (4_096, 65_537))
    ),
    ("local-hashing", OPEN_PRIME, (2, OPEN_PRIME)),
]


@cache
def every_case() -> list[tuple[Epsilon, Mechanism]]:
    """The best parameters and odd ones, for every ε and size."""
    cases: list[tuple[Epsilon, Mechanism]] = []
    for text in DECIMALS + LOGARITHMS:
        epsilon = Epsilon.parse(text)
        cases += [(epsilon, calibrated(name, k, text)) for name in MECHANISMS for k in SIZES]
        for name, k, parameters in ODD:
            cases.append((epsilon, MECHANISMS[name].calibrate(k, epsilon, *parameters)))
    return cases


def test_every_certificate_holds_and_loses_next_to_nothing() -> None:
    for epsilon, mechanism in every_case():
        certificate = Certificate(epsilon, mechanism.ratio)
        assert certificate.holds
        assert 0 <= certificate.loss <= Fraction(1, 10**12)


def test_no_threshold_can_be_more_telling() -> None:
    for epsilon, mechanism in every_case():
        assert not Certificate(epsilon, nudged(mechanism).ratio).holds


def test_the_loss_is_an_upper_bound() -> None:
    for epsilon, mechanism in every_case():
        certificate = Certificate(epsilon, mechanism.ratio)
        true = exponential_of(epsilon).ln() - precise(certificate.ratio).ln()
        assert true <= precise(certificate.loss) + Decimal("1e-60")


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("text", DECIMALS + LOGARITHMS)
def test_the_realised_epsilon_is_rounded_up_and_at_most_the_declared(text: str, name: str) -> None:
    epsilon = Epsilon.parse(text)
    certificate = Certificate(epsilon, calibrated(name, 5, text).ratio)
    excess = Decimal(certificate.realised) - precise(certificate.ratio).ln()
    assert 0 <= excess < Decimal("1e-18")
    assert Decimal(certificate.realised) <= Decimal(epsilon.decimal)
    if not epsilon.logarithm:
        assert Decimal(certificate.realised) <= Decimal(text)


@pytest.mark.parametrize(
    ("text", "flip", "ratio"),
    [
        ("ln 4", -(-ONE // 3), None),
        ("ln 9", ONE // 4, Fraction(9)),
        # √4.84 = 11/5 is no binary fraction, and the threshold is a whole number nevertheless.
        ("ln 4.84", ONE * 5 // 16, Fraction("4.84")),
    ],
)
def test_symmetric_unary_is_exact_where_the_root_is_rational(
    text: str, flip: int, ratio: Fraction | None
) -> None:
    epsilon = Epsilon.parse(text)
    mechanism = SymmetricUnary.calibrate(4, epsilon)
    assert mechanism.flip == flip
    certificate = Certificate(epsilon, mechanism.ratio)
    assert certificate.holds
    if ratio is not None:
        assert certificate.ratio == ratio
        assert certificate.loss == 0


def test_a_ratio_of_exactly_m_is_ln_m_and_no_more() -> None:
    assert is_at_most(Fraction(3), Epsilon.parse("ln 3"))
    assert not is_at_most(Fraction(3) + Fraction(1, 10**30), Epsilon.parse("ln 3"))


def test_the_answer_may_need_more_than_the_first_bracket() -> None:
    """Ratios as near to e as 10^-190 on either side, far inside a bracket of 128 places."""
    e = Fraction(Decimal(1).exp())
    hair = Fraction(1, 10**190)
    assert is_at_most(e - hair, Epsilon.parse("1"))
    assert not is_at_most(e + hair, Epsilon.parse("1"))


# -- ε as text, and what it is charged ----------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1", "1"),
        ("0.50", "0.5"),
        ("8.000", "8"),
        ("10", "10"),
        ("0.000000000001", "0.000000000001"),
        ("127.999999999999", "127.999999999999"),
        ("128.0", "128"),
        ("ln 3", "ln 3"),
        ("ln3", "ln 3"),
        ("ln 1.10", "ln 1.1"),
        ("ln 999999.999999999999", "ln 999999.999999999999"),
    ],
)
def test_epsilon_has_one_canonical_text(text: str, canonical: str) -> None:
    epsilon = Epsilon.parse(text)
    assert epsilon.text == canonical
    assert epsilon.number == Fraction(canonical.removeprefix("ln "))
    assert epsilon.logarithm == canonical.startswith("ln")
    assert Epsilon.parse(canonical) == epsilon


HOSTILE = [
    *("", " ", " 1", "1 ", "1\n", "\n1", "1\0", "+1", "-1", "--1", "1.", ".5", "01", "00.5", "1,5"),
    *("1e0", "1E0", "1/2", "0x1", "1_0", "inf", "nan", "Infinity", "NaN", "one", "ε", "1.0.0"),
    *("0", "0.0", "0.000000000000", "ln 1", "ln 1.0", "ln 0", "ln 0.5", "ln", "ln ", "ln  3"),
    *("LN 3", "Ln 3", "ln\t3", "ln\u00a03", "log 3", "ln -3", "ln ln 3", "ln(3)", "1 ln 3"),
    *(
        "0.0000000000001",
        "128.000000000001",
        "999999",
        "1000000",
        "ln 1000000",
        "١",
        "１",
        "²",
        "1\u200b",
        "\ufeff1",
        "9" * 100_000,
    ),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:20])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ε must be"):
        Epsilon.parse(text)


@given(st.text() | st.from_regex(r"(ln ?)?[0-9.]{1,20}"))
def test_a_text_is_refused_or_understood_for_good(text: str) -> None:
    try:
        epsilon = Epsilon.parse(text)
    except ValueError:
        return
    assert Epsilon.parse(epsilon.text) == epsilon
    assert epsilon.charge >= 1


@pytest.mark.parametrize("text", [*LOGARITHMS, "ln 999999.999999999999"])
def test_a_logarithm_is_charged_rounded_up(text: str) -> None:
    epsilon = Epsilon.parse(text)
    exact = precise(epsilon.number).ln() * CHARGE_UNIT
    assert epsilon.charge == int(exact.to_integral_value(ROUND_CEILING))
    assert Decimal(epsilon.decimal) * CHARGE_UNIT == epsilon.charge


@given(st.integers(min_value=1, max_value=128 * CHARGE_UNIT))
def test_a_decimal_is_charged_exactly(charge: int) -> None:
    text = charge_text(charge)
    epsilon = Epsilon.parse(text)
    assert epsilon.text == text
    assert epsilon.charge == charge


@given(
    ratio=st.fractions(min_value=1, max_value=10**38, max_denominator=10**20),
    unit=st.sampled_from([1, 10**12, 10**18]),
)
def test_logarithms_are_rounded_up(ratio: Fraction, unit: int) -> None:
    with localcontext() as context:
        context.prec = 200
        exact = precise(ratio).ln() * unit
        expected = int(exact.to_integral_value(ROUND_CEILING))
    assert logarithm_rounded_up(ratio, unit) == expected


# -- A loss as text -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (Fraction(0), "0"),
        (Fraction(1), "1.00e0"),
        (Fraction(231, 10**21), "2.31e-19"),
        (Fraction(2301, 10**22), "2.31e-19"),
        (Fraction(9991, 1000), "1.00e1"),
        (Fraction(-2309, 1000), "-2.30e0"),
        (Fraction(1, 3), "3.34e-1"),
    ],
)
def test_a_small_number_as_text(x: Fraction, text: str) -> None:
    assert upper_text(x) == text


@given(st.fractions(min_value=0, max_value=1000, max_denominator=10**30))
def test_a_small_number_is_rounded_up_by_less_than_a_hundredth(x: Fraction) -> None:
    shown = Fraction(Decimal(upper_text(x)))
    assert x <= shown <= x * Fraction(101, 100)
