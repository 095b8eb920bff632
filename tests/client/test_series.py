"""Series: paid for before there is anything to say, answered in every round that is joined."""

from pathlib import Path
from typing import Any

import pytest

import hubbub
from hubbub import Outcome
from hubbub.contract import parse_metric
from hubbub.exact import CHARGE_UNIT
from hubbub.ledger import Ledger
from hubbub.mechanisms import MEMOISED
from hubbub.randomness import SYSTEM
from hubbub.rows import Status
from hubbub.schedule import joined_rounds
from hubbub.spread import ONCE_WITHIN, due_at
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Opener, Receiver, entries

NAME = "health.self_rated"
DAY = 86_400
YEAR = (DAY, 365, DAY)
ABSENT = "(nothing)"


def series(**options: Any) -> bytes:
    """A metric of a year of days, with an answer for silence."""
    return make_metric(**{"periodic": YEAR, "absent": ABSENT, "epsilon": "0.25", **options})


def memoised(**options: Any) -> bytes:
    return series(**{"mechanism": "memoised-optimised-unary", "permanent": "0.5", **options})


def at(day: float) -> float:
    """A moment on a day of the year, from 0; rounds begin at midnight."""
    return day * DAY


def secrets(ledger_of: Path) -> list[bytes | None]:
    ledger = Ledger.open_to_read(str(ledger_of))
    try:
        return [enrolment.secret for enrolment in ledger.enrolments()]
    finally:
        ledger.close()


def accounts(state: Path) -> dict[str, int]:
    ledger = Ledger.open_to_read(str(state))
    try:
        return ledger.accounts()
    finally:
        ledger.close()


# Paying.


@pytest.mark.parametrize("contract", [series(join=8), memoised()], ids=["sampled", "memoised"])
def test_a_series_is_charged_whole_before_anything_is_recorded(
    operator: Operator, tmp_path: Path, contract: bytes
) -> None:
    metric = parse_metric(contract)
    with Device(make_bundle(operator, contract), tmp_path, clock=Clock(at(3))) as device:
        device.metric(NAME)
        device.metric(NAME)
    assert accounts(tmp_path) == {"health": metric.total_charge}
    # And nothing more for its reports.
    clock = Clock()
    with Device(make_bundle(operator, contract), tmp_path, clock=clock) as device:
        handle = device.metric(NAME)
        for day in range(3, 40):
            clock.now = at(day + 0.5)
            handle.record("good")
    assert accounts(tmp_path) == {"health": metric.total_charge}
    assert all(entry.charge == 0 for entry in entries(tmp_path))
    assert len(secrets(tmp_path)) == 1


def test_what_a_budget_does_not_cover_as_a_whole_is_not_begun(
    operator: Operator, tmp_path: Path
) -> None:
    bundle = make_bundle(operator, memoised())  # 5 rows of 0.5
    with Device(bundle, tmp_path, budgets={"health": "2.4"}) as device:
        assert device.metric(NAME).record("good") is Outcome.BUDGET_SPENT
    assert accounts(tmp_path) == {}
    assert secrets(tmp_path) == []
    with Device(bundle, tmp_path, budgets={"health": "2.5"}) as device:
        assert device.metric(NAME).record("good") is Outcome.STORED


def test_a_series_that_is_over_is_not_paid_for(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, memoised())
    with Device(bundle, tmp_path, clock=Clock(at(365))) as device:
        assert device.metric(NAME).record("good") is Outcome.NOT_ASKED_NOW
    assert accounts(tmp_path) == {}


def test_whoever_comes_back_pays_for_a_new_memo_but_joins_the_same_rounds(
    operator: Operator, tmp_path: Path
) -> None:
    memo, sampled = memoised(), series(name="sampled", join=8)
    bundle, clock = make_bundle(operator, memo, sampled), Clock(at(0))
    with Device(bundle, tmp_path, clock=clock, budgets={"health": "7.5"}) as device:
        device.metric(NAME)
        device.metric("sampled")
        first, joined = secrets(tmp_path)
        device.opt_out()
        assert secrets(tmp_path) == [None, joined]
        device.opt_in()
        assert device.metric(NAME).record("good") is Outcome.STORED
        device.metric("sampled")
        again = secrets(tmp_path)
        device.opt_out()
        device.opt_in()
        # 2.5 twice and 2 are spent; another memo would be too much.
        clock.now = at(1)
        assert device.metric(NAME).record("good") is Outcome.BUDGET_SPENT
    assert again[0] is None
    assert again[2] == joined
    assert again[1] not in (None, first)
    assert accounts(tmp_path) == {"health": 7 * CHARGE_UNIT}


# Joining.


def test_only_the_joined_rounds_are_answered(operator: Operator, tmp_path: Path) -> None:
    bundle = make_bundle(operator, series(join=8))
    clock = Clock(at(20))
    with Device(bundle, tmp_path, clock=clock) as device:
        handle = device.metric(NAME)
        (drawn,) = secrets(tmp_path)
        joined = joined_rounds(drawn or b"")
        outcomes = {}
        for day in range(20, 365):
            clock.now = at(day + 0.25)
            outcomes[day] = handle.record("good")
    assert len(joined) == 8
    assert joined[0] >= 20
    assert {day for day, outcome in outcomes.items() if outcome} == set(joined)
    assert set(outcomes.values()) == {Outcome.STORED, Outcome.NOT_JOINED}
    assert [entry.round for entry in entries(tmp_path)] == joined


# Silence.


def test_a_round_that_nothing_was_recorded_in_is_answered_with_absent(
    operator: Operator, tmp_path: Path
) -> None:
    """On time, when the app is there; late, when it comes back; never when it is too late."""
    contract = memoised()
    bundle, receiver = make_bundle(operator, contract), Receiver()
    clock = Clock(at(0.5))
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as device:
        device.metric(NAME).record("good")
        clock.now = at(2)
        # Day 1 has just passed in silence.
        device.flush()
        # Days 2 to 8 pass with nobody there; only day 8 still takes reports then.
        clock.now = at(9.5)
        device.metric(NAME).record("poor")
        device.flush()
        clock.now = at(11)
        device.flush()
    answered = [(entry.round, entry.status) for entry in entries(tmp_path)]
    counted = [(number, Status.COUNTED) for number in (0, 1, 8, 9)]
    assert answered == [*counted, (10, Status.WAITING)]


def test_without_absent_silence_stays_silence(operator: Operator, tmp_path: Path) -> None:
    bundle, clock = make_bundle(operator, memoised(absent="")), Clock(at(0.5))
    with Device(bundle, tmp_path, clock=clock, transport=Receiver()) as device:
        device.metric(NAME)
        for day in range(1, 5):
            clock.now = at(day + 0.5)
            device.flush()
    assert entries(tmp_path) == []


def test_the_absent_of_a_memoised_series_is_told_from_the_memo(
    operator: Operator, tmp_path: Path
) -> None:
    """A permanent response for silence as well: its reports say the row, and no other."""
    contract = memoised(
        mechanism="memoised-randomised-response", permanent="0.6", epsilon="0.599999999999"
    )
    metric, opener = parse_metric(contract), Opener(operator)
    clock, receiver = Clock(at(0.5)), Receiver()
    with Device(
        make_bundle(operator, contract), tmp_path, clock=clock, transport=receiver
    ) as device:
        device.metric(NAME)
        for day in range(1, 30):
            clock.now = at(day + 0.9)
            device.flush()
    (memo,) = secrets(tmp_path)
    # Rounds keep the row nearly always: ε₁ is next to ε∞.
    absent = metric.domain.absent
    assert absent is not None
    assert memo is not None
    payloads = [opener(submission)[16:] for submission in receiver.submissions]
    assert payloads == [memo[absent : absent + 1]] * 29


# When it leaves.


def test_a_series_report_leaves_after_its_round_whenever_it_was_recorded(
    operator: Operator, tmp_path: Path
) -> None:
    bundle, clock, receiver = make_bundle(operator, memoised()), Clock(at(0.5)), Receiver()
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as device:
        device.metric(NAME).record("good")
        for moment in (0.5, 0.9, 0.99999):
            clock.now = at(moment)
            assert device.flush()
            assert not receiver.submissions
        (waiting,) = device.preview()
        assert at(1) <= waiting.due_at <= at(1.5)
        clock.now = waiting.due_at
        assert device.flush()
        assert len(receiver.submissions) == 1


@pytest.mark.parametrize("joined", [0, 8])
def test_reports_spread_over_a_period_by_chance(joined: int) -> None:
    metric = parse_metric(series(join=joined))
    now = int(at(10.25))
    moments = [due_at(metric, 10, now, SYSTEM) for _ in range(2_000)]
    earliest, latest = (at(11), at(11.5)) if joined else (now, now + (at(12) - now) / 2)
    assert earliest <= min(moments) <= earliest + DAY / 100
    assert latest - DAY / 100 <= max(moments) <= latest


def test_a_single_round_is_answered_within_a_minute() -> None:
    metric = parse_metric(make_metric(ends=1_000))
    assert {due_at(metric, 0, 100, SYSTEM) for _ in range(2_000)} == set(
        range(100, 100 + ONCE_WITHIN + 1)
    )
    # And in time.
    assert max(due_at(metric, 0, 990, SYSTEM) for _ in range(200)) == 995
    assert due_at(metric, 0, 999, SYSTEM) == 999


# A device for a year.


@pytest.mark.parametrize("name", MEMOISED)
def test_a_year_of_a_memoised_metric(operator: Operator, tmp_path: Path, name: str) -> None:
    """Every round is counted once, for one price, from one memo, over a restart every week."""
    contract = memoised(mechanism=name)
    bundle, receiver, clock = make_bundle(operator, contract), Receiver(), Clock()
    device: hubbub.Client | None = None
    for day in range(365):
        clock.now = at(day + 0.5)
        if day % 7 == 0:
            if device is not None:
                device.close()
            device = Device(bundle, tmp_path, clock=clock, transport=receiver)
        assert device is not None
        handle = device.metric(NAME)
        if day % 3:
            assert handle.record("good") is Outcome.STORED
        device.flush()
    assert device is not None
    clock.now = at(366)
    device.flush()
    device.close()
    assert [entry.round for entry in entries(tmp_path)] == list(range(365))
    assert {entry.status for entry in entries(tmp_path)} == {Status.COUNTED}
    assert len({submission.round for submission in receiver.submissions}) == 365
    assert accounts(tmp_path) == {"health": parse_metric(contract).total_charge}


def test_the_rounds_before_a_device_was_there_are_not_its_own(
    operator: Operator, tmp_path: Path
) -> None:
    """One has just ended, and still takes reports."""
    clock = Clock(at(5.5))
    with Device(make_bundle(operator, memoised()), tmp_path, clock=clock) as device:
        device.metric(NAME)
        device.flush()
        assert device.preview() == []
        clock.now = at(6.5)
        device.flush()
        assert [waiting.round for waiting in device.preview()] == [5]
