"""What a device's value leaves behind: a report that could have come from any other value.

Two devices with different values, whose chance happens to give the same reports, must leave
the same files, logs and exceptions, to the byte. And a value outside the domain, which is
told to `record`'s caller alone, must be found nowhere.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hubbub
import hubbub.__main__ as command
import hubbub.sealing
from hubbub import Client, Outcome
from hubbub.bundle import SealingKey
from hubbub.ledger import Ledger
from hubbub.mechanisms import MECHANISMS, MEMOISED, LocalHashing
from hubbub.recording import Recorder
from hubbub.spread import ONCE_WITHIN
from hubbub.statement import statement
from hubbub.transport import Refused
from tests import laws
from tests.bundles import Operator, make_bundle, make_metric
from tests.chance import Tape, of_five, seed_of, tape_for
from tests.devices import Clock, Device, Paced, Receiver, entries

VALUES = ("excellent", "good", "fair", "poor", "none of these")
CANARY = "canary-0b5e9c7d41"
NO_TEXTS: tuple[Any, ...] = ("", None, 3, b"good", [CANARY], object())
# Of a list of values, and of an open domain, where every text has its own index.
OUTSIDE = (CANARY, *NO_TEXTS)
OUTSIDE_OPEN = (*NO_TEXTS, CANARY * 20, CANARY + "\ud800")
NAME = "health.self_rated"


def stand_in(key: SealingKey, digest: bytes, round_number: int, report: bytes) -> bytes:
    """In place of the seal, whose bytes are never the same twice."""
    return bytes(48) + report


def life(client: Client, clock: Clock, value: Any) -> Iterator[object]:
    """Everything a device can go through; yields all that anybody can see of it."""
    metric = client.metric(NAME)
    for number in range(4):
        clock.now = 1_000 * number
        yield bool(metric.record(value))
        yield client.preview()
        # Unreachable, then counted, then refused, then left waiting.
        if number < 3:
            yield client.flush(0.9), client.flush(0.9)
        yield metric.record(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "transact", _full)
        yield metric.record(value)
    client.enabled = False
    yield metric.record(value)
    yield dict(client.counts), repr(client.metric(NAME)), client.preview()
    client.enabled = True
    # While nothing waits, which by this clock would be due.
    clock.now = 1e12
    yield metric.record(value)
    clock.now = 4_000
    yield bool(metric.record(value))


def _full(*_: object) -> object:
    raise hubbub.StateUnavailable("ledger.sqlite3", "database or disk is full")


def observe(
    bundle: hubbub.Bundle,
    state: Path | None,
    value: Any,
    tape: Tape,
    caplog: pytest.LogCaptureFixture,
) -> list[object]:
    """A device's life, its logs, its files, and what its owner is shown."""
    caplog.clear()
    clock = Clock(0)
    receiver = Receiver(Refused("UNAVAILABLE"), [1], Refused("ROUND_CLOSED"), [3], [99])
    seen: list[object] = []
    with Device(bundle, state, clock=clock, source=tape, transport=receiver) as client:
        seen += life(client, clock, value)
        if state is None:
            # What SQLite would write into a file.
            seen.append(vars(vars(client)["_ledger"])["_connection"].serialize())
    assert tape.answers == []
    seen.append(client.metric(NAME).record(value))
    seen.append(receiver.submissions)
    seen += [(r.levelname, r.getMessage(), r.args, r.exc_info) for r in caplog.records]
    if state is not None:
        seen.append({file.name: file.read_bytes() for file in state.iterdir()})
        ledger = Ledger.open_to_read(str(state))
        seen.append(str(statement(ledger, now=5_000)))
        ledger.close()
    return seen


LIVES = [
    *((name, "listed", "file") for name in MECHANISMS),
    *((name, "other", "memory") for name in MECHANISMS),
    *(("local-hashing", "open", state) for state in ("file", "memory")),
]


@pytest.mark.parametrize(("mechanism", "domain", "kept_in"), LIVES)
def test_nothing_tells_two_values_apart(
    operator: Operator,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    mechanism: str,
    domain: str,
    kept_in: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(hubbub.sealing, "seal", stand_in)
    values, other = (VALUES[:-1], VALUES[-1]) if domain == "other" else (VALUES, "")
    contract = make_metric(
        values=values,
        other=other,
        open=domain == "open",
        mechanism="local-hashing" if domain == "open" else of_five(mechanism),
        periodic=(1_000, 9, 0),
    )
    bundle = make_bundle(operator, contract)
    metric = bundle.metrics[NAME]
    tried = (*VALUES[:4], *(OUTSIDE_OPEN if domain == "open" else OUTSIDE))
    if domain == "open":
        tried += (CANARY, CANARY[::-1], "\0")
    first: list[object] | None = None
    for number, value in enumerate(tried):
        answers: list[bytes | int] = []
        # Five reports of four rounds and one more; in between, the answered rounds' draws.
        for target, answered in zip((1, 0, 4, 2, 3), (1, 1, 1, 2, 0), strict=True):
            chance = target if mechanism == "randomised-response" else 2
            index = metric.domain.index_of(value) if isinstance(value, str) else None
            outside = 4 if other else chance
            tape = tape_for(metric.mechanism, outside if index is None else index, target)
            answers += [chance, b"i" * 16, *tape]
            answers += [0] * answered
        state = None if kept_in == "memory" else tmp_path / str(number) / "state"
        seen = observe(bundle, state, value, Tape(answers), caplog)
        told = capfd.readouterr()
        seen += [told.out, told.err]
        assert CANARY not in ascii(seen)
        if first is None:
            first = seen
            # So that the comparison is of something: five reports, four that left, logs.
            assert len([line for line in seen if line == Outcome.ALREADY_ANSWERED]) == 4
            assert len(seen) > 25
        assert seen == first, value


class Steady(Paced):
    """Chance that is the same for every device, however often it is asked."""

    def __init__(self) -> None:
        super().__init__(long=True)
        self._drawn = 0

    def digits(self, count: int) -> bytes:
        self._drawn += 1
        return bytes((self._drawn * 7 + place) % 256 for place in range(count))

    def below(self, n: int) -> int:
        return super().below(n) if n > ONCE_WITHIN else n // 2


@pytest.mark.parametrize("name", MEMOISED)
def test_no_memo_tells_which_values_occurred(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, name: str
) -> None:
    """The files of two devices whose values differ, and change, when their reports do not."""
    monkeypatch.setattr(hubbub.sealing, "seal", stand_in)
    contract = make_metric(
        values=VALUES[:-1],
        absent="nothing",
        mechanism=name,
        epsilon="0.25",
        permanent="0.5",
        periodic=(1_000, 9, 1_000),
    )
    bundle = make_bundle(operator, contract)
    mechanism = bundle.metrics[NAME].memoised
    assert mechanism is not None
    said = mechanism.respond(mechanism.memorise(Steady()), 0, Steady())
    monkeypatch.setattr(type(mechanism), "respond", lambda *_: said)
    histories = [("good",) * 4, ("good", "poor", "good", "poor"), ("fair", "poor", "good", None)]
    files: list[dict[str, bytes]] = []
    for number, history in enumerate(histories):
        state, clock, receiver = tmp_path / str(number), Clock(0), Receiver()
        with Device(
            bundle, state, clock=clock, source=Steady(), transport=receiver, budgets={"health": "8"}
        ) as client:
            for place, value in enumerate(history):
                clock.now = 1_000 * place
                assert client.metric(NAME).record(value), place
                if place == 1:
                    # The memo is deleted, and another one drawn.
                    assert client.opt_out()
                    assert client.opt_in()
            clock.now = 4_000
            client.flush()
            assert [submission.round for submission in receiver.submissions] == [2]
        files.append({file.name: file.read_bytes() for file in state.iterdir()})
    assert len(files[0]) == 2
    assert files[0] == files[1] == files[2]


def test_a_value_outside_the_domain_is_found_nowhere(
    operator: Operator,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Real chance, real seals, and everything going wrong that can."""
    caplog.set_level(logging.DEBUG)
    metrics = [
        make_metric(f"{name}{other and '.other'}", mechanism=name, other=other, epsilon="0.1")
        for name in MECHANISMS
        for other in ("", "others")
    ]
    outside = [CANARY] * len(metrics) + [CANARY * 20, CANARY + "\ud800"]
    metrics += [make_metric(f"open.{i}", open=True, epsilon="0.1") for i in (0, 1)]
    asked = len(metrics)
    bundle, receiver = make_bundle(operator, *metrics), Receiver(Refused("UNAVAILABLE"))
    seen: list[object] = []
    with Device(bundle, tmp_path, transport=receiver) as client:
        handles = [client.metric(name) for name in bundle.metrics]

        def explode(*arguments: object) -> bytes:
            raise RuntimeError(f"{arguments} {CANARY}")

        for owner, name in ((Ledger, "transact"), (Recorder, "_index")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, explode)
                seen += [h.record(value) for h, value in zip(handles, outside, strict=True)]
        seen += [h.record(value) for h, value in zip(handles, outside, strict=True)]
        assert seen[-asked:] == [Outcome.STORED_OUTSIDE_DOMAIN] * asked
        seen += [handle.record(CANARY) for handle in handles]
        seen += [client, vars(client), client.preview(), client.counts, handles, bundle]
        client.flush(1)
        client.flush(1)
        seen += [vars(client), client.preview(), receiver.submissions]
    seen += entries(tmp_path)
    seen += [(vars(record), record.getMessage()) for record in caplog.records]
    assert command.main(["show", str(tmp_path)]) == 0
    seen += capfd.readouterr()
    assert len(receiver.submissions) >= asked
    assert CANARY not in ascii(seen)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        assert not any(CANARY.encode(encoding) in content for content in files)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_tape_gives_the_report_it_is_made_for(name: str) -> None:
    mechanism = of_five(name)
    if isinstance(mechanism, LocalHashing):
        reports = [
            seed_of(mechanism)[1] * mechanism.prime * mechanism.buckets + said for said in range(4)
        ]
        payloads = [laws.number(report, mechanism.reports) for report in reports]
    else:
        payloads = sorted(laws.specified_law(mechanism, 0))
    for value in range(5):
        for target, payload in enumerate(payloads):
            tape = tape_for(mechanism, value, target)
            assert mechanism.randomise(value, Tape(tape)) == payload
