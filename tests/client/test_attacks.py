"""Attacks on everything that one device ever sent, and how often they may be right.

The devices are shipped Clients, and lived through their years in a moment. In `make test` they
are few and their years short; the soak part `attacks` has the long ones.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.linkability import CASES as linkability_cases
from benchmarks.linkability import Areas, measure
from hubbub.exposure import change_noticed, change_noticed_ever, linked
from hubbub.limits import REPORT_ID_BYTES
from hubbub.mechanisms import MEMOISED
from hubbub.randomness import SYSTEM
from hubbub.transport import Refused
from tests.attackers import Attacker, Run, chance, compare, memo_likelihood
from tests.bundles import Operator, make_bundle, make_metric
from tests.calibrated import memoised
from tests.devices import Clock, Device, Opener, Receiver
from tests.harness import mean_range, proportion_range
from tests.owners import Seeded
from tests.years import CASES, CYCLE, DAY, VALUES, Answer, Case, Secret, Years

ids = [f"{case.name}-{len(case.secrets)}" for case in CASES]
each_case = pytest.mark.parametrize("case", CASES, ids=ids)


def attacker(case: Case, years: Years) -> Attacker:
    metric = years.metric
    return Attacker(metric.mechanism, case.secrets, chance(1), fresh=metric.memoised is None)


def found(attack: Attacker, lives: Sequence[tuple[Secret, Sequence[Answer]]]) -> list[int]:
    """How often majority and likelihood find the secret."""
    return [
        sum(guess(told) == secret for secret, told in lives)
        for guess in (attack.majority, attack.likelihood)
    ]


def check(case: Case, operator: Operator, *, devices: int, days: int) -> None:
    years = Years(operator, case.contract(days))
    secrets = chance(2).choices(case.secrets, k=devices)
    lives = [(secret, years.answers(secret, days)) for secret in secrets]
    counts = found(attacker(case, years), lives)
    shares = " and ".join(f"{count / devices:.3f}" for count in counts)
    print(
        f"{case.name}, {len(case.secrets)} secrets, {days} days: majority and likelihood find "
        f"{shares} of {devices}; at most {case.bound:.3f}"
    )
    allowed = proportion_range(case.bound, devices, figures=2 * len(CASES))
    for count in counts:
        assert count <= allowed.high
    # And devices do answer: as often as they may.
    rounds = {"once": 1, "fresh": 8, "sampled": 8}.get(case.name, days)
    assert {len({number for number, _ in told}) for _, told in lives} == {rounds}


@each_case
def test_a_month_tells_no_more_than_was_charged(case: Case, operator: Operator) -> None:
    check(case, operator, devices=24, days=30)


@pytest.mark.soak
@each_case
def test_attacks_on_a_year(case: Case, operator: Operator) -> None:
    check(case, operator, devices=200, days=365)


# The attacks are no straw men: who breaks the rules is found out.


def test_fresh_noise_that_is_not_paid_for_is_found_out(operator: Operator) -> None:
    """Sixteen reports of ε = 2: far beyond the bound for one."""
    case = Case("fresh", {"epsilon": "2"}, CYCLE, 2)
    years = Years(operator, case.contract(16))
    lives = [(secret, years.answers(secret, 16, budget="32")) for secret in case.secrets]

    for right in found(attacker(case, years), lives):
        assert right > proportion_range(case.bound, len(lives), figures=2).high


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.name in MEMOISED and len(case.secrets[0]) == 1],
    ids=lambda case: case.name,
)
def test_a_memo_that_is_drawn_every_day_is_found_out(case: Case, operator: Operator) -> None:
    """What memoisation is for: a year of reports, each from a row of its own, says it all."""
    mechanism = Years(operator, case.contract(365)).metric.mechanism
    secrets = chance(3).choices(case.secrets, k=60)
    attack = Attacker(mechanism, case.secrets, chance(1), fresh=True)
    lives = [
        (secret, [(day, mechanism.randomise(secret[0], SYSTEM)) for day in range(365)])
        for secret in secrets
    ]

    assert found(attack, lives)[1] > proportion_range(case.bound, len(lives)).high


# What is seen beside the payloads.


@each_case
def test_rounds_times_and_sizes_do_not_depend_on_the_secret(case: Case, operator: Operator) -> None:
    years = Years(operator, case.contract(30))
    lives = [years.live(secret, 30, source=Seeded(1)) for secret in case.secrets[:6]]
    seen = [
        [
            (
                one.submission._replace(sealed=bytes(len(one.submission.sealed))),
                one.report[:REPORT_ID_BYTES],
                one.at,
                one.due_at,
            )
            for one in sent
        ]
        for sent in lives
    ]
    assert seen[0]
    assert all(other == seen[0] for other in seen)
    # With this chance the payloads are not all the same.
    assert len({tuple(one.answer for one in sent) for sent in lives}) > 1


# Changes.


Tell = Callable[[Secret], Sequence[bytes]]
"""What a new device sends, with these values in its rounds."""


def change_attacks(mechanism: Any, tell: Tell, devices: int) -> tuple[int, int]:
    """How often comparing, and weighing, are right about a change halfway, of so many devices.

    By comparison: with the threshold that did best among as many other devices. By weight: who
    knows both values, and the chances of everything, does no better.
    """
    ties = chance(5)
    apart: dict[bool, list[int]] = {True: [], False: []}
    weighed = 0
    for number in range(2 * devices):
        changes = number % 2 == 0
        half = ROUNDS // 2
        told = tell((0,) * half + (int(changes),) * half)
        first, second = Run(told[:half]), Run(told[half:])
        apart[changes].append(compare(mechanism, first, second, ties))
        if number >= devices:
            same = memo_likelihood(mechanism, 0, first + second)
            changed = memo_likelihood(mechanism, 0, first) + memo_likelihood(mechanism, 1, second)
            weighed += (changed > same) == changes

    def right(least: int, part: slice) -> int:
        noticed = sum(places >= least for places in apart[True][part])
        return noticed + sum(places < least for places in apart[False][part])

    train, test = slice(devices // 2), slice(devices // 2, None)
    best = max(range(mechanism.k + 2), key=lambda least: right(least, train))
    return right(best, test), weighed


def check_change(mechanism: Any, tell: Tell, devices: int) -> None:
    compared, weighed = change_attacks(mechanism, tell, devices)
    told, ever = change_noticed(mechanism, ROUNDS), change_noticed_ever(mechanism)
    print(
        f"{mechanism.name}, {mechanism.k} values, a change halfway in {ROUNDS} rounds: comparing "
        f"is right {compared / devices:.3f} of the time, computed {told:.3f}; weighing "
        f"{weighed / devices:.3f}; at most {ever:.3f}"
    )
    allowed = proportion_range(told, devices, figures=2)
    assert allowed.holds(compared)
    assert allowed.low <= weighed <= proportion_range(ever, devices, figures=2).high


ROUNDS = 30
# With hashing only values that share no cell can be seen to change; test_exposure has that.
each_chain = pytest.mark.parametrize("name", sorted(MEMOISED.keys() - {"memoised-local-hashing"}))


@each_chain
@pytest.mark.parametrize("k", [4, 9])
def test_a_change_is_noticed_as_often_as_is_told(name: str, k: int) -> None:
    mechanism = memoised(name, k, permanent="1", epsilon="0.5")

    def tell(values: Secret) -> Sequence[bytes]:
        memo = mechanism.memorise(SYSTEM)
        return [mechanism.respond(memo, value, SYSTEM) for value in values]

    check_change(mechanism, tell, 800)


@pytest.mark.soak
@each_chain
def test_attacks_on_a_change(name: str, operator: Operator) -> None:
    case = Case(name, {"mechanism": name, "epsilon": "0.5", "permanent": "1"}, [], 0)
    years = Years(operator, case.contract(ROUNDS))

    def tell(values: Secret) -> Sequence[bytes]:
        answers = sorted(years.answers(values, ROUNDS, budget="4"))
        return [payload for _, payload in answers]

    check_change(years.metric.mechanism, tell, 1_000)


# One device among many.


def linkability(name: str, operator: Operator, pairs: int) -> Areas:
    (case,) = (case for case in linkability_cases if case.name == name)
    mechanism, areas = measure(operator, case, pairs)
    print(f"{name}, {pairs:,} pairs: {areas}; computed {linked(mechanism, 1):.3f}")
    return areas


def test_nothing_but_a_memo_links_two_reports(operator: Operator) -> None:
    pairs = 150
    chance_alone = mean_range(0.5, 0.25, 0.5, pairs, figures=12)
    fresh, sampled, hashed = (
        linkability(name, operator, pairs)
        for name in ("fresh", "sampled", "memoised-local-hashing")
    )

    assert all(map(chance_alone.holds, (*fresh, *sampled, *hashed[:3])))
    # The hash that is named in both reports.
    assert not chance_alone.holds(hashed.payload)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["fresh", "sampled"])
def test_attacks_that_link_two_reports(name: str, operator: Operator) -> None:
    """10,000 pairs: 0.02 is five times the standard error of chance alone."""
    for area in linkability(name, operator, 10_000):
        assert abs(area - 0.5) <= 0.02


# Retries.


def test_a_hundred_retries_of_a_round_say_one_thing(operator: Operator, tmp_path: Path) -> None:
    """One payload for each metric and round, over restarts, and one ciphertext for each key."""
    days, retries = 4, 100
    series = {"values": VALUES, "epsilon": "0.25", "periodic": (DAY, days, DAY)}
    bundle = make_bundle(
        operator,
        make_metric("fresh", **series),
        make_metric("sampled", **series, join=2),
        make_metric(
            "memoised", **series, permanent="0.5", mechanism="memoised-randomised-response"
        ),
    )
    # By an answer that is about one report, so that all are tried each time.
    receiver = Receiver(*[Refused("ROUND_NOT_OPEN")] * 10**6)
    clock, opener = Clock(0), Opener(operator)
    for day in range(days):
        with Device(bundle, tmp_path, clock=clock, transport=receiver) as device:
            clock.now = (day + 0.7) * DAY
            for name in bundle.metrics:
                device.metric(name).record("good")
            for _ in range(retries):
                device.flush(0.9)
    tries = Counter((one.digest, one.round) for one in receiver.submissions)
    told = {(one.digest, one.round, opener(one)) for one in receiver.submissions}
    assert min(tries.values()) >= retries
    assert len(told) == len(tries)
    assert len(set(receiver.submissions)) == len(tries)
    # In its last grace, no metric has a round that is missing but those that are not joined.
    assert len(tries) >= 2 * (days - 1)
