"""Figures as a statement has them: how sure somebody can be, and when something was.

Everything about ε is exact, and rounded up: a promise may be too modest, never too bold.
"""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final

from hubbub.exact import CHARGE_UNIT, Certificate, Epsilon, exponential
from hubbub.statement.facts import Loss

_BITS: Final = 128
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def loss(certificate: Certificate) -> Loss:
    """What something can reveal."""
    ratio = certificate.ratio
    hundredths = -(-100 * ratio // 1)
    return Loss(
        epsilon=certificate.declared.text,
        realised=certificate.realised,
        ratio=f"{ratio.numerator}/{ratio.denominator}",
        times=f"{hundredths // 100}.{hundredths % 100:02d}",
        sure_percent=percent(belief(odds_of(certificate.declared))),
    )


def sure_after(charge: int) -> str:
    """How sure somebody can be who thought it 50:50, in percent; charge: in units of 10^-12."""
    return percent(belief(odds_after(charge)))


def odds_of(epsilon: Epsilon) -> Fraction:
    """e^ε, or a little more: by how much one report can multiply the odds of a guess."""
    return epsilon.exponential(_BITS).high


def odds_after(charge: int) -> Fraction:
    """The same for what was charged, in units of 10^-12, in all."""
    # Of nothing the bracket's upper end would be above 1.
    return exponential(Fraction(charge, CHARGE_UNIT), _BITS).high if charge else Fraction(1)


def belief(odds: Fraction, prior: Fraction = Fraction(1, 2)) -> Fraction:
    """How sure somebody can be at most whose odds are multiplied, and who was `prior` sure.

    Bayes' rule, for what is at most `odds` times likelier under the answer than under any other.
    """
    return prior * odds / (1 - prior + prior * odds)


def percent(share: Fraction | float) -> str:
    """A share in percent, rounded up to one decimal."""
    per_mille = int(-(-1000 * share // 1))
    return f"{per_mille // 10}.{per_mille % 10}"


def moment(seconds: int) -> datetime:
    """A time of the ledger, which is in seconds UTC."""
    return _EPOCH + timedelta(seconds=seconds)


def iso(time: datetime) -> str:
    """As it is written: ISO 8601, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def span(seconds: int) -> str:
    """A period in its largest whole unit: "1d", "12h", "90s"."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
