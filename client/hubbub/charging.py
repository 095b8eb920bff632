"""Charging: whether an answer, or a whole series, may still be paid for, and paying.

One budget protects each source, and one limit everything the device is ever asked. Nothing
gives any of it back: not time, not a clock, not opting out and in again.
"""

import sqlite3
from enum import IntEnum
from typing import Final

from hubbub import outbox, rows
from hubbub.contract import Metric
from hubbub.limits import MAX_CHARGE_PER_DEVICE
from hubbub.rows import Account, Enrolment, Entry, Status, Switch
from hubbub.schedule import Periodic, joined_rounds


class Charge(IntEnum):
    """What came of asking to charge for an answer or a series."""

    CHARGED = 0
    ALREADY_ANSWERED = 1
    """The round was answered; or the series is enrolled."""
    BUDGET_SPENT = 2
    NOT_ENROLLED = 3
    """A series must be paid for before its first answer."""
    NOT_JOINED = 4
    """The round is not among those that the device drew."""
    PAUSED = 5
    OPTED_OUT = 6


_SWITCHED_OFF: Final = {Switch.PAUSED: Charge.PAUSED, Switch.OPTED_OUT: Charge.OPTED_OUT}

# What one charge depends on, in one statement, since that is what recording costs: a row for
# each account, or one with none.
_STANDING: Final = """
SELECT switch,
    EXISTS (SELECT 1 FROM report WHERE source = ?1 AND metric = ?2 AND round = ?3),
    account.source, spent, waiting, size
FROM owner LEFT JOIN account
"""
_IN_FORCE: Final = """
SELECT secret, from_round FROM enrolment
WHERE source = ? AND metric = ? AND secret IS NOT NULL ORDER BY number DESC LIMIT 1
"""


class _Charging:
    """A charge under way, inside its transaction: what it depends on, and what comes of it."""

    __slots__ = (
        "_account",
        "_all_size",
        "_all_spent",
        "_all_waiting",
        "_answered",
        "_budget",
        "_connection",
        "_from_round",
        "_metric",
        "_off",
        "_secret",
        "charge",
    )

    charge: Charge

    def __init__(
        self, connection: sqlite3.Connection, metric: Metric, number: int | None, budget: int
    ) -> None:
        name, source = metric.name, metric.source
        self._connection = connection
        self._metric = metric
        self._budget = budget
        # What the device drew for a series that it is enrolled in.
        self._secret: bytes | None = None
        self._from_round = 0
        if metric.is_series:
            for drawn in connection.execute(_IN_FORCE, (source, name)):
                self._secret, self._from_round = drawn
        account = Account(source, 0, 0, 0)
        all_spent = all_waiting = all_size = 0
        for switch, answered, whose, spent, waiting, size in connection.execute(
            _STANDING, (source, name, number)
        ):
            self._off = _SWITCHED_OFF.get(switch)
            self._answered = answered
            if whose is not None:
                all_spent += spent
                all_waiting += waiting
                all_size += size
                if whose == source:
                    account = Account(whose, spent, waiting, size)
        self._account = account
        self._all_spent, self._all_waiting, self._all_size = all_spent, all_waiting, all_size

    def _covered(self, charge: int) -> Charge:
        """CHARGED if both the source's budget and the device's limit leave that much."""
        if (
            self._account.spent + charge <= self._budget
            and self._all_spent + charge <= MAX_CHARGE_PER_DEVICE
        ):
            return Charge.CHARGED
        return Charge.BUDGET_SPENT

    def _add(self, charge: int, reports: int, size: int) -> None:
        """Add to the source's account; see that the outbox stays within its bounds."""
        source, spent, waiting, waiting_size = self._account
        account = (source, spent + charge, waiting + reports, waiting_size + size)
        rows.write(self._connection, "account", account)
        if not outbox.within_bounds(self._all_waiting + reports, self._all_size + size):
            outbox.trim(self._connection)


class Answer(_Charging):
    """A charge for one round's answer under way, inside its transaction."""

    __slots__ = ("_round",)

    def __init__(
        self, connection: sqlite3.Connection, metric: Metric, round_number: int, budget: int
    ) -> None:
        """`budget`: the most its source may ever spend, in units of 10^-12 of ε."""
        super().__init__(connection, metric, round_number, budget)
        self._round = round_number
        self.charge = self._decide()

    @property
    def secret(self) -> bytes:
        """What the device drew for a series: its memo, or the rounds it joins. Else empty."""
        return self._secret or b""

    def _decide(self) -> Charge:
        metric = self._metric
        if self._off is not None:
            return self._off
        if self._answered:
            return Charge.ALREADY_ANSWERED
        if not metric.is_series:
            return self._covered(metric.epsilon.charge)
        if self._secret is None:
            return Charge.NOT_ENROLLED
        joined = not is_sampled(metric) or self._round in joined_rounds(self._secret)
        if self._round < self._from_round or not joined:
            return Charge.NOT_JOINED
        return Charge.CHARGED

    def store(self, report: bytes, now: int, due_at: int) -> None:
        """Write charge and report (id ‖ payload) as one row; keep the outbox in its bounds.

        Only if `charge` is CHARGED. `now`, `due_at`: seconds UTC.
        """
        metric = self._metric
        charge = 0 if metric.is_series else metric.epsilon.charge
        entry = Entry(
            source=metric.source,
            metric=metric.name,
            round=self._round,
            digest=metric.digest,
            charge=charge,
            recorded_at=now,
            due_at=due_at,
            status=Status.WAITING,
            report=report,
        )
        rows.write(self._connection, "report", entry)
        self._add(charge, 1, len(report))


class Enrolling(_Charging):
    """A charge for a whole series under way, inside its transaction."""

    __slots__ = ("_price",)

    def __init__(self, connection: sqlite3.Connection, metric: Metric, budget: int) -> None:
        """`budget`: the most its source may ever spend, in units of 10^-12 of ε.

        Raises ValueError if the metric is not a series.
        """
        if metric.series_charge is None:
            raise ValueError(f"{metric!r} is charged for report by report")
        super().__init__(connection, metric, None, budget)
        self._price = metric.series_charge
        self.charge = self._decide()

    def _decide(self) -> Charge:
        if self._off is not None:
            return self._off
        if self._secret is not None:
            return Charge.ALREADY_ANSWERED
        return self._covered(self._price)

    def store(self, secret: bytes, from_round: int, now: int) -> None:
        """Write the charge and what was drawn as one row. Only if `charge` is CHARGED."""
        metric = self._metric
        (number,) = self._connection.execute(
            "SELECT count(*) FROM enrolment WHERE source = ? AND metric = ?",
            (metric.source, metric.name),
        ).fetchone()
        enrolment = Enrolment(
            source=metric.source,
            metric=metric.name,
            number=number,
            digest=metric.digest,
            charge=self._price,
            enrolled_at=now,
            from_round=from_round,
            secret=secret,
        )
        rows.write(self._connection, "enrolment", enrolment)
        self._add(self._price, 0, 0)


def is_sampled(metric: Metric) -> bool:
    """Whether a device joins only some of the rounds, drawn beforehand."""
    return isinstance(metric.schedule, Periodic) and metric.schedule.join > 0
