"""How well two reports are known to be one device's, from all that the aggregator sees of them.

10,000 pairs of two rounds of one device, and as many of two devices, all of the same value; every
report from a shipped Client, by itself. A pair looks the more alike the fewer bits of ciphertext
or report id differ, the closer in its round it left, and the fewer places of the payload differ.
Shown is how often a pair of one device looks more alike than one of two (AUC): 0.500 where
nothing is to be seen. Beside the payload's stands what is computed for it; what thirty rounds
tell, and how often a change of value between them is noticed, is computed alone.

What limits it: each device opens a ledger, draws a memo, and seals two or three reports, some
milliseconds in all; a line takes a minute or two.

Run as `python benchmarks/linkability.py [PAIRS]`.
"""

import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# The devices are those of the tests.
sys.path.insert(0, str(Path(__file__).parents[1]))

from hubbub.exposure import change_noticed, linked
from hubbub.limits import REPORT_ID_BYTES
from hubbub.mechanisms import MEMOISED, MemoisedLocalHashing
from tests.bundles import Operator
from tests.years import DAY, VALUES, Case, Sent, Years

PAIRS = 10_000
ROUNDS = 30

Pair = tuple[Sent, Sent]

_MEMO = {"values": VALUES, "epsilon": "1", "permanent": "2"}
CASES = [
    Case("fresh", {"epsilon": "1"}, [], 2),
    Case("sampled", {"epsilon": "1", "join": 2}, [], 2),
    *(Case(name, {**_MEMO, "mechanism": name}, [], 0) for name in MEMOISED),
]


class Areas(NamedTuple):
    """By what is compared: how often a pair of one device looks more alike than one of two."""

    ciphertext: float
    report_id: float
    moment: float
    payload: float


def measure(operator: Operator, case: Case, pairs: int) -> tuple[Any, Areas]:
    """The case's mechanism, and the areas under its curves."""
    days = 3  # of which a sampled schedule joins two, and all others are compared in two
    years = Years(operator, case.contract(days))
    lives = [sorted(years.live((0,), days, budget="32"), key=_round) for _ in range(pairs)]
    one, two = _pairs(lives)
    mechanism = years.metric.mechanism
    compared: Sequence[Callable[[Sent, Sent], float]] = (
        lambda a, b: _bits_apart(a.submission.sealed, b.submission.sealed),
        lambda a, b: _bits_apart(a.report[:REPORT_ID_BYTES], b.report[:REPORT_ID_BYTES]),
        lambda a, b: abs(a.due_at - b.due_at - DAY * (_round(a) - _round(b))),
        lambda a, b: _places_apart(mechanism, a.answer[1], b.answer[1]),
    )
    return mechanism, Areas(*(_area(apart, one, two) for apart in compared))


def _round(sent: Sent) -> int:
    return sent.submission.round


def _pairs(lives: Sequence[Sequence[Sent]]) -> tuple[list[Pair], list[Pair]]:
    """Of one device, and of two that answered the same rounds.

    Two reports of one round are of two devices: that is no secret, and tells nothing else.
    """
    groups: dict[tuple[int, ...], list[Sequence[Sent]]] = defaultdict(list)
    for life in lives:
        groups[tuple(map(_round, life))].append(life)
    one = [(life[0], life[1]) for life in lives]
    two = [
        (life[0], neighbour[1])
        for group in groups.values()
        for life, neighbour in zip(group, [*group[1:], group[0]], strict=True)
    ]
    return one, two


def _bits_apart(one: bytes, other: bytes) -> int:
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_count()


def _places_apart(mechanism: Any, one: bytes, other: bytes) -> int:
    if isinstance(mechanism, MemoisedLocalHashing):
        seeds, cells = zip(mechanism.read(one), mechanism.read(other), strict=True)
        return 2 * (seeds[0] != seeds[1]) + (cells[0] != cells[1])
    return len({*mechanism.supported(one)} ^ {*mechanism.supported(other)})


def _area(apart: Callable[[Sent, Sent], float], one: Sequence[Pair], two: Sequence[Pair]) -> float:
    """How often a distance of the first is below one of the second, ties counted by half."""
    near, far = (np.array([apart(*pair) for pair in pairs]) for pairs in (one, two))
    far.sort()
    below, up_to = (np.searchsorted(far, near, side=side) for side in ("left", "right"))
    return float(1 - (below + up_to).mean() / 2 / len(far))


def main(pairs: int = PAIRS) -> None:
    columns = ("schedule", "ciphertext", "report id", "moment", "payload", "computed")
    print(f"{columns[0]:<30}" + "".join(f"{column:>12}" for column in columns[1:]))
    with tempfile.TemporaryDirectory() as folder:
        operator = Operator.create(Path(folder) / "keys")
        for case in CASES:
            mechanism, areas = measure(operator, case, pairs)
            shown = "".join(f"{area:>12.3f}" for area in (*areas, linked(mechanism, 1)))
            print(f"{case.name:<30}{shown}", flush=True)
            if case.name in MEMOISED:
                print(
                    f"  by {ROUNDS} rounds {linked(mechanism, ROUNDS):.3f}; a change between them"
                    f" is noticed {change_noticed(mechanism, ROUNDS):.3f} of the time"
                )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
