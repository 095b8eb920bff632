"""What a device's value leaves behind: a report that could have come from any other value.

Two devices with different values, whose chance happens to give the same reports, must leave
the same files, logs and exceptions, to the byte. And a value outside the domain, which is
told to `record`'s caller alone, must be found nowhere.
"""

import contextlib
import io
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import hubbub
import hubbub.__main__ as command
import hubbub.sealing
from hubbub import Client, Outcome
from hubbub.contract import SealingKey
from hubbub.exact import Epsilon
from hubbub.ledger import Ledger
from hubbub.mechanisms import MECHANISMS
from hubbub.transport import Refused
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Paced, Receiver, entries

VALUES = ("excellent", "good", "fair", "poor", "none of these")
CANARY = "canary-0b5e9c7d41"
OUTSIDE: tuple[Any, ...] = (CANARY, "", None, 3, b"good", [CANARY], object())
NAME = "health.self_rated"


class Tape(Paced):
    """Chance that is written down before. Each answer must be asked for as it was foreseen."""

    def __init__(self, answers: Sequence[bytes | int]) -> None:
        super().__init__(long=True)
        self.answers = list(answers)

    def digits(self, count: int) -> bytes:
        answer = self.answers.pop(0)
        assert isinstance(answer, bytes)
        assert len(answer) == count
        return answer

    def below(self, n: int) -> int:
        if n > 1_000:
            return super().below(n)
        answer = self.answers.pop(0)
        assert isinstance(answer, int)
        assert answer < n
        return answer


def tape_for(mechanism: str, k: int, value: int, target: int) -> list[bytes | int]:
    """What chance must give for `value` to be reported as `target`.

    `target` is a value for randomised response, and for unary encoding a vector: its bit i
    is value i's. A digit of 0 is below every threshold's, one of 255 above.
    """
    if mechanism == "randomised-response":
        if value == target:
            return [bytes(8), 0]
        return [b"\xff" * 8, (target - value - 1) % k]
    bits = [target >> i & 1 for i in range(k)]
    if mechanism == "symmetric-unary":
        bits[value] ^= 1
        own = b""
    else:
        own = b"\xff" if bits[value] else b"\0"
    # A bit of 1 is a digit below the threshold; the last value's comes first.
    return [bytes(0 if bit else 255 for bit in reversed(bits)) + own]


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
            yield client.flush(0.1), client.flush(0.1)
        yield metric.record(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "transaction", _full)
        yield metric.record(value)
    client.enabled = False
    yield metric.record(value)
    yield dict(client.counts), repr(client.metric(NAME)), client.preview()
    client.enabled = True
    clock.now = 4_000
    yield bool(metric.record(value))
    clock.now = 1e12
    yield metric.record(value)


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
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            assert command.main(["show", str(state)]) == 0
        seen.append(shown.getvalue())
    return seen


@pytest.mark.parametrize("memory", [False, True], ids=["file", "memory"])
@pytest.mark.parametrize("other", ["", "none of these"], ids=["no-other", "other"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nothing_tells_two_values_apart(
    operator: Operator,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    mechanism: str,
    other: str,
    memory: bool,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(hubbub.sealing, "seal", stand_in)
    values = VALUES[:-1] if other else VALUES
    metric = make_metric(values=values, other=other, mechanism=mechanism, periodic=(1_000, 9, 0))
    bundle = make_bundle(operator, metric)
    k = bundle.metrics[NAME].domain.k
    assert k == 5
    first: list[object] | None = None
    for number, value in enumerate((*VALUES[:4], *OUTSIDE)):
        answers: list[bytes | int] = []
        # Five reports of four rounds and one more; in between, the answered rounds' draws.
        for target, answered in zip((1, 0, 4, 2, 3), (1, 1, 1, 2, 0), strict=True):
            chance = target if mechanism == "randomised-response" else 2
            outside = 4 if other else chance
            index = VALUES.index(value) if isinstance(value, str) and value in VALUES else outside
            answers += [chance, b"i" * 16, *tape_for(mechanism, k, index, target)]
            answers += [0] * answered
        state = None if memory else tmp_path / str(number) / "state"
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


def test_a_tape_gives_the_report_it_is_made_for() -> None:
    for name, kind in MECHANISMS.items():
        mechanism = kind.calibrate(5, Epsilon.parse("1"))
        for value in range(5):
            for target in range(5 if name == "randomised-response" else 32):
                payload = mechanism.randomise(value, Tape(tape_for(name, 5, value, target)))
                assert payload == bytes([target])


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
    bundle, receiver = make_bundle(operator, *metrics), Receiver(Refused("UNAVAILABLE"))
    seen: list[object] = []
    with Device(bundle, tmp_path, transport=receiver) as client:
        handles = [client.metric(name) for name in bundle.metrics]

        def explode(*arguments: object) -> bytes:
            raise RuntimeError(f"{arguments} {CANARY}")

        for owner, name in ((Ledger, "transaction"), (Client, "_index")):
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, explode)
                seen += [handle.record(CANARY) for handle in handles]
        seen += [handle.record(CANARY) for handle in handles]
        assert seen[-6:] == [Outcome.STORED_OUTSIDE_DOMAIN] * 6
        seen += [handle.record(CANARY) for handle in handles]
        seen += [client, vars(client), client.preview(), client.counts, handles, bundle]
        client.flush(1)
        client.flush(1)
        seen += [vars(client), client.preview(), receiver.submissions]
    seen += entries(tmp_path)
    seen += [(vars(record), record.getMessage()) for record in caplog.records]
    assert command.main(["show", str(tmp_path)]) == 0
    seen += capfd.readouterr()
    assert len(receiver.submissions) >= 6
    assert CANARY not in ascii(seen)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
        assert not any(CANARY.encode(encoding) in content for content in files)
