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

# What one charge depends on, in one statement, since that is what recording costs.
_FACTS: Final = """
SELECT
    (SELECT switch FROM owner),
    EXISTS (SELECT 1 FROM report
        WHERE source = :source AND metric = :metric AND round = :round),
    (SELECT secret FROM enrolment WHERE source = :source AND metric = :metric
        AND secret IS NOT NULL ORDER BY number DESC LIMIT 1),
    (SELECT from_round FROM enrolment WHERE source = :source AND metric = :metric
        AND secret IS NOT NULL ORDER BY number DESC LIMIT 1),
    coalesce(sum(spent) FILTER (WHERE source = :source), 0),
    coalesce(sum(waiting) FILTER (WHERE source = :source), 0),
    coalesce(sum(size) FILTER (WHERE source = :source), 0),
    coalesce(sum(spent), 0), coalesce(sum(waiting), 0), coalesce(sum(size), 0)
FROM account
"""


class _Standing:
    """Where a metric and its source stand, inside a transaction."""

    __slots__ = (
        "_account",
        "_all_size",
        "_all_spent",
        "_all_waiting",
        "answered",
        "from_round",
        "secret",
        "switch",
    )

    def __init__(
        self, connection: sqlite3.Connection, metric: Metric, number: int | None = None
    ) -> None:
        asked = {"source": metric.source, "metric": metric.name, "round": number}
        facts = connection.execute(_FACTS, asked).fetchone()
        switch, self.answered, self.secret, self.from_round, *mine, spent, waiting, size = facts
        self.switch = Switch(switch)
        self._account = Account(metric.source, *mine)
        self._all_spent, self._all_waiting, self._all_size = spent, waiting, size

    def covers(self, charge: int, budget: int) -> bool:
        """Whether both the source's budget and the device's limit leave that much."""
        return (
            self._account.spent + charge <= budget
            and self._all_spent + charge <= MAX_CHARGE_PER_DEVICE
        )

    def add(self, connection: sqlite3.Connection, charge: int, reports: int, size: int) -> None:
        """Add to the source's account; see that the outbox stays within its bounds."""
        source, spent, waiting, waiting_size = self._account
        account = Account(source, spent + charge, waiting + reports, waiting_size + size)
        rows.write(connection, "account", account)
        if not outbox.within_bounds(self._all_waiting + reports, self._all_size + size):
            outbox.trim(connection)


class Answer:
    """A charge for one round's answer under way, inside its transaction."""

    def __init__(
        self, connection: sqlite3.Connection, metric: Metric, round_number: int, budget: int
    ) -> None:
        """`budget`: the most its source may ever spend, in units of 10^-12 of ε."""
        self._connection = connection
        self._metric = metric
        self._round = round_number
        self._standing = _Standing(connection, metric, round_number)
        self.charge = self._decide(budget)

    @property
    def secret(self) -> bytes:
        """What the device drew for a series: its memo, or the rounds it joins. Else empty."""
        return self._standing.secret or b""

    def _decide(self, budget: int) -> Charge:
        standing, metric = self._standing, self._metric
        if standing.switch is not Switch.ON:
            return _SWITCHED_OFF[standing.switch]
        if standing.answered:
            return Charge.ALREADY_ANSWERED
        if metric.series_charge is None:
            covered = standing.covers(metric.epsilon.charge, budget)
            return Charge.CHARGED if covered else Charge.BUDGET_SPENT
        if standing.secret is None:
            return Charge.NOT_ENROLLED
        joined = not is_sampled(metric) or self._round in joined_rounds(standing.secret)
        if self._round < standing.from_round or not joined:
            return Charge.NOT_JOINED
        return Charge.CHARGED

    def store(self, report: bytes, now: int, due_at: int) -> None:
        """Write charge and report (id ‖ payload) as one row; keep the outbox in its bounds.

        Only if `charge` is CHARGED. `now`, `due_at`: seconds UTC.
        """
        metric = self._metric
        charge = metric.epsilon.charge if metric.series_charge is None else 0
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
        self._standing.add(self._connection, charge, 1, len(report))


class Enrolling:
    """A charge for a whole series under way, inside its transaction."""

    def __init__(self, connection: sqlite3.Connection, metric: Metric, budget: int) -> None:
        """`budget`: the most its source may ever spend, in units of 10^-12 of ε.

        Raises ValueError if the metric is not a series.
        """
        if metric.series_charge is None:
            raise ValueError(f"{metric!r} is charged for report by report")
        self._connection = connection
        self._metric = metric
        self._price = metric.series_charge
        self._standing = _Standing(connection, metric)
        self.charge = self._decide(budget)

    def _decide(self, budget: int) -> Charge:
        standing = self._standing
        if standing.switch is not Switch.ON:
            return _SWITCHED_OFF[standing.switch]
        if standing.secret is not None:
            return Charge.ALREADY_ANSWERED
        return Charge.CHARGED if standing.covers(self._price, budget) else Charge.BUDGET_SPENT

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
        self._standing.add(self._connection, self._price, 0, 0)


def is_sampled(metric: Metric) -> bool:
    """Whether a device joins only some of the rounds, drawn beforehand."""
    return isinstance(metric.schedule, Periodic) and metric.schedule.join > 0
