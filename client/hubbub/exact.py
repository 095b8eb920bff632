"""Exact arithmetic for privacy: ε, brackets of its exponential, thresholds, certificates.

No floating point: e^ε is held between two fractions, and a question about it is asked again
with a narrower bracket until both ends give the same answer. Every rounding goes towards
more noise, or towards a larger stated ε.
"""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import isqrt
from typing import Final, NamedTuple

# A charge is counted in units of 10^-12: fine enough for any ε a person writes, and the sum
# of a device's life stays far below 2^63.
CHARGE_UNIT: Final = 10**12

# Realised ε is shown rounded up at this many decimals.
REALISED_DECIMALS: Final = 18

# What `exponential` brackets: far above every ceiling, and still cheap to reckon with.
_LARGEST: Final = 128

_DECIMAL: Final = r"(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{1,12})?"
_EPSILON: Final = re.compile(rf"(ln ?)?({_DECIMAL})", re.ASCII)


class Bracket(NamedTuple):
    """Two fractions with low ≤ x ≤ high for the real number x it stands for."""

    low: Fraction
    high: Fraction


class Epsilon(NamedTuple):
    """A declared privacy loss: a decimal number, or the natural logarithm of one.

    Refers to replacement neighbours: any two values the same device might have had.
    """

    text: str
    """Canonical text: "1", "0.5", "ln 3"."""
    number: Fraction
    """ε itself, or e^ε if `logarithm`."""
    logarithm: bool
    charge: int
    """What one report costs, in units of 10^-12, rounded up."""

    @classmethod
    def parse(cls, text: str) -> "Epsilon":
        """Read "1", "0.50" or "ln 3" (at most 12 decimals), exactly.

        Raises ValueError if it is anything else, or if ε is not positive or above 128.
        """
        match = _EPSILON.fullmatch(text)
        if match is None:
            raise ValueError(
                f'ε must be decimal text such as "1", "0.5" or "ln 3", at most 12 decimals, '
                f"not {text[:40]!r}"
            )
        logarithm = match[1] is not None
        digits = match[2]
        if "." in digits:
            digits = digits.rstrip("0").rstrip(".")
        number = Fraction(digits)
        if number <= (1 if logarithm else 0):
            raise ValueError(f"ε must be positive, not {text!r}")
        if not logarithm and number > _LARGEST:
            raise ValueError(f"ε must be at most {_LARGEST}, not {text!r}")
        if logarithm:
            return cls(f"ln {digits}", number, True, logarithm_rounded_up(number, CHARGE_UNIT))
        return cls(digits, number, False, int(number * CHARGE_UNIT))

    @property
    def decimal(self) -> str:
        """The charge as decimal text: ε itself, or ln m rounded up at the 12th decimal."""
        return charge_text(self.charge)

    def exponential(self, bits: int, root: int = 1) -> Bracket:
        """Bracket e^(ε/root) for root 1 or 2, to about `bits` binary places."""
        if not self.logarithm:
            return exponential(self.number / root, bits)
        return Bracket(self.number, self.number) if root == 1 else square_root(self.number, bits)


def exponential(x: Fraction, bits: int) -> Bracket:
    """Bracket e^x for 0 ≤ x ≤ 128, to about `bits` binary places.

    Taylor's series of x/2^j ≤ 1/2 in fixed point, rounded down for one end and up for the
    other, then squared j times.
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    # Squaring j times costs j bits and the size of e^128; the rest is for rounding.
    places = bits + halvings + 256
    one = 1 << places
    low_x = (x.numerator << places) // (x.denominator << halvings)
    low_term, low = one, 0
    n = 0
    while low_term:
        low += low_term
        n += 1
        low_term = low_term * low_x // (n << places)
    high_term, high = one, 0
    n = 0
    while high_term > 1:
        high += high_term
        n += 1
        high_term = -(-high_term * (low_x + 1) // (n << places))
    # The next term is at most 1/2^places, and those after it add up to no more than that.
    high += 2
    for _ in range(halvings):
        low = low * low >> places
        high = -(-high * high >> places)
    return Bracket(Fraction(low, one), Fraction(high, one))


def square_root(x: Fraction, bits: int) -> Bracket:
    """Bracket √x for x ≥ 0 to `bits` binary places; both ends are √x if that is rational."""
    exact = Fraction(isqrt(x.numerator), isqrt(x.denominator))
    if exact * exact == x:
        return Bracket(exact, exact)
    root = isqrt((x.numerator << (2 * bits)) // x.denominator)
    return Bracket(Fraction(root, 1 << bits), Fraction(root + 1, 1 << bits))


def _decide(bracket: Callable[[int], Bracket], ask: Callable[[Fraction], int]) -> int:
    """Ask a question, monotone in x, at both ends of ever narrower brackets of x.

    Ends if x is known exactly, or is no rational number: an answer changes only at one.
    """
    bits = 128
    while True:
        ends = bracket(bits)
        answer = ask(ends.low)
        if answer == ask(ends.high):
            return answer
        bits *= 2


def is_at_most(ratio: Fraction, epsilon: Epsilon) -> bool:
    """Tell whether ratio ≤ e^ε, exactly.

    e^ε is transcendental for a decimal ε ≠ 0, and for "ln m" both ends of its bracket are m.
    """
    return bool(_decide(epsilon.exponential, lambda x: ratio <= x))


def logarithm_rounded_up(ratio: Fraction, unit: int) -> int:
    """Return the smallest integer c with ratio ≤ e^(c/unit), for 1 ≤ ratio < e^128."""
    if ratio == 1:
        return 0
    low, high = 0, _LARGEST * unit
    while high - low > 1:
        middle = (low + high) // 2
        exponent = Fraction(middle, unit)
        enough = _decide(partial(exponential, exponent), lambda x: ratio <= x)
        low, high = (low, middle) if enough else (middle, high)
    return high


def threshold(epsilon: Epsilon, others: int | Fraction, one: int, root: int = 1) -> int:
    """Return ⌊one · x/(x + others)⌋ with x = e^(ε/root): how often to tell the truth.

    `others`: how many reports tell something else for each that tells the truth. The
    probability that k-ary randomised response gives to the truth (others = k − 1), and that
    unary encoding gives to a faithful bit (others = 1), rounded down: towards more noise.
    `one` is the number of equally likely draws, 2^64 on a device.
    """
    return _decide(
        lambda bits: epsilon.exponential(bits, root),
        lambda x: one * x // (x + others),
    )


class Certificate(NamedTuple):
    """What a metric's integers prove about it."""

    declared: Epsilon
    ratio: Fraction
    """The largest P(report | value) / P(report | other value), exactly."""

    @property
    def holds(self) -> bool:
        """Whether ratio ≤ e^ε."""
        return is_at_most(self.ratio, self.declared)

    @property
    def realised(self) -> str:
        """ln(ratio) as decimal text, rounded up at the 18th decimal."""
        unit = 10**REALISED_DECIMALS
        return _decimal_text(logarithm_rounded_up(self.ratio, unit), REALISED_DECIMALS)

    @property
    def loss(self) -> Fraction:
        """An upper bound of ε − ln(ratio): the privacy given away for nothing.

        ln(1 + δ) ≤ δ with 1 + δ = e^ε / ratio, e^ε taken from the upper end of its bracket.
        """
        return self.declared.exponential(256).high / self.ratio - 1


def _decimal_text(count: int, decimals: int) -> str:
    """Write count/10^decimals as plain decimal text."""
    whole, part = divmod(count, 10**decimals)
    return f"{whole}.{part:0{decimals}d}".rstrip("0").rstrip(".")


def charge_text(charge: int) -> str:
    """Write a charge, in units of 10^-12, as plain decimal text of ε."""
    return _decimal_text(charge, 12)


def upper_text(x: Fraction) -> str:
    """Write a small number as decimal text of three digits, rounded up: "2.31e-19"."""
    if x == 0:
        return "0"
    exponent = 0
    size = abs(x)
    while size < 1:
        size *= 10
        exponent -= 1
    while size >= 10:
        size /= 10
        exponent += 1
    hundredths = -(-x * Fraction(10) ** (2 - exponent) // 1)
    sign, hundredths = ("-" if hundredths < 0 else ""), abs(hundredths)
    if hundredths == 1000:
        hundredths, exponent = 100, exponent + 1
    return f"{sign}{hundredths // 100}.{hundredths % 100:02d}e{exponent}"
