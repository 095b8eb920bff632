"""Microseconds to randomise one value, beside the floor and the obvious exact loop.

The floor is one `os.urandom`: of eight bytes for every value, which is what unary encoding reads;
of one for every value, for subset selection; and of a single byte for the others. The loop is
exactness by the obvious way: `secrets.randbits(64) < threshold` for every bit,
`secrets.SystemRandom().sample` for a set, points drawn until one is as orthogonal as it should be.
Parameters are the best for the line's k. What stands on a line is measured in turns within the same
moment, so that the ratios hold even where the machine's speed changes; the best of many short turns
is shown.

Run as `python benchmarks/randomise.py`.
"""

import os
import secrets
import time
from collections.abc import Callable
from math import comb

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MECHANISMS,
    LocalHashing,
    Mechanism,
    OptimisedUnary,
    ProjectiveGeometry,
    RandomisedResponse,
    SubsetSelection,
    SymmetricUnary,
)
from hubbub.randomness import SYSTEM
from hubbub_aggregator.planning.choice import best

SIZES = (2, 16, 128, 1_024, 16_384)
EPSILON = Epsilon.parse("1")
ONE = 1 << 64
BYTES_A_VALUE = {"symmetric-unary": 8, "optimised-unary": 8, "subset-selection": 1}
TURNS = 25
SECONDS_PER_TURN = 0.004


def fastest(*actions: Callable[[], object]) -> list[float]:
    """Microseconds of one call of each action: the best of TURNS turns taken alternately."""
    counts = [_calls_per_turn(action) for action in actions]
    best = [float("inf")] * len(actions)
    for _ in range(TURNS):
        for i, action in enumerate(actions):
            best[i] = min(best[i], _seconds(action, counts[i]) / counts[i])
    return [seconds * 1e6 for seconds in best]


def _calls_per_turn(action: Callable[[], object]) -> int:
    action()
    return max(1, int(SECONDS_PER_TURN / max(_seconds(action, 3) / 3, 1e-9)))


def _seconds(action: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        action()
    return time.perf_counter() - start


def naive_loop(mechanism: Mechanism, value: int) -> Callable[[], object]:
    """The same law, by the obvious way."""
    match mechanism:
        case RandomisedResponse():
            return lambda: _response(mechanism, value)
        case SymmetricUnary():
            return lambda: _unary(mechanism.k, value, ONE - mechanism.flip, mechanism.flip)
        case OptimisedUnary():
            return lambda: _unary(mechanism.k, value, ONE // 2, mechanism.raised)
        case SubsetSelection():
            return lambda: _subset(mechanism, value)
        case ProjectiveGeometry():
            return lambda: _point(mechanism, value)
        case LocalHashing():
            return lambda: _hash(mechanism, value)
        case _:
            raise TypeError(mechanism)


def _response(mechanism: RandomisedResponse, value: int) -> bytes:
    lie = secrets.randbelow(mechanism.k - 1)
    tells = secrets.randbits(64) < mechanism.keep
    report = value if tells else (value + 1 + lie) % mechanism.k
    return report.to_bytes(mechanism.payload_size, "big")


def _unary(k: int, value: int, own: int, other: int) -> bytes:
    bits = 0
    for i in range(k):
        bits |= (secrets.randbits(64) < (own if i == value else other)) << i
    return bits.to_bytes((k + 7) // 8, "little")


def _subset(mechanism: SubsetSelection, value: int) -> bytes:
    included = secrets.randbits(64) < mechanism.included
    others = [other for other in range(mechanism.k) if other != value]
    members = secrets.SystemRandom().sample(others, mechanism.size - included)
    members += [value] * included
    if mechanism.ranks is None:
        bits = sum(1 << member for member in members)
        return bits.to_bytes(mechanism.payload_size, "little")
    rank = sum(comb(member, place) for place, member in enumerate(sorted(members), 1))
    return rank.to_bytes(mechanism.payload_size, "big")


def _point(mechanism: ProjectiveGeometry, value: int) -> bytes:
    within = secrets.randbits(64) < mechanism.within
    only = mechanism._replace(k=value + 1)
    while True:
        payload = secrets.randbelow(mechanism.cells).to_bytes(mechanism.payload_size, "big")
        if (value in only.supported(payload)) == within:
            return payload


def _hash(mechanism: LocalHashing, value: int) -> bytes:
    seed, lie = secrets.randbelow(mechanism.prime**3), secrets.randbelow(mechanism.buckets - 1)
    tells = secrets.randbits(64) < mechanism.keep
    said = (mechanism.bucket(seed, value) + (0 if tells else 1 + lie)) % mechanism.buckets
    return (seed * mechanism.buckets + said).to_bytes(mechanism.payload_size, "big")


def main() -> None:
    print(f"{'mechanism':<20} {'k':>6} {'µs':>8} {'floor':>8} {'×':>5} {'loop':>9} {'×':>6}")
    for name in MECHANISMS:
        for k in SIZES:
            mechanism = best(name, k, EPSILON)
            drawn = k * BYTES_A_VALUE[name] if name in BYTES_A_VALUE else 1
            ours, floor, loop = fastest(
                lambda m=mechanism: m.randomise(1, SYSTEM),  # type: ignore[misc]
                lambda n=drawn: os.urandom(n),  # type: ignore[misc]
                naive_loop(mechanism, 1),
            )
            print(
                f"{name:<20} {k:>6} {ours:>8.2f} {floor:>8.2f} {ours / floor:>5.1f}"
                f" {loop:>9.2f} {loop / ours:>6.1f}"
            )


if __name__ == "__main__":
    main()
