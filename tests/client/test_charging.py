"""Charging: one budget a source, one limit a device, series paid for at once; and the outbox."""

import sqlite3
from pathlib import Path

import pytest

import hubbub
from hubbub import limits
from hubbub.charging import Answer, Charge, Enrolling
from hubbub.exact import CHARGE_UNIT
from hubbub.ledger import Ledger
from hubbub.rows import Status, Switch
from hubbub.schedule import joined_rounds
from tests import lives
from tests.bundles import Operator, make_bundle, make_metric
from tests.lives import FRESH, MEMOISED, SAMPLED

DAY = 86_400


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return lives.bundle_of_all(operator)


@pytest.fixture
def ledger(empty_ledger: Ledger, bundle: hubbub.Bundle) -> Ledger:
    lives.adopt(empty_ledger, bundle)
    return empty_ledger


def charge(ledger: Ledger, metric: hubbub.contract.Metric, number: int, budget: int) -> Charge:
    """What charging for a round would come to."""
    return ledger.transact(
        lambda connection: Answer(connection, metric, number, budget * CHARGE_UNIT).charge
    )


def test_a_budget_is_for_all_metrics_of_a_source(ledger: Ledger, bundle: hubbub.Bundle) -> None:
    fresh = bundle.metrics[FRESH]
    assert lives.enrol(ledger, bundle.metrics[SAMPLED]) is Charge.CHARGED  # 3
    assert lives.record(ledger, fresh, 0) is Charge.CHARGED  # 1
    assert charge(ledger, fresh, 1, budget=4) is Charge.BUDGET_SPENT
    assert charge(ledger, fresh, 1, budget=5) is Charge.CHARGED
    memoised = bundle.metrics[MEMOISED]  # 4
    for budget, expected in ((7, Charge.BUDGET_SPENT), (8, Charge.CHARGED)):
        enrolling = ledger.transact(lambda c: Enrolling(c, memoised, budget * CHARGE_UNIT))  # noqa: B023
        assert enrolling.charge is expected
    assert ledger.accounts() == {"health": 4 * CHARGE_UNIT}


def test_a_limit_holds_over_all_sources(operator: Operator, empty_ledger: Ledger) -> None:
    bundle = make_bundle(
        operator,
        *(make_metric(f"m{n}", source=f"s{n}", epsilon="8", periodic=(9, 9, 9)) for n in range(9)),
    )
    ledger = empty_ledger
    for number, metric in enumerate(bundle.metrics.values()):

        def answer(
            connection: sqlite3.Connection, metric: hubbub.contract.Metric = metric
        ) -> Charge:
            answer = Answer(connection, metric, 0, 32 * CHARGE_UNIT)
            if answer.charge is Charge.CHARGED:
                answer.store(b"report", 0, 0)
            return answer.charge

        expected = Charge.CHARGED if number < 8 else Charge.BUDGET_SPENT
        assert ledger.transact(answer) is expected
    assert sum(ledger.accounts().values()) == limits.MAX_CHARGE_PER_DEVICE


# Series.


@pytest.mark.parametrize("name", [SAMPLED, MEMOISED])
def test_a_series_is_paid_for_at_once(ledger: Ledger, bundle: hubbub.Bundle, name: str) -> None:
    metric = bundle.metrics[name]
    assert lives.record(ledger, metric, 0) is Charge.NOT_ENROLLED
    assert lives.enrol(ledger, metric) is Charge.CHARGED
    assert lives.enrol(ledger, metric) is Charge.ALREADY_ANSWERED
    assert ledger.accounts() == {"health": metric.series_charge}
    (enrolment,) = ledger.enrolments()
    assert (enrolment.digest, enrolment.charge) == (metric.digest, metric.series_charge)
    drawn = enrolment.secret or b""
    joined = joined_rounds(drawn) if name == SAMPLED else list(range(100))
    for number in range(100):
        assert ledger.transact(lambda c: Answer(c, metric, number, 0).secret) == drawn  # noqa: B023
        # No budget is left, and none is needed.
        expected = Charge.CHARGED if number in joined else Charge.NOT_JOINED
        assert lives.record(ledger, metric, number) is expected
        if expected is Charge.CHARGED:
            assert lives.record(ledger, metric, number) is Charge.ALREADY_ANSWERED
    entries = ledger.entries()
    assert [entry.round for entry in entries] == joined
    assert all(entry.in_series and entry.charge == 0 for entry in entries)
    assert ledger.accounts() == {"health": metric.series_charge}


def test_only_a_series_can_be_enrolled(ledger: Ledger, bundle: hubbub.Bundle) -> None:
    with pytest.raises(ValueError, match="report by report"):
        ledger.transact(lambda c: Enrolling(c, bundle.metrics[FRESH], CHARGE_UNIT))


# The owner.


@pytest.mark.parametrize(
    ("switch", "expected"),
    [(Switch.PAUSED, Charge.PAUSED), (Switch.OPTED_OUT, Charge.OPTED_OUT)],
)
def test_the_owner_s_choice_holds_at_once_in_every_process(
    bundle: hubbub.Bundle, tmp_path: Path, switch: Switch, expected: Charge
) -> None:
    ledger, other = Ledger.open(str(tmp_path)), Ledger.open(str(tmp_path))
    lives.adopt(ledger, bundle)
    lives.record(ledger, bundle.metrics[FRESH], 0)
    (waiting,) = ledger.outbox()
    other.set_switch(switch, 1_000)
    assert ledger.switch() is switch
    assert lives.record(ledger, bundle.metrics[FRESH], 1) is expected
    assert lives.enrol(ledger, bundle.metrics[SAMPLED]) is expected
    assert ledger.depart(waiting, b"key", b"sealed", "here", 0) is None
    other.close()
    ledger.set_switch(Switch.ON, 2_000)
    assert lives.record(ledger, bundle.metrics[FRESH], 1) is Charge.CHARGED
    left = ledger.depart(waiting, b"key", b"sealed", "here", 0)
    assert left == (b"sealed" if switch is Switch.PAUSED else None)
    ledger.close()


def test_who_has_opted_out_stays_out(empty_ledger: Ledger) -> None:
    assert empty_ledger.choice() == (Switch.ON, 0)
    empty_ledger.set_switch(Switch.OPTED_OUT, 1_000)
    for number, switch in enumerate(Switch):
        chosen = empty_ledger.set_switch(switch, 2_000 + number, unless=Switch.OPTED_OUT)
        assert chosen is Switch.OPTED_OUT
        assert empty_ledger.choice() == (Switch.OPTED_OUT, 1_000)
    assert empty_ledger.set_switch(Switch.ON, 3_000) is Switch.ON
    assert empty_ledger.set_switch(Switch.PAUSED, 4_000, unless=Switch.OPTED_OUT) is Switch.PAUSED
    assert empty_ledger.choice() == (Switch.PAUSED, 4_000)


def test_opting_out_deletes_what_was_said_and_no_charge(
    ledger: Ledger, bundle: hubbub.Bundle
) -> None:
    lives.live(ledger, bundle)
    before, spent = ledger.entries(), ledger.accounts()
    departures = ledger.departures()
    assert any(entry.report for entry in before)
    assert any(departure.sealed for departure in departures)
    for _ in range(2):
        ledger.set_switch(Switch.OPTED_OUT, 1_000)
        assert ledger.accounts() == spent
        assert ledger.outbox() == []
        waited = (Status.WAITING, Status.SENT)
        assert ledger.entries() == [
            entry._replace(
                report=None,
                status=Status.WITHDRAWN if entry.status in waited else entry.status,
            )
            for entry in before
        ]
        assert ledger.departures() == [d._replace(sealed=None) for d in departures]
        secrets = {enrolment.metric: enrolment.secret for enrolment in ledger.enrolments()}
        assert secrets[MEMOISED] is None
        # Drawn before there was any value, it says nothing.
        assert secrets[SAMPLED]


def test_a_new_memo_is_charged_in_full_and_joined_rounds_are_not(
    ledger: Ledger, bundle: hubbub.Bundle
) -> None:
    for name in (SAMPLED, MEMOISED):
        assert lives.enrol(ledger, bundle.metrics[name]) is Charge.CHARGED
    ledger.set_switch(Switch.OPTED_OUT, 1_000)
    ledger.set_switch(Switch.ON, 2_000)
    assert lives.record(ledger, bundle.metrics[MEMOISED], 0) is Charge.NOT_ENROLLED
    assert lives.enrol(ledger, bundle.metrics[SAMPLED]) is Charge.ALREADY_ANSWERED
    assert lives.enrol(ledger, bundle.metrics[MEMOISED]) is Charge.CHARGED
    assert ledger.accounts() == {"health": (3 + 4 + 4) * CHARGE_UNIT}
    assert [(e.metric, e.number, e.secret is None) for e in ledger.enrolments()] == [
        (MEMOISED, 0, True),
        (MEMOISED, 1, False),
        (SAMPLED, 0, False),
    ]


# Departures.


def test_a_retry_sends_the_same_bytes_and_adds_nothing(
    ledger: Ledger, bundle: hubbub.Bundle
) -> None:
    lives.record(ledger, bundle.metrics[FRESH], 0)
    (entry,) = ledger.outbox()
    assert ledger.depart(entry, b"key 1", b"first", "here", 10) == b"first"
    assert ledger.depart(entry, b"key 1", b"second", "here", 20) == b"first"
    # Elsewhere the same bytes; another key has its own.
    assert ledger.depart(entry, b"key 1", b"third", "there", 30) == b"first"
    assert ledger.depart(entry, b"key 2", b"fourth", "there", 40) == b"fourth"
    assert ledger.depart(entry, b"key 1", b"fifth", "here", 50) == b"first"
    left = [(d.key_id, d.destination, d.sealed, d.left_at) for d in ledger.departures(entry)]
    assert left == [
        (b"key 1", "here", b"first", 10),
        (b"key 1", "there", b"first", 30),
        (b"key 2", "there", b"fourth", 40),
    ]
    ledger.settle(entry, Status.COUNTED)
    assert ledger.depart(entry, b"key 1", b"sixth", "here", 60) is None
    assert ledger.departures() == ledger.departures(entry)
    assert [d.sealed for d in ledger.departures()] == [b"first", b"first", b"fourth"]


# The outbox.


def test_too_many_reports_drop_the_oldest(
    operator: Operator, empty_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(operator, make_metric(FRESH, epsilon="0.01", periodic=(1_000, 100, 1_000)))
    metric, ledger = bundle.metrics[FRESH], empty_ledger
    monkeypatch.setattr("hubbub.outbox.MAX_OUTBOX_REPORTS", 5)
    for number in range(4):
        lives.record(ledger, metric, number)
    # The first two leave, and are not answered.
    for entry in ledger.outbox()[:2]:
        assert ledger.depart(entry, b"key", b"sealed", "here", 0)
    for number in range(4, 9):
        assert lives.record(ledger, metric, number) is Charge.CHARGED
    assert [entry.round for entry in ledger.outbox()] == [4, 5, 6, 7, 8]
    assert ledger.dropped() == 4
    first = ledger.entries()[:4]
    assert {entry.status for entry in first} == {Status.DROPPED}
    # What left can still be shown; the rest is nobody's.
    assert [entry.report is None for entry in first] == [False, False, True, True]
    assert ledger.accounts() == {"health": 9 * CHARGE_UNIT // 100}


def test_too_many_bytes_drop_the_oldest(
    operator: Operator, empty_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(operator, make_metric(FRESH, epsilon="0.01", periodic=(1_000, 100, 1_000)))
    metric, ledger = bundle.metrics[FRESH], empty_ledger
    monkeypatch.setattr("hubbub.outbox.MAX_OUTBOX_BYTES", 100)
    for number, size in enumerate((40, 40, 20, 20, 30, 60)):
        lives.record(ledger, metric, number, bytes(size))
    assert [len(entry.report or b"") for entry in ledger.outbox()] == [30, 60]
    assert ledger.dropped() == 4


def test_every_end_takes_a_report_off_the_account(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """Opening checks that the account says how much waits."""
    ledger = Ledger.open(str(tmp_path))
    lives.live(ledger, bundle)
    for change in (
        ledger.drop_old,
        lambda: ledger.set_switch(Switch.OPTED_OUT, 0),
        ledger.withdraw,
    ):
        Ledger.open(str(tmp_path)).close()
        change()
    ledger.close()
    Ledger.open(str(tmp_path)).close()


def test_what_waits_a_season_longer_than_the_newest_is_dropped(
    operator: Operator, empty_ledger: Ledger
) -> None:
    bundle = make_bundle(operator, make_metric(FRESH, epsilon="0.01", periodic=(1_000, 100, 1_000)))
    metric, ledger = bundle.metrics[FRESH], empty_ledger
    # A round every 1,000 seconds.
    season = limits.MAX_OUTBOX_AGE // 1_000
    for number in (0, 1, season, season + 1, 2 * season):
        lives.record(ledger, metric, number)
        ledger.drop_old()
    assert [entry.round for entry in ledger.outbox()] == [season + 1, 2 * season]
    assert [entry.report for entry in ledger.entries()[:3]] == [None] * 3
    assert ledger.dropped() == 3
