"""A device whose owner wants to know: it has been asked in every way there is, for a month."""

import random
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

from hubbub import Bundle, Client
from hubbub.mechanisms import MEMOISED
from hubbub.transport import Refused
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import NOT_OPENED, Clock, Device, Receiver

DAY: Final = 86_400
# 1 January 2027.
START: Final = 1_798_761_600
MONTH: Final = (DAY, 30, DAY)

ONCE, FRESH, SAMPLED, OPEN = "health.self_rated", "commute.mode", "sleep.hours", "food.missed"
MEMO: Final = {name: f"mood.{name.removeprefix('memoised-')}" for name in MEMOISED}
BUDGETS: Final = {"health": "2", "commute": "4", "sleep": "3", "food": "1", "mood": "32"}

ANSWERS: Final = {
    ONCE: ("good",),
    FRESH: ("by bicycle", "by car", "by bicycle"),
    SAMPLED: ("7", "8", "6"),
    OPEN: ("fresh yeast",),
    **dict.fromkeys(MEMO.values(), ("good", "good", "bad")),
}


class Seeded:
    """Randomness that is the same in every run."""

    base = 256

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def digits(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def below(self, n: int) -> int:
        return self._random.randrange(n)


def contracts() -> Mapping[str, bytes]:
    """A metric for every form of schedule, and every mechanism with a memo; by name."""
    made = {
        ONCE: make_metric(starts=START),
        FRESH: make_metric(
            FRESH,
            question="How did you get to work today?",
            source="commute",
            values=("on foot", "by bicycle", "by bus or train", "by car"),
            other="otherwise",
            absent="stayed at home",
            epsilon="0.5",
            starts=START,
            periodic=(DAY, 20, DAY),
        ),
        SAMPLED: make_metric(
            SAMPLED,
            question="How many hours did you sleep last night?",
            source="sleep",
            values=tuple(str(hours) for hours in range(13)),
            starts=START,
            periodic=MONTH,
            join=3,
        ),
        OPEN: make_metric(
            OPEN,
            question="What did you look for and not find?",
            source="food",
            open=True,
            retain=True,
            epsilon="ln 2",
            starts=START,
            ends=START + 30 * DAY,
        ),
    }
    for mechanism, name in MEMO.items():
        made[name] = make_metric(
            name,
            question="What was your mood today?",
            source="mood",
            values=("good", "middling", "bad"),
            absent="not asked",
            epsilon="0.5",
            permanent="1",
            mechanism=mechanism,
            starts=START,
            periodic=MONTH,
        )
    return made


def make(operator: Operator, *names: str, **options: Any) -> Bundle:
    """A bundle of some of these metrics; of all if none is named."""
    made = contracts()
    return make_bundle(operator, *(made[name] for name in names or made), **options)


class Owned:
    """A device with its state in memory, so that nothing happens by itself, and its days."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.receiver = Receiver()
        self._clock = Clock(START)
        self.client: Client = Device(
            bundle,
            None,
            clock=self._clock,
            source=Seeded(1),
            budgets={metric.source: BUDGETS[metric.source] for metric in bundle.metrics.values()},
            transport=self.receiver,
        )
        self._handles = {name: self.client.metric(name) for name in bundle.metrics}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def days(self, first: int, last: int, *, timeout: float = 5.0) -> None:
        """Answer everything that is asked on some days, at noon, and send what is due."""
        for day in range(first, last):
            self._clock.now = START + day * DAY + DAY // 2
            for name, handle in self._handles.items():
                handle.record(ANSWERS[name][day % len(ANSWERS[name])])
            self.client.flush(timeout)


@contextmanager
def month(operator: Operator, *names: str) -> Generator[Owned]:
    """A device that answered for most of a month; the same in every run, but for keys."""
    with Owned(make(operator, *names)) as owned:
        owned.days(0, 6)
        owned.receiver.answers[:] = [Refused("ROUND_CLOSED"), [NOT_OPENED]]
        owned.days(6, 24)
        yield owned
