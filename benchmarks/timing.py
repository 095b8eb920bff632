"""Whether the time that a value takes tells which it is, or whether its report is true.

Draws of the first value and of the last are interleaved at random, and timed one by one; the
slowest 5 % of all are cut. Welch's t then compares the first value's with the last's, and those
whose report supports the value (the truth) with the others (a lie): |t| < 4.5 says that no
difference was seen (dudect: Reparaz, Balasch and Verbauwhede, DATE 2017). Chance and a busy
machine can make a difference once, so one that is seen is looked for twice more, and counts if it
is there each time. A memo is drawn before each look, and all draws of it are answered from it.

What limits it: a difference shows from about 4.5 standard errors on; the column ± has one, in
nanoseconds. Below that is what the processor's caches and branch predictor make of equal steps.

Run as `python benchmarks/timing.py [--draws N] [--mechanism NAME]`; exit status 1: a difference
is there.
"""

import argparse
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS, MEMOISED, Mechanism, MemoisedMechanism
from hubbub.randomness import SYSTEM
from hubbub.testing import Aggregator, metric
from hubbub_aggregator.planning.choice import best
from hubbub_aggregator.planning.memoised import Memo, best_memoised

DRAWS: Final = 100_000
LIMIT: Final = 4.5
LOOKS: Final = 3
SLOWEST: Final = 0.05
# Before the first draw that counts: caches are filled, and whatever is made once is made.
WARMING: Final = 1_000

ONE: Final = Epsilon.parse("1")
# By k: what a report tells, and what a row costs, so that a memo can be paid for.
MEMOS: Final = {4: ("1", "2"), 128: ("0.1", "0.2")}
CLIENT: Final = "Client.record"
# What one device answers before the next is taken, and for how much each.
ROUNDS: Final = 1_000
PRICE: Final = "0.03"

Action = Callable[[Any], Any]
Supports = Callable[[Any, Any], bool]
Look = Callable[["Subject", int], "Difference"]


class Subject(NamedTuple):
    """What is timed."""

    name: str
    values: Sequence[Any]
    ready: Callable[[], Callable[[], Action]]
    """Begins a look, and gives what is called before each draw for the draw's action."""
    supports: Supports | None = None
    """Whether what came out supports a value; None: that is not asked."""

    @property
    def ends(self) -> Sequence[Any]:
        """The first value and the last."""
        return self.values[0], self.values[-1]


class Difference(NamedTuple):
    """How much longer one group of draws takes than another, in nanoseconds."""

    usual: float
    """The median of all draws."""
    mean: float
    error: float

    @property
    def t(self) -> float:
        """Welch's (1947)."""
        return self.mean / self.error

    @property
    def seen(self) -> bool:
        return abs(self.t) >= LIMIT


def mechanism_subject(name: str, k: int) -> Subject:
    """A mechanism alone, at its best for k values."""
    if name in MEMOISED:
        epsilon, row = map(Epsilon.parse, MEMOS[k])
        return memoised_subject(best_memoised(name, k, epsilon, Memo(row)))
    mechanism = best(name, k, ONE)
    return one_time_subject(mechanism, lambda value: mechanism.randomise(value, SYSTEM))


def one_time_subject(mechanism: Mechanism, randomise: Action) -> Subject:
    """A way to randomise, whose payloads are the mechanism's."""
    return Subject(
        mechanism.name, range(mechanism.k), lambda: lambda: randomise, _supporter(mechanism)
    )


def memoised_subject(mechanism: MemoisedMechanism) -> Subject:
    """The answers of one memo, drawn afresh for each look."""

    def ready() -> Callable[[], Action]:
        memo = mechanism.memorise(SYSTEM)
        return lambda: lambda value: mechanism.respond(memo, value, SYSTEM)

    return Subject(mechanism.name, range(mechanism.k), ready, _supporter(mechanism))


def _supporter(mechanism: Mechanism) -> Supports:
    # From one memo's hash there are few reports, and each takes long to read.
    supported = lru_cache(maxsize=1_024)(mechanism.supported)
    return lambda payload, value: value in supported(payload)


def client_subject(k: int, **memo: str) -> Subject:
    """A client's `record`, its state in memory; from a memo if `permanent` says what a row costs."""
    values = [f"value {number:03}" for number in range(k)]
    asked = metric("m", values, every=86_400, rounds=ROUNDS, **{"epsilon": PRICE, **memo})
    return Subject(
        f"{CLIENT}, memoised" if memo else CLIENT,
        values,
        lambda: partial(next, _records(Aggregator(asked))),
    )


def _records(aggregator: Aggregator) -> Iterator[Action]:
    """`record` of a device whose next round has begun; of a new device when all are over."""
    while True:
        with aggregator.client() as client:
            handle = client.metric("m")
            for number in range(ROUNDS):
                aggregator.begin_round("m", number)
                yield handle.record


def first_and_last(subject: Subject, draws: int) -> Difference:
    """How much longer the first value takes than the last."""
    times, values, _ = _timed(subject, subject.ends, draws)
    return _difference(times, np.array([value == subject.values[0] for value in values]))


def truth_and_lie(subject: Subject, draws: int) -> Difference:
    """How much longer a report takes that supports its value than one that does not.

    Of values as likely as each other, so that reports of either kind say the same.
    """
    times, values, reports = _timed(subject, subject.values, draws)
    return _difference(times, np.array(list(map(subject.supports, reports, values))))


def _timed(
    subject: Subject, values: Sequence[Any], draws: int
) -> tuple[NDArray[np.int64], list[Any], list[Any]]:
    """Nanoseconds of so many draws, each of any of the values; the values, and what came out."""
    action_of_next = subject.ready()
    chosen = random.SystemRandom().choices(values, k=WARMING + draws)
    times, results = [0] * len(chosen), [None] * len(chosen)
    for draw, value in enumerate(chosen):
        action = action_of_next()
        begin = time.perf_counter_ns()
        result = action(value)
        times[draw] = time.perf_counter_ns() - begin
        results[draw] = result
    return np.array(times[WARMING:]), chosen[WARMING:], results[WARMING:]


def _difference(times: NDArray[np.int64], group: NDArray[np.bool_]) -> Difference:
    kept = times <= np.quantile(times, 1 - SLOWEST)
    one, other = times[kept & group], times[kept & ~group]
    error = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return Difference(float(np.median(times)), float(one.mean() - other.mean()), float(error))


def differs(subject: Subject, what: str, look: Look, draws: int) -> bool:
    """Whether a difference is seen in each of LOOKS. Prints each look."""
    for _ in range(LOOKS):
        seen = look(subject, draws)
        print(
            f"{subject.name:<30}{len(subject.values):>5}{seen.usual / 1e3:>9.2f}  {what:<13}"
            f"{seen.mean:>9.1f}{seen.error:>7.1f}{seen.t:>7.1f}",
            flush=True,
        )
        if not seen.seen:
            return False
    return True


def looks(subject: Subject) -> dict[str, Look]:
    """What is compared, by its name."""
    if subject.supports is None:
        return {"first − last": first_and_last}
    return {"first − last": first_and_last, "truth − lie": truth_and_lie}


def subjects(name: str | None) -> Iterator[Subject]:
    """What the name names; all if there is none."""
    for mechanism in [*MECHANISMS, *MEMOISED]:
        if name in (None, mechanism):
            yield from (mechanism_subject(mechanism, k) for k in MEMOS)
    if name in (None, CLIENT):
        yield client_subject(4)
        yield client_subject(4, epsilon="1", permanent="2")


def main() -> int:
    parser = argparse.ArgumentParser(description="Times that must not tell anything.")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each (default: %(default)s)")
    parser.add_argument("--mechanism", choices=[*MECHANISMS, *MEMOISED, CLIENT], metavar="NAME")
    options = parser.parse_args()
    gc.disable()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"{'':<30}{'k':>5}{'µs':>9}  {'':<13}{'ns':>9}{'±':>7}{'t':>7}", flush=True)
    failures = [
        f"{subject.name}, k = {len(subject.values)}: {what}"
        for subject in subjects(options.mechanism)
        for what, look in looks(subject).items()
        if differs(subject, what, look, options.draws)
    ]
    for failure in failures:
        print(f"|t| ≥ {LIMIT} in each of {LOOKS} looks: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
