"""The facts about one metric: what it asks, what that can reveal, what was answered."""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from hubbub.charging import is_sampled
from hubbub.contract import Metric
from hubbub.digest import sha256
from hubbub.exact import Certificate, charge_text
from hubbub.exposure import resemblance
from hubbub.limits import MAX_CHARGE_PER_SOURCE, REPORT_ID_BYTES
from hubbub.mechanisms import LocalHashing, MemoisedLocalHashing
from hubbub.rows import Departure, Enrolment, Entry
from hubbub.schedule import Once, joined_rounds
from hubbub.statement.facts import Asked, Departed, Memo, Payment, Report, Round, Series, Timetable
from hubbub.statement.figures import loss, moment, percent, sure_after

# A report of a large domain may speak for thousands of answers: these many are listed.
_MOST_SAID: Final = 100


class History(NamedTuple):
    """What a ledger says about one metric."""

    entries: list[Entry]
    enrolments: list[Enrolment]
    departures: list[Departure]
    left: int | None
    """What its source has left, in units of 10^-12 of ε; None: the app has no budget for it."""
    operator: str | None
    asked: bool

    @property
    def spent(self) -> int:
        reports = sum(entry.charge for entry in self.entries)
        return reports + sum(enrolment.charge for enrolment in self.enrolments)

    @property
    def in_force(self) -> Enrolment | None:
        """The newest enrolment that has its secret still."""
        kept = [enrolment for enrolment in self.enrolments if enrolment.secret is not None]
        return kept[-1] if kept else None


# Of a metric that was not answered yet, for an app that allows the most.
UNTOUCHED: Final = History([], [], [], left=MAX_CHARGE_PER_SOURCE, operator=None, asked=True)


def asked(metric: Metric, history: History, now: float) -> Asked:
    """Everything about a metric; `now`: seconds UTC."""
    domain, left = metric.domain, history.left
    allowed = history.spent + _to_come(metric, history)
    return Asked(
        metric=metric.name,
        question=metric.question,
        operator=history.operator,
        asked=history.asked,
        source=metric.source,
        answers=() if domain.open else domain.labels,
        open=domain.open,
        other=None if domain.other is None else domain.labels[domain.other],
        absent=_absent(metric),
        mechanism=metric.mechanism.name,
        parameters=metric.mechanism.parameters,
        digest=metric.digest,
        retained=metric.retain,
        report_loss=loss(metric.certificate),
        allowed=charge_text(allowed),
        allowed_percent=sure_after(allowed),
        schedule=_timetable(metric),
        next=_next(metric, history, now),
        too_dear=_too_dear(metric, history),
        series=_series(metric, history),
        memo=_memo(metric),
        spent=charge_text(history.spent),
        left=None if left is None else charge_text(left),
        reports=tuple(_reports(metric, history)),
    )


def _absent(metric: Metric) -> str | None:
    """The label of "nothing to report"."""
    domain = metric.domain
    if domain.absent is None:
        return None
    # An open domain has no other label.
    return domain.labels[0] if domain.open else domain.labels[domain.absent]


def _to_come(metric: Metric, history: History) -> int:
    """What it may still be charged: what its contract leaves, if the budgets leave as much."""
    left = history.left or 0
    if metric.series_charge is not None:
        paid = history.in_force is not None or metric.series_charge > left
        return 0 if paid else metric.series_charge
    reports = metric.schedule.rounds - len(history.entries)
    return min(reports, left // metric.epsilon.charge) * metric.epsilon.charge


def _timetable(metric: Metric) -> Timetable:
    schedule = metric.schedule
    if isinstance(schedule, Once):
        return Timetable(
            form="once",
            starts=moment(schedule.starts),
            ends=None if schedule.ends is None else moment(schedule.ends),
            every=None,
            rounds=1,
            join=None,
        )
    sampled = "sampled" if is_sampled(metric) else "fresh"
    return Timetable(
        form="memoised" if metric.memoised is not None else sampled,
        starts=moment(schedule.starts),
        ends=moment(schedule.end(schedule.rounds - 1)),
        every=schedule.every,
        rounds=schedule.rounds,
        join=schedule.join or None,
    )


def _next(metric: Metric, history: History, now: float) -> Round | None:
    """The first round that is not over, after every one that was answered, and paid for or yet
    to be paid."""
    schedule = metric.schedule
    paid = metric.series_charge is not None and history.in_force is not None
    if not (paid or _to_come(metric, history)):
        return None
    if isinstance(schedule, Once):
        if schedule.ends is not None and now >= schedule.ends:
            return None
        ends = None if schedule.ends is None else moment(schedule.ends)
        return Round(0, moment(schedule.starts), ends)
    upcoming = schedule.next_round(now)
    if upcoming is None:
        return None
    newest = max((entry.round for entry in history.entries), default=-1)
    first = max(upcoming, newest + 1)
    joined = _joined(metric, history) or range(schedule.rounds)
    number = next((number for number in joined if number >= first), None)
    if number is None:
        return None
    end = schedule.end(number)
    return Round(number, moment(end - schedule.every), moment(end))


def _too_dear(metric: Metric, history: History) -> bool:
    price = metric.series_charge
    unpaid = price is not None and history.in_force is None and history.left is not None
    return unpaid and (price or 0) > (history.left or 0)


def _joined(metric: Metric, history: History) -> tuple[int, ...]:
    """The rounds that the device drew, if it draws any and has."""
    if not is_sampled(metric) or history.in_force is None:
        return ()
    return tuple(joined_rounds(history.in_force.secret or b""))


def _series(metric: Metric, history: History) -> Series | None:
    if metric.series_charge is None:
        return None
    each = metric.permanent or metric.epsilon
    return Series(
        charge=charge_text(metric.series_charge),
        parts=metric.series_charge // each.charge,
        each=each.decimal,
        payments=tuple(
            Payment(
                charge=charge_text(enrolment.charge),
                charged_at=moment(enrolment.enrolled_at),
                from_round=enrolment.from_round,
                in_force=enrolment.secret is not None,
            )
            for enrolment in history.enrolments
        ),
        joined=_joined(metric, history),
    )


def _memo(metric: Metric) -> Memo | None:
    memoised, permanent = metric.memoised, metric.permanent
    if memoised is None or permanent is None:
        return None
    hashes = memoised.seeds if isinstance(memoised, MemoisedLocalHashing) else None
    alike = resemblance(memoised, metric.schedule.rounds)
    return Memo(
        row=loss(Certificate(permanent, memoised.row_ratio)),
        rows=memoised.rows,
        hashes=hashes,
        identifying_bits=f"{alike.identifying_bits:.1f}",
        rounds=alike.rounds,
        change_noticed_percent=percent(alike.change_noticed),
        run=alike.run,
        linked_percent=percent(alike.linked),
        change_noticed_ever_percent=percent(alike.change_noticed_ever),
    )


def _reports(metric: Metric, history: History) -> Iterable[Report]:
    departures: dict[int, list[Departed]] = defaultdict(list)
    for departure in history.departures:
        departures[departure.round].append(_departed(departure))
    # Memoised reports repeat themselves, and to decode one may take a while.
    supported = cache(metric.supported)
    one_in = _texts_a_report(metric)
    for entry in history.entries:
        report = entry.report
        payload = None if report is None else report[REPORT_ID_BYTES:]
        listed = None if payload is None or one_in is not None else supported(payload)
        yield Report(
            round=entry.round,
            status=entry.status.name.lower(),
            charge=charge_text(entry.charge),
            digest=entry.digest,
            recorded_at=moment(entry.recorded_at),
            due_at=moment(entry.due_at),
            report_id=None if report is None else report[:REPORT_ID_BYTES],
            payload=payload,
            says=(listed or ())[:_MOST_SAID],
            says_count=None if listed is None else len(listed),
            says_one_in=None if payload is None else one_in,
            departures=tuple(departures[entry.round]),
        )


def _texts_a_report(metric: Metric) -> int | None:
    """In an open domain: of how many texts a report speaks for one."""
    mechanism = metric.mechanism
    return mechanism.buckets if metric.domain.open and isinstance(mechanism, LocalHashing) else None


def _departed(departure: Departure) -> Departed:
    sealed = departure.sealed
    return Departed(
        left_at=moment(departure.left_at),
        destination=departure.destination,
        key_id=departure.key_id,
        size=None if sealed is None else len(sealed),
        sha256=None if sealed is None else sha256(sealed),
        sealed=sealed,
    )
