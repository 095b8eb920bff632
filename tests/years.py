"""Years of a device: the shipped Client lives through them in a moment, all it sent is opened."""

from collections.abc import Sequence
from itertools import permutations
from math import exp
from typing import Any, NamedTuple

from hubbub.limits import REPORT_ID_BYTES
from hubbub.randomness import SYSTEM, Source
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device, Opener, Receiver, Submission

DAY = 86_400
NAME = "health.self_rated"
VALUES = ("excellent", "good", "fair", "poor")

Secret = tuple[int, ...]
"""A value for each day of a cycle."""

CONSTANT: list[Secret] = [(value,) for value in range(4)]
# All that go through the same changes: every fourth day it is the same value again.
CYCLE: list[Secret] = list(permutations(range(4)))


class Case(NamedTuple):
    """A way to ask for a year, secrets among which to find one device's, and what protects it."""

    name: str
    options: dict[str, Any]
    secrets: list[Secret]
    epsilon: float
    """How far any two of the secrets may be told apart by a whole life."""

    @property
    def bound(self) -> float:
        """How often any attack finds the secret at most, if all are as likely."""
        likelihood = exp(self.epsilon)
        return likelihood / (likelihood + len(self.secrets) - 1)

    def contract(self, days: int) -> bytes:
        periodic = {} if self.name == "once" else {"periodic": (DAY, days, DAY)}
        return make_metric(NAME, **{"values": VALUES, **periodic, **self.options})


def _cases() -> list[Case]:
    fresh, sampled = {"epsilon": "0.25"}, {"epsilon": "0.25", "join": 8}
    row = {"epsilon": "0.25", "permanent": "0.5"}
    hashed = {
        "values": VALUES[:3],
        "mechanism": "memoised-local-hashing",
        "epsilon": "0.5",
        "permanent": "1",
    }
    cases = [Case("once", {"epsilon": "2"}, CONSTANT, 2)]
    for secrets in (CONSTANT, CYCLE):
        cases += [Case("fresh", fresh, secrets, 2), Case("sampled", sampled, secrets, 2)]
        # Every distinct value of a life costs ε∞; the memo of all four, 2.
        cases += [
            Case(name, {**row, "mechanism": name}, secrets, 0.5 * len(secrets[0]))
            for name in (
                "memoised-symmetric-unary",
                "memoised-optimised-unary",
                "memoised-randomised-response",
            )
        ]
    # Whether two values share a cell says the hash, and that is public: only secrets that go
    # through the same changes of cells are protected.
    cases.append(Case("memoised-local-hashing", hashed, [(0,), (1,), (2,)], 1))
    cases.append(Case("memoised-local-hashing", hashed, [(0, 1), (1, 0)], 2))
    return cases


CASES = _cases()


Answer = tuple[int, bytes]
"""A round, and the payload that was sent for it."""


class Sent(NamedTuple):
    """A report as the aggregator has it."""

    submission: Submission
    at: float
    """When it came, seconds UTC."""
    due_at: int
    """When it would have come from a device that is looked at more than once a day."""
    report: bytes
    """Opened: id and payload."""

    @property
    def answer(self) -> Answer:
        return self.submission.round, self.report[REPORT_ID_BYTES:]


class _Listener(Receiver):
    """Notes when reports come."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.moments: list[float] = []
        self._clock = clock

    def submit(self, *arguments: Any) -> Sequence[int]:
        self.moments.append(self._clock.now)
        return super().submit(*arguments)


class Years:
    """An operator that asks one question, and devices that are asked."""

    def __init__(self, operator: Operator, contract: bytes) -> None:
        self.bundle = make_bundle(operator, contract)
        self.metric = self.bundle.metrics[NAME]
        self._opener = Opener(operator)

    def live(
        self, secret: Secret, days: int, *, budget: str = "2", source: Source = SYSTEM
    ) -> list[Sent]:
        """What a device sends in so many days, on each of which it records its value."""
        clock = Clock(0)
        listener = _Listener(clock)
        labels = self.metric.domain.labels
        due = dict[int, int]()
        with Device(
            self.bundle,
            None,
            clock=clock,
            source=source,
            transport=listener,
            budgets={"health": budget},
        ) as device:
            handle = device.metric(NAME)
            for day in range(days):
                clock.now = (day + 0.5) * DAY
                handle.record(labels[secret[day % len(secret)]])
                due.update((waiting.round, waiting.due_at) for waiting in device.preview())
                device.flush()
            # The last rounds' reports leave when they are over.
            clock.now = (days + 0.9) * DAY
            device.flush()
        return [
            Sent(submission, at, due[submission.round], self._opener(submission))
            for submission, at in zip(listener.submissions, listener.moments, strict=True)
        ]

    def answers(self, secret: Secret, days: int, *, budget: str = "2") -> list[Answer]:
        """What it says in them."""
        return [one.answer for one in self.live(secret, days, budget=budget)]
