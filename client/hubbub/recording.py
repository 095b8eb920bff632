"""Recording: from a value to a stored report, charged once; and what a series needs beside it.

A *series* is a metric that is paid for as a whole. Before there is any value the device enrols:
it draws its memo, or the rounds that it joins, and is charged for all of them. From then on every
round that it joins is answered, if need be with "nothing to report".
"""

import sqlite3
import time
from collections.abc import Callable, Mapping
from functools import partial
from math import inf
from typing import Final, cast

from hubbub.charging import Answer, Charge, Enrolling
from hubbub.contract import Metric
from hubbub.ledger import Ledger
from hubbub.limits import REPORT_ID_BYTES
from hubbub.outcome import Outcome
from hubbub.randomness import Source
from hubbub.refresh import BundleInForce
from hubbub.schedule import Periodic
from hubbub.spread import due_at

_NOT_CHARGED: Final = {
    Charge.ALREADY_ANSWERED: Outcome.ALREADY_ANSWERED,
    Charge.BUDGET_SPENT: Outcome.BUDGET_SPENT,
    Charge.NOT_ENROLLED: Outcome.BUDGET_SPENT,
    Charge.NOT_JOINED: Outcome.NOT_JOINED,
    Charge.PAUSED: Outcome.PAUSED,
    Charge.OPTED_OUT: Outcome.OPTED_OUT,
}

# So many of the rounds that nobody answered are filled in at a time: other threads wait for it.
AT_ONCE: Final = 100

# Stands for any value that is not text: no label equals it.
_NO_LABEL: Final = ""
# The text of a subclass of str, whose own str() may differ: an enumeration's is its name.
_plain: Final = str.__str__


class Recorder:
    """Charges a ledger for answers, and stores them. Whatever it does may raise StateError."""

    def __init__(
        self,
        ledger: Ledger,
        in_force: BundleInForce,
        budgets: Mapping[str, int],
        *,
        clock: Callable[[], float],
        source: Source,
    ) -> None:
        self._ledger = ledger
        self._in_force = in_force
        self._budgets = budgets
        self._clock = clock
        self._source = source
        # By series: the rounds that were seen to when it was last looked at.
        self._attended: dict[str, range] = {}

    def record(self, metric: Metric, value: object, allowed: Callable[[], bool]) -> Outcome | None:
        """Randomise a value and store the report.

        None: `allowed`, asked where nobody else is writing, said no.
        """
        number = metric.schedule.round_at(self._clock())
        if number is None:
            return Outcome.NOT_ASKED_NOW
        index, inside = self._index(metric, value)
        charge = self._answer(metric, number, index, allowed)
        if charge is Charge.NOT_ENROLLED:
            # It could not be when the app asked for the metric, or the owner has come back.
            self.enrol(metric)
            charge = self._answer(metric, number, index, allowed)
        if charge is Charge.CHARGED:
            return Outcome.STORED if inside else Outcome.STORED_OUTSIDE_DOMAIN
        return None if charge is None else _NOT_CHARGED[charge]

    def series(self) -> list[Metric]:
        """The series whose rounds this device sees to."""
        return [
            metric
            for metric in self._in_force.bundle.metrics.values()
            if metric.source in self._budgets and metric.is_series
        ]

    def enrol(self, metric: Metric) -> bool:
        """See to it that a series is paid for, unless it is over; tell if the budget forbids it."""
        if not isinstance(metric.schedule, Periodic):
            return False
        first = metric.schedule.next_round(self._clock())
        if first is None:
            return False

        def pay(connection: sqlite3.Connection) -> bool:
            enrolling = Enrolling(connection, metric, self._budgets[metric.source])
            if enrolling.charge is Charge.CHARGED:
                secret = metric.draw_secret(first, self._source)
                enrolling.store(secret, first, int(self._clock()))
            return enrolling.charge is Charge.BUDGET_SPENT

        return self._ledger.transact(pay)

    def attend_all(self, patience: float = inf) -> float | None:
        """Attend every series; tell when the next round that may need it is over, in seconds UTC.

        None: no round will. What is not done after `patience` seconds is left for the next time.
        """
        series, deadline = self.series(), time.monotonic() + patience
        for metric in series:
            self._attend(metric, deadline)
        return min(filter(None, map(self._next_end, series)), default=None)

    def _attend(self, metric: Metric, deadline: float) -> None:
        """Answer a series' rounds that are over, and still take reports, with `absent`.

        Those that have an answer, or that this device does not join, stay as they are. A metric
        without `absent` has nothing to say for them.
        """
        schedule, absent = metric.schedule, metric.domain.absent
        if absent is None or not isinstance(schedule, Periodic):
            return
        rounds = schedule.closing_rounds(self._clock())
        if self._attended.get(metric.name) == rounds:
            return
        for first in range(0, len(rounds), AT_ONCE):
            some = rounds[first : first + AT_ONCE]
            if time.monotonic() >= deadline:
                return
            fill = partial(self._fill, metric=metric, rounds=some, absent=absent)
            if not self._ledger.transact(fill):
                return
        self._attended[metric.name] = rounds

    def _fill(
        self, connection: sqlite3.Connection, *, metric: Metric, rounds: range, absent: int
    ) -> bool:
        """Answer with `absent` where there is no answer; tell whether this device may answer."""
        return all(
            self._answer_in(connection, metric, number, absent)
            not in (Charge.PAUSED, Charge.OPTED_OUT, Charge.NOT_ENROLLED)
            for number in rounds
        )

    def _next_end(self, metric: Metric) -> float | None:
        schedule = metric.schedule
        if metric.domain.absent is None or not isinstance(schedule, Periodic):
            return None
        number = schedule.next_round(self._clock())
        return None if number is None else schedule.end(number)

    def _answer(
        self, metric: Metric, number: int, index: int, allowed: Callable[[], bool]
    ) -> Charge | None:
        """Answer a round, in a transaction of its own; None: not allowed."""

        def answer(connection: sqlite3.Connection) -> Charge | None:
            return self._answer_in(connection, metric, number, index) if allowed() else None

        return self._ledger.transact(answer)

    def _answer_in(
        self, connection: sqlite3.Connection, metric: Metric, number: int, index: int
    ) -> Charge:
        """Charge for an answer to a round, and store it if that is CHARGED."""
        source = self._source
        answer = Answer(connection, metric, number, self._budgets[metric.source])
        if answer.charge is Charge.CHARGED:
            report_id = source.digits(REPORT_ID_BYTES)
            if metric.memoised is None:
                payload = metric.mechanism.randomise(index, source)
            else:
                payload = metric.memoised.respond(answer.secret, index, source)
            now = int(self._clock())
            answer.store(report_id + payload, now, due_at(metric, number, now, source))
        return answer.charge

    def _index(self, metric: Metric, value: object) -> tuple[int, bool]:
        """The value's index, or its stand-in's; and whether it was in the domain."""
        domain = metric.domain
        # Drawn for every value, so that a stand-in costs the same as any other.
        chance = self._source.below(domain.k)
        stand_in = chance if domain.other is None else domain.other
        # Of an object only the type is asked: anything else might run code of its own.
        label = _plain(cast(str, value)) if issubclass(type(value), str) else _NO_LABEL
        index = domain.index_of(None if value is None else label)
        return stand_in if index is None else index, index is not None
