"""Devices for tests: the shipped Client, with its clock, randomness and network replaced."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hubbub import Bundle, Client
from hubbub.ledger import Ledger
from hubbub.randomness import SYSTEM, Source
from hubbub.rows import Departure, Entry
from hubbub.sealing import context
from hubbub.spread import ONCE_WITHIN
from hubbub.transport import Refused
from hubbub_aggregator.keys import OpeningKey, load_opening_keys
from tests.bundles import Operator

# Long enough for a slow machine at its busiest; nothing is measured by it. Seconds.
PATIENCE = 30.0

COUNTED, DUPLICATE, NOT_OPENED, NOT_CANONICAL = 1, 2, 3, 4


class Clock:
    """Shows what it was set to."""

    def __init__(self, now: float = 500) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Paced:
    """The system's randomness, but for when reports leave: always at once, or as late as can be.

    Those draws are told by being out of more than any metric here has values.
    """

    base = 256

    def __init__(self, *, long: bool) -> None:
        self._long = long

    def digits(self, count: int) -> bytes:
        return SYSTEM.digits(count)

    def below(self, n: int) -> int:
        if n > ONCE_WITHIN:
            return n - 1 if self._long else 0
        return SYSTEM.below(n)


HASTY, PATIENT = Paced(long=False), Paced(long=True)


class Submission(NamedTuple):
    """What reached the receiving side."""

    digest: bytes
    round: int
    key_id: bytes
    sealed: bytes


Answer = Callable[[Submission], Sequence[int]]


class Receiver:
    """The receiving side, in this process: keeps what arrives, answers as it is told.

    `answers` are used up in their order, then everything is counted; an exception is raised.
    """

    def __init__(
        self, *answers: Sequence[int] | Exception | Answer, destination: str = "localhost:7443"
    ) -> None:
        self.destination = destination
        self.submissions: list[Submission] = []
        self.timeouts: list[float] = []
        self.answers = list(answers)
        self.bundle: bytes | None = None
        """The SignedBundle in force; None: there is none to be had."""
        self.fetches = 0
        self.closed = False

    def submit(
        self, digest: bytes, round_number: int, key_id: bytes, sealed: bytes, timeout: float
    ) -> Sequence[int]:
        submission = Submission(digest, round_number, key_id, sealed)
        self.submissions.append(submission)
        self.timeouts.append(timeout)
        answer = self.answers.pop(0) if self.answers else [COUNTED]
        if isinstance(answer, Exception):
            raise answer
        return answer(submission) if callable(answer) else answer

    def fetch_bundle(self, timeout: float) -> bytes:
        self.fetches += 1
        if self.bundle is None:
            raise Refused("UNAVAILABLE")
        return self.bundle

    def close(self) -> None:
        self.closed = True


def unreachable(times: int = 1_000) -> Receiver:
    """A receiver that nothing reaches."""
    return Receiver(*[Refused("UNAVAILABLE")] * times)


class Opener:
    """Opens what a device sealed, with all the private keys an operator ever had."""

    def __init__(self, operator: Operator) -> None:
        self._keys: dict[bytes, OpeningKey] = dict(load_opening_keys(operator.folder))

    def __call__(self, submission: Submission) -> bytes:
        """The report, id ‖ payload."""
        info = context(submission.digest, submission.round, submission.key_id)
        report = self._keys[submission.key_id].open(info, submission.sealed)
        assert report is not None
        return report


class Device(Client):
    """A Client whose time and chance the test decides; by itself it sends nothing for seconds."""

    def __init__(
        self,
        bundle: Bundle | Path,
        state_dir: Path | None,
        *,
        clock: Callable[[], float] | None = None,
        source: Source = PATIENT,
        **options: Any,
    ) -> None:
        self._clock = clock or Clock()
        self._source = source
        if isinstance(bundle, Bundle):
            options.setdefault("operator_key", bundle.operator)
        options.setdefault("budgets", {"health": "8"})
        options.setdefault("transport", unreachable())
        super().__init__(bundle, state_dir=state_dir, **options)


def entries(state_dir: Path) -> list[Entry]:
    """What a state directory says."""
    ledger = Ledger.open_to_read(str(state_dir))
    try:
        return ledger.entries()
    finally:
        ledger.close()


def departures(state_dir: Path) -> list[Departure]:
    """What left, as a state directory says."""
    ledger = Ledger.open_to_read(str(state_dir))
    try:
        return ledger.departures()
    finally:
        ledger.close()


def spent(all_entries: Iterable[Entry]) -> int:
    """What was charged, in units of 10^-12 of ε."""
    return sum(entry.charge for entry in all_entries)


def soon(condition: Callable[[], bool]) -> bool:
    """Wait until it holds; nothing is measured by how long that may take."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.002)
    return condition()
