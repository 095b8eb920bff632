"""The client: what it refuses at the start, and that after it nothing raises."""

import logging
import random
import subprocess
import sys
import threading
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import hubbub
from hubbub import Client, Outcome
from hubbub.exact import CHARGE_UNIT
from hubbub.limits import CLOCK_SKEW
from hubbub.mechanisms import RandomisedResponse
from hubbub.schedule import Once
from hubbub.transport import GrpcTransport
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import HASTY, Clock, Device, Receiver, entries, soon, spent, unreachable
from tests.systems import needs_fork

VALUES = ("excellent", "good", "fair", "poor")
NAME = "health.self_rated"


@pytest.fixture(scope="module")
def bundle(operator: Operator) -> hubbub.Bundle:
    return make_bundle(operator)


def rounds(name: str = NAME, epsilon: str = "1", source: str = "health", n: int = 100) -> bytes:
    """A metric of n rounds of 1,000 seconds; the first begins at 0."""
    return make_metric(name, epsilon=epsilon, source=source, periodic=(1_000, n, 1_000))


# Construction.


def test_the_readme_s_three_lines(operator: Operator, tmp_path: Path) -> None:
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric()]))
    state = tmp_path / "state"
    client = Client(file, operator_key=operator.key, state_dir=state, budgets={"health": "8"})
    assert client.metric(NAME).record("good") is Outcome.STORED
    client.close()
    assert spent(entries(state)) == CHARGE_UNIT
    assert (state / "ledger.sqlite3").stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == 0o700


def test_a_wrong_signature_is_refused(operator: Operator, tmp_path: Path) -> None:
    stranger = Operator.create(tmp_path / "stranger")
    for number, signed in enumerate([stranger.sign([make_metric()]), _tampered(operator)]):
        file = tmp_path / f"{number}.hubbub"
        file.write_bytes(signed)
        with pytest.raises(hubbub.BadSignature) as caught:
            Device(file, tmp_path / "state", operator_key=operator.key)
        assert caught.value.operator_keys == (operator.key,)
    assert not (tmp_path / "state").exists()


def _tampered(operator: Operator) -> bytes:
    signed = operator.sign([make_metric()])
    return signed.replace(b"excellent", b"excellens")


def test_a_verified_bundle_of_another_operator_is_refused(
    bundle: hubbub.Bundle, tmp_path: Path
) -> None:
    with pytest.raises(hubbub.BadSignature):
        Device(bundle, tmp_path / "state", operator_key="ed25519:" + "0" * 64)


@pytest.mark.parametrize("key", ["", "ed25519:", "ed25519:" + "G" * 64, "rsa:" + "0" * 64])
def test_what_is_no_operator_key_is_refused(
    bundle: hubbub.Bundle, tmp_path: Path, key: str
) -> None:
    with pytest.raises(ValueError, match="an operator key is"):
        Device(bundle, tmp_path / "state", operator_key=[bundle.operator, key])


def test_a_state_belongs_to_one_operator(operator: Operator, tmp_path: Path) -> None:
    stranger = Operator.create(tmp_path / "stranger")
    ours, theirs = make_bundle(operator), make_bundle(stranger)
    Device(ours, tmp_path / "state").close()
    with pytest.raises(hubbub.ForeignOperator) as caught:
        Device(theirs, tmp_path / "state")
    assert (caught.value.known, caught.value.offered) == (operator.key, stranger.key)
    # An app that trusts both may move from one to the other, and back.
    for bundle in (theirs, ours):
        Device(bundle, tmp_path / "state", operator_key=[operator.key, stranger.key]).close()


def test_a_lower_revision_is_refused(operator: Operator, tmp_path: Path) -> None:
    Device(make_bundle(operator, revision=7), tmp_path).close()
    with pytest.raises(hubbub.LowerRevision) as caught:
        Device(make_bundle(operator, revision=6), tmp_path)
    assert (caught.value.known, caught.value.offered) == (7, 6)


def test_other_bytes_of_the_same_revision_are_refused(operator: Operator, tmp_path: Path) -> None:
    Device(make_bundle(operator, revision=7), tmp_path).close()
    other = make_bundle(operator, revision=7, endpoint="localhost:1")
    with pytest.raises(hubbub.LowerRevision, match="another bundle of revision 7"):
        Device(other, tmp_path)
    Device(make_bundle(operator, revision=7), tmp_path).close()


def test_a_changed_definition_under_a_known_name_is_refused(
    operator: Operator, tmp_path: Path
) -> None:
    first = make_bundle(operator)
    changed = make_bundle(operator, make_metric(question="How are you?"), revision=2)
    Device(first, tmp_path).close()
    with pytest.raises(hubbub.ChangedContract) as caught:
        Device(changed, tmp_path)
    assert caught.value.metric == NAME
    assert caught.value.known_digest == first.metrics[NAME].digest
    assert caught.value.offered_digest == changed.metrics[NAME].digest
    # Nor after a bundle that does not list the name, and nothing of the refused one was kept.
    Device(make_bundle(operator, make_metric("other"), revision=2), tmp_path).close()
    with pytest.raises(hubbub.ChangedContract):
        Device(make_bundle(operator, make_metric(epsilon="2"), revision=3), tmp_path)
    Device(make_bundle(operator, revision=3), tmp_path).close()


@pytest.mark.parametrize("epsilon", ["8.000000000001", "9", "ln 2981"])
def test_a_report_of_more_than_8_is_refused(
    operator: Operator, tmp_path: Path, epsilon: str
) -> None:
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric(epsilon=epsilon)]))
    with pytest.raises(hubbub.PrivacyNotProved, match=f"{NAME}.*above 8") as caught:
        Device(file, tmp_path / "state", operator_key=operator.key)
    assert caught.value.metric == NAME


def test_a_nudged_threshold_is_refused(operator: Operator, tmp_path: Path) -> None:
    honest = make_bundle(operator).metrics[NAME].mechanism
    (keep,) = honest.parameters.values()
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric(mechanism=RandomisedResponse(4, keep + 1))]))
    with pytest.raises(hubbub.PrivacyNotProved, match=f"{NAME}.*reveal more"):
        Device(file, tmp_path / "state", operator_key=operator.key)


@pytest.mark.parametrize(
    "budgets",
    [
        *({"health": text} for text in ("", "0", "-1", "8.0000000000001", "many", "1e1", "nan")),
        *({"health": text} for text in (8, 8.0, None, b"8", True, "\ud800")),
        *({"health": text} for text in ("32.000000000001", "33", "999999", "1" * 5_000)),
        *({name: "8"} for name in ("", "Health", "a b", "a" * 65, "\ud800", None, 8, b"health")),
    ],
    ids=lambda budgets: ascii(budgets)[:40],
)
def test_bad_budgets_are_refused(
    bundle: hubbub.Bundle, tmp_path: Path, budgets: dict[Any, Any]
) -> None:
    with pytest.raises(hubbub.InvalidBudget) as caught:
        Device(bundle, tmp_path / "state", budgets=budgets)
    assert caught.value.source == next(iter(budgets))
    assert not (tmp_path / "state").exists()


def test_the_largest_budget(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    Device(bundle, tmp_path, budgets={"health": "32.000"}).close()


def test_wrong_names_are_told_at_the_start(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    with Device(bundle, tmp_path) as client, pytest.raises(hubbub.UnknownMetric) as unknown:
        client.metric("health.self_reted")
    assert isinstance(unknown.value, KeyError)
    assert unknown.value.known == (NAME,)
    assert str(unknown.value).endswith(f"it has {NAME}")
    with (
        Device(bundle, tmp_path, budgets={"battery": "1"}) as client,
        pytest.raises(hubbub.UndeclaredSource) as undeclared,
    ):
        client.metric(NAME)
    assert (undeclared.value.source, undeclared.value.declared) == ("health", ("battery",))


def test_a_state_in_memory_reaches_this_machine_only(operator: Operator) -> None:
    bundle = make_bundle(operator, endpoint="collect.example.com:7443")
    for transport in (None, Receiver(destination="localhost.example.com:7443")):
        with pytest.raises(hubbub.StateUnavailable, match="give a state_dir"):
            Device(bundle, None, transport=transport)
    for destination in ("localhost:1", "127.0.0.1:1", "[::1]:1"):
        receiver = Receiver(destination=destination)
        with Device(bundle, None, transport=receiver) as client:
            assert client.metric(NAME).record("good")
            assert client.flush()
        assert len(receiver.submissions) == 1


def test_a_missing_bundle(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Device(tmp_path / "none", tmp_path / "state", operator_key="ed25519:" + "0" * 64)


# Recording.


def test_a_round_is_answered_once(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    with Device(bundle, tmp_path) as client:
        metric = client.metric(NAME)
        assert metric.record("good")
        for value in ("good", "poor", "no label", None):
            assert metric.record(value) is Outcome.ALREADY_ANSWERED
    with Device(bundle, tmp_path) as client:
        assert client.metric(NAME).record("good") is Outcome.ALREADY_ANSWERED
    assert len(entries(tmp_path)) == 1


@pytest.mark.parametrize(("budget", "answers"), [("0.3", 3), ("0.299999999999", 2), ("1", 10)])
def test_a_budget_is_spent_to_the_last_unit_and_no_further(
    operator: Operator, tmp_path: Path, budget: str, answers: int
) -> None:
    bundle, clock = make_bundle(operator, rounds(epsilon="0.1")), Clock(0)
    for number in range(12):
        clock.now = 1_000 * number
        with Device(bundle, tmp_path, clock=clock, budgets={"health": budget}) as client:
            outcome = client.metric(NAME).record("good")
        assert outcome is (Outcome.STORED if number < answers else Outcome.BUDGET_SPENT)
    assert spent(entries(tmp_path)) == answers * CHARGE_UNIT // 10


def test_metrics_share_their_source_s_budget(operator: Operator, tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(5)]
    bundle = make_bundle(operator, *(make_metric(name, epsilon="2") for name in names))
    with Device(bundle, tmp_path, budgets={"health": "7"}) as client:
        outcomes = [client.metric(name).record("good") for name in names]
    assert outcomes == [Outcome.STORED] * 3 + [Outcome.BUDGET_SPENT] * 2


def test_no_source_spends_more_than_32_and_no_device_more_than_64(
    operator: Operator, tmp_path: Path
) -> None:
    sources = ["a", "b", "c"]
    bundle = make_bundle(operator, *(rounds(f"m.{s}", "8", s) for s in sources))
    clock, stored = Clock(0), dict.fromkeys(sources, 0)
    budgets = dict.fromkeys(sources, "32")
    for number in range(6):
        clock.now = 1_000 * number
        with Device(bundle, tmp_path, clock=clock, budgets=budgets) as client:
            for source in sources[: 2 if number < 5 else 3]:
                stored[source] += bool(client.metric(f"m.{source}").record("good"))
    assert stored == {"a": 4, "b": 4, "c": 0}
    assert spent(entries(tmp_path)) == 64 * CHARGE_UNIT


def test_a_lowered_budget_holds_at_once(operator: Operator, tmp_path: Path) -> None:
    bundle, clock = make_bundle(operator, rounds()), Clock(0)
    with Device(bundle, tmp_path, clock=clock, budgets={"health": "8"}) as client:
        assert client.metric(NAME).record("good")
    clock.now = 1_000
    with Device(bundle, tmp_path, clock=clock, budgets={"health": "1"}) as client:
        assert client.metric(NAME).record("good") is Outcome.BUDGET_SPENT


@pytest.mark.parametrize(
    ("now", "asked"),
    [(9_699.9, False), (9_700, True), (19_999.9, True), (20_000, False), (1e11, False)],
)
def test_a_metric_is_asked_from_its_start_to_its_end(
    operator: Operator, tmp_path: Path, now: float, asked: bool
) -> None:
    once = make_metric(starts=10_000, ends=20_000)
    periodic = make_metric("p", starts=10_000, periodic=(5_000, 2, 5_000))
    bundle = make_bundle(operator, once, periodic)
    assert bundle.metrics[NAME].schedule == Once(10_000, 20_000)
    assert CLOCK_SKEW == 300
    with Device(bundle, tmp_path, clock=Clock(now)) as client:
        for name in (NAME, "p"):
            outcome = client.metric(name).record("good")
            assert outcome is (Outcome.STORED if asked else Outcome.NOT_ASKED_NOW)
    assert len(entries(tmp_path)) == 2 * asked


def test_collection_off(operator: Operator, tmp_path: Path) -> None:
    bundle, clock, receiver = make_bundle(operator, rounds()), Clock(0), unreachable()
    with Device(bundle, tmp_path, clock=clock, transport=receiver) as client:
        metric = client.metric(NAME)
        assert metric.record("good")
        client.enabled = False
        assert client.preview() == []
        clock.now = 1_000
        assert metric.record("good") is Outcome.COLLECTION_OFF
        assert not client.flush()
        client.enabled = True
        assert metric.record("good") is Outcome.STORED
        assert [waiting.round for waiting in client.preview()] == [1]
        assert receiver.submissions == []
        clock.now = 0
        assert metric.record("good") is Outcome.ALREADY_ANSWERED
    with Device(bundle, tmp_path, clock=clock, enabled=False) as client:
        assert not client.enabled
        assert client.metric(NAME).record("good") is Outcome.COLLECTION_OFF
        assert client.preview() == []
    assert spent(entries(tmp_path)) == 2 * CHARGE_UNIT


def test_a_closed_client(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    client = Device(bundle, tmp_path)
    metric = client.metric(NAME)
    client.close()
    client.close()
    assert metric.record("good") is Outcome.CLIENT_CLOSED
    assert not client.flush()
    assert client.preview() == []
    client.enabled = False
    assert client.counts[Outcome.CLIENT_CLOSED] == 1
    assert entries(tmp_path) == []


def test_a_client_closes_only_its_own_transport(
    bundle: hubbub.Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    def close(transport: GrpcTransport) -> None:
        closed.append(transport.destination)

    monkeypatch.setattr(GrpcTransport, "close", close)
    receiver = Receiver()
    Device(bundle, tmp_path, transport=receiver).close()
    assert not receiver.closed
    Device(bundle, tmp_path, transport=None).close()
    assert closed == ["localhost:7443"]


# Values.


class Hostile:
    """An object that answers every question with an error."""

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __str__(self) -> str:
        raise RuntimeError("str")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class Text(str):
    """Text that hashes, compares and prints as something else."""

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __str__(self) -> str:
        return "something else"


class Rating(StrEnum):
    GOOD = "good"


class OldRating(str, Enum):  # noqa: UP042
    GOOD = "good"


class Number(IntEnum):
    GOOD = 1


@pytest.mark.parametrize("value", ["good", Text("good"), Rating.GOOD, OldRating.GOOD])
def test_text_of_every_kind_is_taken_for_its_text(
    operator: Operator, tmp_path: Path, value: str
) -> None:
    metric = make_metric(values=["good", "bad"])
    with Device(make_bundle(operator, metric), tmp_path) as client:
        assert client.metric(NAME).record(value) is Outcome.STORED


ODD_VALUES: list[Any] = [
    *(True, False, 0, 1, 1.0, float("nan"), float("inf"), b"good", bytearray(b"good"), 1j),
    *([], {}, set(), (), ("good",), object(), object, Hostile(), Hostile, Ellipsis, len),
    *("", " good", "Good", "good\0", "good\n", "\ud800", "\U0010ffff", "x" * 10_000_000),
    *(Text("?"), Number.GOOD, [["good"]], {"good": 1}, NotImplemented, Exception("good")),
]


def test_what_is_not_in_the_domain_is_replaced_and_told(operator: Operator, tmp_path: Path) -> None:
    """Charged and stored like any other, so that a report's absence says nothing."""
    bundle, clock = make_bundle(operator, rounds(epsilon="0.1")), Clock(0)
    with Device(bundle, tmp_path, clock=clock) as client:
        # Not parametrised: pytest would ask the hostile ones who they are.
        for value in ODD_VALUES:
            outcome = client.metric(NAME).record(value)
            assert outcome is Outcome.STORED_OUTSIDE_DOMAIN, type(value)
            clock.now += 1_000
        assert client.counts[Outcome.STORED] == len(ODD_VALUES)
        assert client.counts[Outcome.STORED_OUTSIDE_DOMAIN] == 0
    assert len(entries(tmp_path)) == len(ODD_VALUES)


def test_every_text_is_in_an_open_domain_and_nothing_else(
    operator: Operator, tmp_path: Path
) -> None:
    metric = make_metric(open=True, epsilon="0.1", periodic=(1_000, 100, 0))
    bundle, clock = make_bundle(operator, metric), Clock(0)
    no_texts = {"", "\ud800", "x" * 10_000_000}
    with Device(bundle, tmp_path, clock=clock) as client:
        for value in [*ODD_VALUES, Rating.GOOD, "x" * 256, None]:
            outcome = client.metric(NAME).record(value)
            inside = issubclass(type(value), str) and str.__str__(value) not in no_texts
            expected = Outcome.STORED if inside else Outcome.STORED_OUTSIDE_DOMAIN
            assert outcome is expected, type(value)
            clock.now += 1_000
    # An id and a payload: of one size, whatever the value.
    size = 16 + bundle.metrics[NAME].mechanism.payload_size
    assert {len(entry.report or b"") for entry in entries(tmp_path)} == {size}


@pytest.fixture(scope="module")
def tireless(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A client with tens of thousands of rounds, and its clock."""
    bundle = make_bundle(operator, rounds(epsilon="0.0001", n=100_000))
    clock = Clock(0)
    with Device(bundle, None, clock=clock) as client:
        yield client, clock


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.sets(st.text()),
    max_leaves=5,
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=anything | st.characters(categories=["Cs"]) | st.sampled_from(VALUES))
@example(value=None)
@example(value="good")
def test_record_never_raises(tireless: tuple[Client, Clock], value: Any) -> None:
    client, clock = tireless
    clock.now += 1_000
    outcome = client.metric(NAME).record(value)
    inside = isinstance(value, str) and value in VALUES
    assert outcome is (Outcome.STORED if inside else Outcome.STORED_OUTSIDE_DOMAIN)


@given(timeout=anything)
@example(timeout=float("nan"))
@example(timeout=-float("inf"))
def test_flush_never_raises(operator: Operator, timeout: Any) -> None:
    with Device(make_bundle(operator), None) as client:
        client.metric(NAME).record("good")
        # What is a time is waited for, as it should be.
        if isinstance(timeout, int | float) and timeout > 0:
            timeout = min(timeout, 0.01)
        assert client.flush(timeout) is False


@given(enabled=anything)
def test_enabled_never_raises(operator: Operator, enabled: Any) -> None:
    with Device(make_bundle(operator), None) as client:
        client.enabled = enabled
        assert client.enabled is bool(enabled)


def test_hostile_arguments_do_not_raise(bundle: hubbub.Bundle) -> None:
    hostile: Any = Hostile()
    with Device(bundle, None) as client:
        client.metric(NAME).record("good")
        assert client.flush(hostile) is False
        assert client.record(hostile, "good") is Outcome.NOT_STORED
        client.enabled = hostile
        assert client.enabled is False


def test_nothing_raises_without_randomness(bundle: hubbub.Bundle, tmp_path: Path) -> None:
    class Dry:
        base = 256

        def digits(self, count: int) -> bytes:
            raise OSError("no entropy")

        def below(self, n: int) -> int:
            return 0

    with Device(bundle, tmp_path, source=Dry()) as client:
        assert client.metric(NAME).record("good") is Outcome.NOT_STORED
    assert entries(tmp_path) == []


def test_nothing_raises_without_threads(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a process's limit: what is stored leaves when there is a thread again."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    bundle, receiver = make_bundle(operator, make_metric("a"), make_metric("b")), Receiver()
    with Device(bundle, tmp_path, source=HASTY, transport=receiver) as client:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            assert client.metric("a").record("good") is Outcome.STORED
        assert client.metric("b").record("good") is Outcome.STORED
        assert soon(lambda: not client.preview())
    assert len(receiver.submissions) == 2


def test_outcomes_are_counted_and_logged_once_in_a_while(
    bundle: hubbub.Bundle, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), Device(bundle, tmp_path) as client:
        metric = client.metric(NAME)
        for _ in range(101):
            metric.record("good")
        assert client.counts[Outcome.STORED] == 1
        assert client.counts[Outcome.ALREADY_ANSWERED] == 100
    logged = [record.getMessage() for record in caplog.records]
    assert [line.partition("(")[2] for line in logged] == [
        f"{count} times so far)" for count in (1, 10, 100)
    ]


def test_outcomes_are_truthy_only_if_stored_and_speak_for_themselves() -> None:
    assert [outcome.name for outcome in Outcome if outcome] == ["STORED", "STORED_OUTSIDE_DOMAIN"]
    assert all(
        str(outcome).startswith(("not stored: ", "nothing to do: "))
        for outcome in Outcome
        if not outcome
    )


# Looking.


@pytest.mark.parametrize("mechanism", ["randomised-response", "symmetric-unary"])
def test_preview_shows_what_waits_and_draws_nothing(
    operator: Operator, tmp_path: Path, mechanism: str
) -> None:
    bundle = make_bundle(operator, make_metric(mechanism=mechanism), rounds("m", epsilon="0.5"))
    with Device(bundle, tmp_path) as client:
        assert client.preview() == []
        client.metric(NAME).record("good")
        client.metric("m").record("good")
        first = client.preview()
        assert client.preview() == first
    kept = {entry.metric: entry for entry in entries(tmp_path)}
    assert [waiting.metric for waiting in first] == [NAME, "m"]
    assert [waiting.epsilon for waiting in first] == ["1", "0.5"]
    for waiting in first:
        report = kept[waiting.metric].report
        assert report is not None
        domain, shipped = bundle.metrics[waiting.metric].domain, bundle.metrics[waiting.metric]
        supported = shipped.mechanism.supported(report[16:])
        assert waiting.supports == tuple(domain.labels[value] for value in supported)
        assert waiting.size == len(report) == 17
        assert waiting.question == "How do you rate your own health?"
        assert waiting.round == kept[waiting.metric].round


def test_preview_shows_what_the_bundle_no_longer_asks(operator: Operator, tmp_path: Path) -> None:
    with Device(make_bundle(operator), tmp_path) as client:
        client.metric(NAME).record("good")
        waiting = client.preview()
    receiver = Receiver()
    newer = make_bundle(operator, make_metric("other"), revision=2)
    with Device(newer, tmp_path, transport=receiver) as client:
        assert client.preview() == waiting
        assert client.flush()
        assert client.preview() == []
    assert len(receiver.submissions) == 1


# Many at once.


def test_many_threads(operator: Operator, tmp_path: Path) -> None:
    """Eight threads answer 40 metrics, flush, look and close; each metric is charged once."""
    names = [f"m{number:02}" for number in range(40)]
    bundle = make_bundle(operator, *(make_metric(name, epsilon="0.1") for name in names))
    receiver = Receiver()
    client = Device(bundle, tmp_path, source=HASTY, transport=receiver)
    stored: list[str] = []
    raised: list[BaseException] = []
    barrier = threading.Barrier(8)

    def work(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311
        mine = chance.sample(names, len(names))
        barrier.wait()
        try:
            for name in mine:
                if client.metric(name).record("good"):
                    stored.append(name)
                if chance.random() < 0.2:
                    client.flush()
                    client.preview()
            if seed == 0:
                client.close()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert raised == []
    assert sorted(stored) == sorted({entry.metric for entry in entries(tmp_path)})
    assert len(entries(tmp_path)) == len(set(stored))
    with Device(bundle, tmp_path, transport=receiver) as client:
        assert client.flush()
    sent = {submission.digest: submission.sealed for submission in receiver.submissions}
    assert set(sent) == {bundle.metrics[name].digest for name in stored}
    assert {submission.sealed for submission in receiver.submissions} == set(sent.values())


FORK = """
import os, sys, threading
from hubbub import Client, Outcome
file, key, state = sys.argv[1:]
client = Client(file, operator_key=key, state_dir=state, budgets={"health": "3"})
names = ["a", "b", "c", "d"]
ledger = vars(client)["_ledger"]
connection = vars(ledger)["_connection"]
stop = threading.Event()
def record(name):
    # Where so many write, one may be told that the file is busy: it asks again.
    outcome = Outcome.NOT_STORED
    while outcome is Outcome.NOT_STORED:
        outcome = client.metric(name).record("good")
    return outcome
def keep_recording():
    while not stop.wait(0.001):
        record("a")
busy = threading.Thread(target=keep_recording)
busy.start()
statuses = []
for name in names[1:]:
    child = os.fork()
    if child == 0:
        outcome, again = record(name), record(name)
        if vars(ledger)["_connection"] is connection:
            os._exit(3)
        client.close()
        if client.metric(name).record("good") is not Outcome.CLIENT_CLOSED:
            os._exit(2)
        expected = Outcome.ALREADY_ANSWERED if outcome else Outcome.BUDGET_SPENT
        os._exit(10 + bool(outcome) if again is expected else 1)
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
busy.join()
print(statuses, [client.metric(name).record("good").name for name in names], len(client.preview()))
client.close()
"""


@needs_fork
def test_parent_and_children_share_one_account(operator: Operator, tmp_path: Path) -> None:
    """Forked while another thread is recording: nobody hangs, and the budget is one."""
    file = tmp_path / "metrics.hubbub"
    file.write_bytes(operator.sign([make_metric(name) for name in "abcd"]))
    ran = subprocess.run(
        [sys.executable, "-c", FORK, str(file), operator.key, str(tmp_path / "state")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    answered = ["ALREADY_ANSWERED"] * 3 + ["BUDGET_SPENT"]
    assert ran.stdout.strip() == f"[11, 11, 10] {answered} 3"
    assert [entry.metric for entry in entries(tmp_path / "state")] == ["a", "b", "c"]
