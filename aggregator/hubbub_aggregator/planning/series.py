"""How often a device is asked, and what all of its answers cost together."""

from dataclasses import dataclass
from typing import Final

from hubbub.exact import Epsilon, charge_text
from hubbub.limits import MAX_CHARGE_PER_REPORT
from hubbub_aggregator.planning.memoised import Memo


@dataclass(frozen=True, slots=True)
class Series:
    """Rounds that are answered with fresh noise, each or a sample of them, or from a memo."""

    rounds: int = 1
    join: int | None = None
    """How many of the rounds a device answers, at least 1; None: all."""
    memo: Memo | None = None

    def reports(self, devices: int) -> int:
        """How many reports a round has, rounded down, but at least 1."""
        return devices if self.join is None else max(1, devices * self.join // self.rounds)

    def charge(self, epsilon: Epsilon, rows: int | None) -> int:
        """What a device pays for all rounds, in units of 10^-12; `rows`: of its memo."""
        if self.memo is not None and rows is not None:
            return rows * self.memo.permanent.charge
        return (self.join or self.rounds) * epsilon.charge

    def fresh(self, charge: int) -> Epsilon:
        """ε of a report if the same is paid for every round anew, rounded down; at most 8."""
        each = min(charge // self.rounds, MAX_CHARGE_PER_REPORT)
        return Epsilon.parse(charge_text(max(1, each)))


# A single round, which every device answers.
ONCE: Final = Series()
