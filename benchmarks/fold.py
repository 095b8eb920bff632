"""Folding: from payloads to counts, for a million reports at once and batch by batch.

Unary encoding is told in bytes of reports a second, beside how fast this machine reads memory in
the same turn, which no way of counting can exceed. The best of the turns is shown, and ratios are
medians over them.

Run as `python benchmarks/fold.py`; it takes half a minute.
"""

import os
import time
from collections.abc import Callable
from statistics import median
from typing import Final

import numpy as np

from hubbub.exact import Epsilon
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.planning.choice import best

TURNS: Final = 9
REPORTS: Final = 1_000_000
BATCHES: Final = (1, 10, 100, 1_000, 10_000)
LIMIT_BYTES: Final = 3.5e9
LIMIT_MICROSECONDS: Final = 0.12
# Mechanism and how many values there are.
OTHERS: Final = (
    ("randomised-response", 128),
    ("local-hashing", 128),
    ("projective-geometry", 1_024),
)


def seconds(action: Callable[[], object], times: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(times):
        action()
    return (time.perf_counter() - began) / times


def line(what: str, figure: str, note: str = "") -> None:
    print(f"{what:<58} {figure:>12}  {note}".rstrip(), flush=True)


def show_unary(k: int) -> None:
    oracle = oracle_for(best("optimised-unary", k, Epsilon.parse("1")))
    payloads = np.frombuffer(os.urandom(REPORTS * oracle.payload_size), np.uint8)
    payloads = payloads.reshape(REPORTS, oracle.payload_size)
    words = payloads.view(np.uint64)
    fold, read = [], []
    for _ in range(TURNS):
        fold.append(seconds(lambda: oracle.fold(payloads)))
        read.append(seconds(lambda: np.bitwise_or.reduce(words, axis=None)))
    limit = f"limit {LIMIT_BYTES / 1e9}" if k == 1_024 else ""
    line(
        f"unary, {REPORTS:,} × {k:,} bits, GB/s", f"{payloads.nbytes / min(fold) / 1e9:.2f}", limit
    )
    ratio = median(one / other for one, other in zip(fold, read, strict=True))
    line(
        "  limit: reading them, GB/s",
        f"{payloads.nbytes / min(read) / 1e9:.1f}",
        f"{ratio:.1f} × its time",
    )
    for n in BATCHES:
        some = payloads[:n]
        each = min(seconds(lambda: oracle.fold(some), 100) for _ in range(TURNS)) / n  # noqa: B023
        limit = f"limit {LIMIT_MICROSECONDS}" if (k, n) == (1_024, 1_000) else ""
        line(f"  in batches of {n:,}, µs a report", f"{each * 1e6:.3f}", limit)


def show_other(name: str, k: int) -> None:
    oracle = oracle_for(best(name, k, Epsilon.parse("1")))
    drawn = np.frombuffer(os.urandom(REPORTS * oracle.payload_size), np.uint8)
    drawn = drawn.reshape(REPORTS, oracle.payload_size)
    # Those that the mechanism can make.
    payloads = drawn[oracle.canonical(drawn)]
    each = min(seconds(lambda: oracle.fold(payloads)) for _ in range(TURNS)) / len(payloads)
    line(f"{name}, k = {k:,}, µs a report of {len(payloads):,}", f"{each * 1e6:.3f}")


def main() -> None:
    for k in (128, 1_024):
        show_unary(k)
    for name, k in OTHERS:
        show_other(name, k)


if __name__ == "__main__":
    main()
