"""Clocks that jump, run backwards, change their hour or repeat a second: no budget comes back, and
no round is answered twice."""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import hubbub
from hubbub import Outcome
from hubbub.contract import parse_metric
from hubbub.ledger import Ledger
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Opener, Receiver, entries

HOUR, DAY = 3_600, 86_400
DECADE = 3_653 * DAY
START = 1_700_000_000
BUDGETS = {"once": "2", "fresh": "2", "sampled": "2", "memoised": "2"}


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    rounds = (DAY, 40, DAY)
    return make_bundle(
        operator,
        make_metric("once", source="once", starts=START, epsilon="1"),
        make_metric("fresh", source="fresh", starts=START, epsilon="0.25", periodic=rounds),
        make_metric(
            "sampled", source="sampled", starts=START, epsilon="0.25", periodic=rounds, join=8
        ),
        make_metric(
            "memoised",
            source="memoised",
            starts=START,
            mechanism="memoised-randomised-response",
            epsilon="0.2",
            permanent="0.4",
            absent="(nothing)",
            periodic=rounds,
        ),
    )


def accounts(state: Path) -> dict[str, int]:
    ledger = Ledger.open_to_read(str(state))
    try:
        return ledger.accounts()
    finally:
        ledger.close()


class Account:
    """What the tests hold against a device's ledger after each of its lives."""

    def __init__(self, bundle: hubbub.Bundle, state: Path, receiver: Receiver) -> None:
        self._bundle = bundle
        self._state = state
        self._receiver = receiver
        self._spent: dict[str, int] = {}
        self._rounds: dict[str, list[int]] = {}

    def check(self) -> None:
        spent = accounts(self._state)
        for source, before in self._spent.items():
            assert spent[source] >= before
        for charge in spent.values():
            assert charge <= 2 * 10**12
        rounds: dict[str, list[int]] = {name: [] for name in self._bundle.metrics}
        for entry in sorted(entries(self._state), key=lambda entry: entry.round):
            rounds[entry.metric].append(entry.round)
        for name, answered in rounds.items():
            assert len(set(answered)) == len(answered)
            # What was answered stays.
            assert set(self._rounds.get(name, [])) <= set(answered)
        self._spent, self._rounds = spent, rounds

    def one_payload_a_round(self, opener: Opener) -> None:
        payloads: dict[tuple[bytes, int], set[bytes]] = {}
        for submission in self._receiver.submissions:
            key = submission.digest, submission.round
            payloads.setdefault(key, set()).add(opener(submission))
        assert payloads
        assert all(len(different) == 1 for different in payloads.values())


def live(device: hubbub.Client, bundle: hubbub.Bundle) -> None:
    for name in bundle.metrics:
        device.metric(name).record("good")
    device.flush(0.05)


@pytest.mark.parametrize("seed", range(6))
def test_any_walk_of_the_clock(
    operator: Operator, bundle: hubbub.Bundle, tmp_path: Path, seed: int
) -> None:
    """Leaps of ten years and of a second, to and fro, within lives and between them."""
    walk, receiver = random.Random(seed), Receiver()  # noqa: S311
    account, clock = Account(bundle, tmp_path, receiver), Clock(START + 5 * DAY)
    steps = (1, 30, 299, HOUR, DAY, 30 * DAY, DECADE)
    for _ in range(12):
        with Device(bundle, tmp_path, clock=clock, budgets=BUDGETS, transport=receiver) as device:
            for _ in range(walk.randrange(1, 6)):
                live(device, bundle)
                clock.now += walk.choice((-1, 1)) * walk.choice(steps) + walk.random()
                if walk.random() < 0.3:
                    clock.now = START + walk.randrange(40 * DAY)
        account.check()
    account.one_payload_a_round(Opener(operator))


@pytest.mark.parametrize("leap", [DECADE, -DECADE])
def test_a_leap_of_ten_years_and_back_gives_nothing_and_takes_no_later_round(
    bundle: hubbub.Bundle, tmp_path: Path, leap: int
) -> None:
    receiver, clock = Receiver(), Clock(START + 3.5 * DAY)
    with Device(bundle, tmp_path, clock=clock, budgets=BUDGETS, transport=receiver) as device:
        live(device, bundle)
        before = accounts(tmp_path)
        clock.now += leap
        live(device, bundle)
        for name in ("fresh", "sampled", "memoised"):
            assert device.metric(name).record("good") is Outcome.NOT_ASKED_NOW
        assert accounts(tmp_path) == before
        clock.now -= leap
        assert device.metric("fresh").record("good") is Outcome.ALREADY_ANSWERED
        clock.now += DAY
        assert device.metric("fresh").record("good") is Outcome.STORED
        assert device.metric("memoised").record("good") is Outcome.STORED
        # What waits for its moment is not forgotten either.
        clock.now += DAY
        device.flush(0.05)
    memoised = [entry.round for entry in entries(tmp_path) if entry.metric == "memoised"]
    assert memoised[:2] == [3, 4]


def test_backwards_in_the_middle_of_a_round(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    clock = Clock(START + 3.5 * DAY)
    with Device(bundle, tmp_path, clock=clock, budgets=BUDGETS) as device:
        handle = device.metric("fresh")
        assert handle.record("good")
        for back in (1, HOUR):
            clock.now -= back
            assert handle.record("good") is Outcome.ALREADY_ANSWERED
        # The day before had no answer yet; it has one only, too.
        clock.now -= DAY
        assert handle.record("good") is Outcome.STORED
        for ahead in (HOUR, DAY - HOUR):
            clock.now += ahead
            assert handle.record("good") is Outcome.ALREADY_ANSWERED
    assert [entry.round for entry in entries(tmp_path)] == [2, 3]


def test_an_answer_ten_years_ahead_bars_none_until_then(operator: Operator, tmp_path: Path) -> None:
    contract = make_metric(epsilon="0.001", periodic=(DAY, 10_000, DAY))
    clock = Clock(5.5 * DAY)
    with Device(make_bundle(operator, contract), tmp_path, clock=clock) as device:
        handle = device.metric("health.self_rated")
        for leap in (DECADE, -DECADE, DAY):
            clock.now += leap
            assert handle.record("good") is Outcome.STORED
    assert [entry.round for entry in entries(tmp_path)] == [5, 6, 3_658]


def test_a_leap_second_at_the_end_of_a_round(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    """POSIX clocks show the last second twice: the new round begins, ends, and begins again."""
    clock, midnight = Clock(), START + 4 * DAY
    with Device(bundle, tmp_path, clock=clock, budgets=BUDGETS) as device:
        handle = device.metric("fresh")
        outcomes = []
        for moment in (-0.5, 0.0, 0.5, -0.9, -0.1, 0.0, 0.5, 1.0):
            clock.now = midnight + moment
            outcomes.append(handle.record("good"))
    assert [place for place, outcome in enumerate(outcomes) if outcome] == [0, 1]
    assert [entry.round for entry in entries(tmp_path)] == [3, 4]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_the_hour_that_is_shown_twice(operator: Operator, tmp_path: Path) -> None:
    """Rounds are counted in UTC: the day that has 25 hours on the wall has its rounds once."""
    change = 1_698_541_200  # 2023-10-29T01:00:00Z, when the wall goes from 3 back to 2.
    assert time.localtime(change - 1).tm_hour == time.localtime(change + HOUR - 1).tm_hour == 2
    contract = make_metric(starts=change - 4 * HOUR, epsilon="0.1", periodic=(HOUR, 9, HOUR))
    clock = Clock()
    with Device(make_bundle(operator, contract), tmp_path, clock=clock) as device:
        for half_hours in range(-8, 10):
            clock.now = change + half_hours * HOUR / 2
            device.metric("health.self_rated").record("good")
    assert [entry.round for entry in entries(tmp_path)] == list(range(9))
    assert accounts(tmp_path) == {"health": 9 * parse_metric(contract).epsilon.charge}
