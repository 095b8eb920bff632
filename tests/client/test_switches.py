"""The owner's switches: pause, opt out, and back; kept over restarts, heard by every process."""

import threading
from pathlib import Path

import pytest

import hubbub
from hubbub import Outcome, Switch
from hubbub.ledger import Ledger
from hubbub.rows import Status
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import (
    COUNTED,
    HASTY,
    Clock,
    Device,
    Receiver,
    Submission,
    departures,
    entries,
    soon,
)

NAME = "health.self_rated"
DAY = 86_400
PERIODIC = (DAY, 30, DAY)


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    memo = make_metric(
        "memo", mechanism="memoised-optimised-unary", permanent="0.5", epsilon="0.25",
        periodic=PERIODIC, absent="(nothing)",
    )  # fmt: skip
    return make_bundle(operator, make_metric(periodic=PERIODIC, epsilon="0.25"), memo)


def set_switch(state: Path, switch: Switch) -> None:
    """As another process does it."""
    ledger = Ledger.open(str(state))
    ledger.set_switch(switch, 900)
    ledger.close()


def test_a_pause_keeps_what_waits_and_takes_nothing(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    receiver, clock = Receiver(), Clock(500)
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as device:
        handle = device.metric(NAME)
        assert handle.record("good")
        assert device.switch is Switch.ON
        assert device.pause()
        clock.now += DAY
        assert handle.record("good") is Outcome.PAUSED
        assert not device.flush(0.05)
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as device:
        assert device.switch is Switch.PAUSED
        assert device.metric(NAME).record("good") is Outcome.PAUSED
        assert not device.flush(0.05)
        assert not receiver.submissions
        assert device.resume()
        assert device.metric(NAME).record("good") is Outcome.STORED
        assert device.flush()
    assert [entry.status for entry in entries(tmp_path)] == [Status.COUNTED] * 2


def test_opting_out_deletes_what_was_said_and_keeps_what_was_spent(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    receiver, clock = Receiver(), Clock(500)
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as device:
        handle, memo = device.metric(NAME), device.metric("memo")
        assert handle.record("good")
        assert device.flush()
        clock.now += DAY
        assert handle.record("good")
        assert memo.record("good")
        assert device.opt_out()
        assert device.preview() == []
        for _ in range(3):
            clock.now += DAY
            assert handle.record("good") is Outcome.OPTED_OUT
            assert memo.record("good") is Outcome.OPTED_OUT
            device.flush(0.05)
        sent = len(receiver.submissions)
        # Ending a pause does not bring back who opted out; nor does the app by its own switch.
        assert device.resume()
        device.enabled = True
        assert handle.record("good") is Outcome.OPTED_OUT
    assert (sent, receiver.fetches) == (1, 0)
    kept = entries(tmp_path)
    assert {entry.report for entry in kept} == {None}
    assert {departure.sealed for departure in departures(tmp_path)} == {None}
    # Two that were recorded, and the silence of the memo's first day, if the upload saw it in time.
    counted, *withdrawn = sorted(entry.status for entry in kept)
    assert counted is Status.COUNTED
    assert withdrawn in ([Status.WITHDRAWN] * 2, [Status.WITHDRAWN] * 3)
    with Device(
        bundle, tmp_path, clock=clock, transport=receiver, budgets={"health": "3.25"}
    ) as device:
        assert device.opt_in()
        assert device.metric(NAME).record("good") is Outcome.STORED
        # 2.5 for the memo that is gone, and three times 0.25: nothing comes back.
        assert device.metric("memo").record("good") is Outcome.BUDGET_SPENT


def test_a_running_app_hears_of_it_at_once(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    receiver, clock = Receiver(), Clock(500)
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as device:
        handle = device.metric(NAME)
        assert handle.record("good")
        set_switch(tmp_path, Switch.PAUSED)
        clock.now += DAY
        assert handle.record("good") is Outcome.PAUSED
        device.flush(0.05)
        set_switch(tmp_path, Switch.OPTED_OUT)
        assert handle.record("good") is Outcome.OPTED_OUT
        device.flush(0.05)
    assert not receiver.submissions


def test_nothing_leaves_after_opting_out_while_sending(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    """What is on its way ends before `opt_out` returns; what waits behind it never leaves."""
    on_its_way, answer = threading.Event(), threading.Event()

    def slow(_: Submission) -> list[int]:
        on_its_way.set()
        answer.wait()
        return [COUNTED]

    receiver, clock = Receiver(slow), Clock(500)
    with Device(bundle, tmp_path, clock=clock, transport=receiver, source=HASTY) as device:
        device.metric(NAME).record("good")
        assert on_its_way.wait(30)
        clock.now += DAY
        device.metric(NAME).record("good")
        threading.Timer(0.1, answer.set).start()
        assert device.opt_out()
        sent = len(receiver.submissions)
        assert soon(lambda: device.preview() == [])
    assert len(receiver.submissions) == sent == 1


def test_after_a_pause_the_thread_goes_on(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    receiver = Receiver()
    with Device(bundle, tmp_path, transport=receiver, source=HASTY) as device:
        device.pause()
        device.resume()
        device.metric(NAME).record("good")
        assert soon(lambda: len(receiver.submissions) == 1)


def test_what_cannot_be_stored_is_said(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    device = Device(bundle, tmp_path)
    device.close()
    assert not device.opt_out()
    assert not device.pause()
    assert device.switch is None
