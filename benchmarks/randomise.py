"""Microseconds to randomise one value, beside the floor and the obvious exact loop.

The floor is one `os.urandom`: of a byte for every bit, which is what the unary samplers read,
and of a single byte for randomised response. The loop is exactness by the obvious way,
`secrets.randbits(64) < threshold` for every bit. What stands on a line is measured in turns
within the same moment, so that the ratios hold even where the machine's speed changes; the
best of many short turns is shown.

Run as `python benchmarks/randomise.py`.
"""

import os
import secrets
import time
from collections.abc import Callable

from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS, Mechanism
from hubbub.randomness import SYSTEM

SIZES = (2, 16, 128, 1_024, 16_384)
EPSILON = Epsilon.parse("1")
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
    """The same law, a 64-bit integer for every bit."""
    k = mechanism.k
    (threshold,) = mechanism.thresholds.values()
    own = {"symmetric-unary": (1 << 64) - threshold, "optimised-unary": 1 << 63}

    def unary() -> bytes:
        bits = 0
        for i in range(k):
            bits |= (secrets.randbits(64) < (rises if i == value else threshold)) << i
        return bits.to_bytes((k + 7) // 8, "little")

    def response() -> bytes:
        lie = secrets.randbelow(k - 1)
        report = value if secrets.randbits(64) < threshold else (value + 1 + lie) % k
        return report.to_bytes(mechanism.payload_size, "big")

    if mechanism.name not in own:
        return response
    rises = own[mechanism.name]
    return unary


def main() -> None:
    print(f"{'mechanism':<20} {'k':>6} {'µs':>8} {'floor':>8} {'×':>5} {'loop':>9} {'×':>6}")
    for name, kind in MECHANISMS.items():
        for k in SIZES:
            mechanism = kind.calibrate(k, EPSILON)
            drawn = 1 if name == "randomised-response" else k
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
