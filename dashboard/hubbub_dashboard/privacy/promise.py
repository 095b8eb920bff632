"""What a metric's contract proves that a device gives away at most. Pure."""

from dataclasses import dataclass
from fractions import Fraction

from hubbub.contract import Metric as Contract
from hubbub.errors import BundleError, InvalidContract
from hubbub.exact import CHARGE_UNIT, Certificate, charge_text
from hubbub.limits import MAX_CHARGE_PER_SOURCE
from hubbub.statement.asked import UNTOUCHED, asked
from hubbub.statement.facts import Asked, Loss
from hubbub.statement.figures import loss, odds_after, odds_of
from hubbub_dashboard.reading.answers import Metric


# By identity, as contracts, which cannot be hashed.
@dataclass(frozen=True, slots=True, eq=False)
class Promise:
    """What is known of a metric from its bytes alone."""

    contract: Contract
    told: Asked
    """What the owner of a device is told that has not answered, in an app that allows the most."""

    @property
    def total(self) -> str:
        """ε of all rounds, decimal text, as `hubbub certify` says; budgets may end it sooner."""
        return charge_text(self.contract.total_charge)

    @property
    def is_capped(self) -> bool:
        """Whether no device can ever pay for all rounds."""
        return self.contract.total_charge > MAX_CHARGE_PER_SOURCE

    @property
    def reports(self) -> int:
        """How many reports of noise of their own a device can pay for."""
        if self.told.series is not None:
            return self.told.series.parts
        return int(Fraction(self.told.allowed) * CHARGE_UNIT) // self.contract.epsilon.charge

    def reports_so_far(self, metric: Metric) -> int | None:
        """How many of these a device may have sent until now, if that is neither one nor all."""
        if self.contract.is_series or not metric.rounds:
            return None
        rounds = metric.rounds[-1].number + 1
        return rounds if 1 < rounds < self.reports else None

    @property
    def odds_of_report(self) -> Fraction:
        """By how much one report multiplies the odds of a guess, at most."""
        return odds_of(self.contract.epsilon)

    @property
    def odds_of_all(self) -> Fraction:
        """By how much all do that a device can pay for, a series once."""
        if self.is_single:
            # Not what is charged, which for ln m is rounded up.
            return self.odds_of_report
        return odds_after(int(Fraction(self.told.allowed) * CHARGE_UNIT))

    def odds_of_first(self, reports: int) -> Fraction:
        """By how much so many reports do, each of noise of its own."""
        return odds_after(reports * self.contract.epsilon.charge)

    @property
    def is_single(self) -> bool:
        """Whether one report is all that a device is charged for."""
        return self.contract.schedule.rounds == 1 and not self.contract.is_series

    @property
    def proofs(self) -> tuple[tuple[Certificate, Loss], ...]:
        """Of one report; and of a memo's row, if there is a memo."""
        return tuple((proof, loss(proof)) for proof in self.contract.certificates)


def promise(contract: Contract) -> Promise:
    """Work out what a contract proves: some hundredths of a second."""
    return Promise(contract, asked(contract, UNTOUCHED, now=0.0))


def refusal(metric: Metric, contract: Contract) -> BundleError | None:
    """Why a device would not take these bytes for this metric; None: it would."""
    if contract.digest != metric.digest:
        return InvalidContract(
            metric.name,
            "digest",
            f"reports and estimates name {metric.digest.hex()}, but the SHA-256 of its contract "
            f"is {contract.digest.hex()}",
        )
    if contract.name != metric.name:
        return InvalidContract(
            metric.name, "name", f"its contract is that of a metric {contract.name!r}"
        )
    return None
