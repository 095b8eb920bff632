"""A signal's handler that raises, such as an app's time limit, in the midst of a record.

The interpreter runs handlers when a call has begun or has ended. So an exception is raised at each
such moment of it, one after the other, and then nothing may be left open.
"""

import sys
import threading
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import hubbub
from hubbub import Outcome
from hubbub.ledger import Ledger
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, entries

MOMENTS = ("call", "return", "c_return")
SDK = str(Path(hubbub.__file__).parent)


class Struck(BaseException):
    """What the handler raises."""


class Strike:
    """Raises at the moment with a number, of all that are within the SDK."""

    def __init__(self, number: int) -> None:
        self._left = number
        self.struck = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        ours = frame.f_code.co_filename.startswith(SDK)
        if event not in MOMENTS or self.struck or not ours:
            return
        self._left -= 1
        if self._left < 0:
            self.struck = True
            raise Struck


def switch_elsewhere(ledger: Ledger) -> object:
    """Read by another thread: None if it is kept waiting."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(ledger.switch()), daemon=True)
    thread.start()
    thread.join(20)
    return found[0] if found else None


# A file that was just opened is closed when nobody has it any more, which Python warns of.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("on_disk", [False, True])
def test_nothing_is_left_open(operator: Operator, tmp_path: Path, on_disk: bool) -> None:
    bundle = make_bundle(operator, make_metric(epsilon="0.01", periodic=(1_000, 3_000, 1_000)))
    clock, stored = Clock(0), 0
    with Device(bundle, tmp_path if on_disk else None, clock=clock) as device:
        handle, ledger = device.metric("health.self_rated"), device._ledger
        for number in count():
            clock.now += 1_000
            strike = Strike(number)
            sys.setprofile(strike)
            try:
                handle.record("good")
            except Struck:
                pass
            finally:
                sys.setprofile(None)
            if not strike.struck:
                break
            assert not ledger._connected().in_transaction, number
            assert switch_elsewhere(ledger) is not None, number
            # It was stored or it was not, and the next one is.
            assert handle.record("good") in (Outcome.STORED, Outcome.ALREADY_ANSWERED)
            stored += 1
        kept = ledger.entries()
    assert number > 100
    assert len(kept) == len({entry.round for entry in kept}) == stored + 1
    if on_disk:
        assert len(entries(tmp_path)) == len(kept)
