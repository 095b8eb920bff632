"""Whether the time that a value takes tells which it is, or whether its report is true.

Draws of two kinds are interleaved at random and timed one by one, the slowest 5 % are cut, and
Welch's t compares the rest: |t| < 4.5 says that no difference was seen (dudect: Reparaz, Balasch
and Verbauwhede, DATE 2017). Compared are the first value with the last, and, of values drawn at
random, reports that support theirs (the truth) with those that do not (a lie). A memo is drawn
before each look, and all its draws are answered from it.

Chance and a busy machine can show a difference that is not there, so one that is seen is looked
for twice more, and counts if it is there each time.

What limits it: a difference is seen from 4.5 standard errors on, and the column ± shows one.
Python's steps are the same for every value; what caches and branch predictors make of them, some
nanoseconds, is below that, unless the machine is very quiet.

Run as `python benchmarks/timing.py [--draws N] [--mechanism NAME]`. Exit status 1: there is a
difference.
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
# Before those that count: what is made once is made, and caches are filled.
WARMING_DRAWS: Final = 1_000

ONE: Final = Epsilon.parse("1")
# By k: what a report from a memo tells, and what a row costs, so that the memo can be paid for.
MEMOS: Final = {4: ("1", "2"), 128: ("0.1", "0.2")}
CLIENT: Final = "Client.record"
# A device answers so many rounds, at this price, before the next takes its place.
ROUNDS: Final = 1_000
PRICE: Final = "0.03"

Action = Callable[[Any], Any]
Supports = Callable[[Any, Any], bool]


class Subject(NamedTuple):
    """What is timed."""

    name: str
    values: Sequence[Any]
    begin: Callable[[], Callable[[], Action]]
    """Begins a look; what it returns is called before every draw, for the draw's action."""
    supports: Supports | None = None
    """Whether what came out supports a value; None: nothing is to be told from it."""


class Difference(NamedTuple):
    """By how much one kind of draw takes longer than another, in nanoseconds."""

    usual: float
    """The median of all draws."""
    mean: float
    error: float
    """The standard error of the mean."""

    @property
    def t(self) -> float:
        return self.mean / self.error

    @property
    def seen(self) -> bool:
        return abs(self.t) >= LIMIT


Look = Callable[[Subject, int], Difference]


def mechanism_subject(name: str, k: int) -> Subject:
    """A mechanism alone, at its best for k values."""
    if name in MEMOISED:
        epsilon, row = map(Epsilon.parse, MEMOS[k])
        return memoised_subject(best_memoised(name, k, epsilon, Memo(row)))
    mechanism = best(name, k, ONE)
    return one_time_subject(mechanism, lambda value: mechanism.randomise(value, SYSTEM))


def one_time_subject(mechanism: Mechanism, randomise: Action) -> Subject:
    """Some way to randomise whose payloads are the mechanism's."""
    return Subject(
        mechanism.name, range(mechanism.k), lambda: lambda: randomise, _supporter(mechanism)
    )


def memoised_subject(mechanism: MemoisedMechanism) -> Subject:
    """Answers from a memo."""

    def begin() -> Callable[[], Action]:
        memo = mechanism.memorise(SYSTEM)
        return lambda: lambda value: mechanism.respond(memo, value, SYSTEM)

    return Subject(mechanism.name, range(mechanism.k), begin, _supporter(mechanism))


def _supporter(mechanism: Mechanism) -> Supports:
    # One memo's hash makes few different reports, and each takes long to read.
    supported = lru_cache(maxsize=1_024)(mechanism.supported)
    return lambda payload, value: value in supported(payload)


def client_subject(name: str, k: int, *, epsilon: str, permanent: str = "") -> Subject:
    """All that `record` does, of a client whose state is in memory."""
    values = [f"value {number}" for number in range(k)]
    asked = metric("m", values, epsilon=epsilon, permanent=permanent, every=86_400, rounds=ROUNDS)
    return Subject(name, values, lambda: partial(next, _records(Aggregator(asked))))


def _records(aggregator: Aggregator) -> Iterator[Action]:
    """`record` of a device whose next round has begun; when none is left, of a new device."""
    while True:
        with aggregator.client() as client:
            handle = client.metric("m")
            for number in range(ROUNDS):
                aggregator.begin_round("m", number)
                yield handle.record


def first_and_last(subject: Subject, draws: int) -> Difference:
    """By how much the first value takes longer than the last."""
    first, last = subject.values[0], subject.values[-1]
    times, values, _ = _timed(subject, (first, last), draws)
    return _difference(times, np.array([value == first for value in values]))


def truth_and_lie(supports: Supports, subject: Subject, draws: int) -> Difference:
    """By how much a report that supports its value takes longer than one that does not."""
    times, values, reports = _timed(subject, subject.values, draws)
    return _difference(times, np.array(list(map(supports, reports, values))))


def _timed(
    subject: Subject, values: Sequence[Any], draws: int
) -> tuple[NDArray[np.int64], list[Any], list[Any]]:
    """Nanoseconds of so many draws, the values, which are drawn at random, and what came out."""
    next_action = subject.begin()
    chosen = random.SystemRandom().choices(values, k=WARMING_DRAWS + draws)
    times, results = [0] * len(chosen), [None] * len(chosen)
    for draw, value in enumerate(chosen):
        action = next_action()
        begin = time.perf_counter_ns()
        result = action(value)
        times[draw] = time.perf_counter_ns() - begin
        results[draw] = result
    return np.array(times[WARMING_DRAWS:]), chosen[WARMING_DRAWS:], results[WARMING_DRAWS:]


def _difference(times: NDArray[np.int64], of_one: NDArray[np.bool_]) -> Difference:
    """Between those of one kind and all others, without the slowest (Welch, 1947)."""
    kept = times <= np.quantile(times, 1 - SLOWEST)
    one, other = times[kept & of_one], times[kept & ~of_one]
    error = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return Difference(float(np.median(times)), float(one.mean() - other.mean()), float(error))


def differs(subject: Subject, what: str, look: Look, draws: int) -> bool:
    """Whether a difference is seen every time; prints a line each time it is looked for."""
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


def subjects(name: str | None) -> Iterator[Subject]:
    """What goes by a name; all there is if it is None."""
    for mechanism in [*MECHANISMS, *MEMOISED]:
        if name in (None, mechanism):
            yield from (mechanism_subject(mechanism, k) for k in MEMOS)
    if name in (None, CLIENT):
        yield client_subject(CLIENT, 4, epsilon=PRICE)
        yield client_subject(f"{CLIENT}, memoised", 4, epsilon="1", permanent="2")


def comparisons(subject: Subject) -> dict[str, Look]:
    """What is looked for, by what it is called."""
    looks: dict[str, Look] = {"first − last": first_and_last}
    if subject.supports is not None:
        looks["truth − lie"] = partial(truth_and_lie, subject.supports)
    return looks


def main() -> int:
    parser = argparse.ArgumentParser(description="Times that must not tell anything.")
    parser.add_argument("--draws", type=int, default=DRAWS, help="for a look; %(default)s")
    parser.add_argument("--mechanism", choices=[*MECHANISMS, *MEMOISED, CLIENT], metavar="NAME")
    options = parser.parse_args()
    gc.disable()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"{'':<30}{'k':>5}{'µs':>9}  {'':<13}{'ns':>9}{'±':>7}{'t':>7}", flush=True)
    failures = [
        f"{subject.name}, k = {len(subject.values)}: {what}"
        for subject in subjects(options.mechanism)
        for what, look in comparisons(subject).items()
        if differs(subject, what, look, options.draws)
    ]
    for failure in failures:
        print(f"|t| ≥ {LIMIT} in each of {LOOKS} looks: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
