"""Beside other libraries: the same crowds, from every device's value to the estimates.

For each mechanism that they have too, a crowd whose commonest value is a third of all is
randomised device by device, and then counted and estimated, by each library in its own process.
They work in turns, and the best of each is shown; ours come with errors, intervals and ranks.
The last line of a mechanism is what the estimates are worth: how far off the commonest value's
share was on average, in percentage points, beside how far chance alone would take that average
(one standard deviation).

The others draw from a Mersenne Twister where ours asks the operating system, and keep numbers
where ours has bytes that can be sent; neither seals, sends, or counts a report only once.

Run as `python benchmarks/peers.py`; it takes a few minutes.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from math import sqrt
from pathlib import Path
from statistics import mean
from typing import Final, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import peer_process
from benchmarks.peer_process import Peer
from hubbub.exact import Epsilon
from hubbub.mechanisms import Mechanism
from hubbub.randomness import SYSTEM
from hubbub_aggregator.estimation.estimate import estimate
from hubbub_aggregator.oracles import oracle_for
from hubbub_aggregator.planning.choice import best

DEVICES: Final = 5_000
TURNS: Final = 10
SIZES: Final = (16, 128, 1_024)
MECHANISMS: Final = (
    *("randomised-response", "symmetric-unary", "optimised-unary"),
    *("subset-selection", "local-hashing"),
)
EPSILON: Final = Epsilon.parse("1")
# Of the crowd, the first value's; the others share the rest.
COMMONEST: Final = 1 / 3
OURS: Final = "Hubbub"

# What both scripts do, once each has said how it randomises and estimates: for a mechanism and k,
# how long a crowd took, the bytes of a report, and the commonest value's estimate.
ANSWERING: Final = """
import json, sys, time
import numpy as np
values = json.loads(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    name, k = line.split()
    k = int(k)
    if name not in sides:
        print("null", flush=True)
        continue
    randomise, estimate = sides[name](k)
    if name not in warm:
        # What is compiled at its first use.
        estimate([randomise(0) for _ in range(10)])
        warm.add(name)
    began = time.perf_counter()
    reports = [randomise(value) for value in values[str(k)]]
    randomised = time.perf_counter()
    share = float(estimate(reports))
    counted = time.perf_counter()
    size = np.asarray(reports[0]).nbytes
    print(json.dumps([randomised - began, counted - randomised, size, share]), flush=True)
"""
PURE_LDP: Final = """
from pure_ldp.frequency_oracles import (
    DEClient, DEServer, LHClient, LHServer, UEClient, UEServer)
def side(client, server, **how):
    def made(k):
        asked, answering = client(1, k, **how), server(1, k, **how)
        def estimate(reports):
            answering.aggregate_all(reports)
            shares = answering.estimate_all(range(1, k + 1), suppress_warnings=True)
            return shares[0] / len(reports)
        return lambda value: asked.privatise(value + 1), estimate
    return made
warm = set()
sides = {
    "randomised-response": side(DEClient, DEServer),
    "symmetric-unary": side(UEClient, UEServer, use_oue=False),
    "optimised-unary": side(UEClient, UEServer, use_oue=True),
    "local-hashing": side(LHClient, LHServer, use_olh=True),
}
"""
MULTI_FREQ_LDPY: Final = """
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
warm = set()
def unary(optimal):
    return lambda k: (
        lambda value: UE_Client(value, k, 1.0, optimal),
        lambda reports: UE_Aggregator_MI(reports, 1.0, optimal)[0])
def side(client, aggregator):
    return lambda k: (
        lambda value: client(value, k, 1.0), lambda reports: aggregator(reports, k, 1.0)[0])
sides = {
    "randomised-response": side(GRR_Client, GRR_Aggregator_MI),
    "symmetric-unary": unary(False),
    "optimised-unary": unary(True),
    "subset-selection": side(SS_Client, SS_Aggregator_MI),
    "local-hashing": side(LH_Client, LH_Aggregator_MI),
}
"""


class Crowd(NamedTuple):
    """What a crowd's turn took, in seconds, and what came of it."""

    randomised: float
    counted: float
    size: int
    """Bytes of a report."""
    share: float
    """The commonest value's estimate."""


def values_of(k: int) -> list[int]:
    """Every device's value, in [0, k)."""
    first = round(COMMONEST * DEVICES)
    return [0] * first + [1 + i % (k - 1) for i in range(DEVICES - first)]


def ours(mechanism: Mechanism, values: list[int]) -> Crowd:
    oracle = oracle_for(mechanism)
    began = time.perf_counter()
    payloads = [mechanism.randomise(value, SYSTEM) for value in values]
    randomised = time.perf_counter()
    table = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
    supports = oracle.supports(oracle.fold(table))
    share = estimate(mechanism.support, supports, len(payloads)).estimate[0]
    counted = time.perf_counter()
    return Crowd(randomised - began, counted - randomised, len(payloads[0]), float(share))


def theirs(peer: Peer, mechanism: Mechanism) -> Crowd | None:
    """None: it has no such mechanism."""
    answer = json.loads(peer.ask(f"{mechanism.name} {mechanism.k}"))
    return answer and Crowd(*answer)


def line(what: str, figures: Iterable[str]) -> None:
    print(f"  {what:<44}" + "".join(f"{figure:>20}" for figure in figures), flush=True)


def beside(figures: Iterable[float | None]) -> Iterator[str]:
    """Ours, and how many times as much the others take; None: they have none."""
    first, *others = figures
    if first is not None:
        yield short(first)
        yield from ("–" if x is None else f"{short(x)} = {short(x / first)} ×" for x in others)


def short(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def microseconds(action: Callable[[], object]) -> float:
    """Of one call; the best of some."""
    best_of = float("inf")
    for _ in range(TURNS):
        began = time.perf_counter()
        for _ in range(100):
            action()
        best_of = min(best_of, time.perf_counter() - began)
    return best_of / 100 * 1e6


def show(mechanism: Mechanism, peers: Mapping[str, Peer]) -> None:
    values = values_of(mechanism.k)
    crowds: dict[str, list[Crowd]] = {name: [] for name in (OURS, *peers)}
    for _ in range(TURNS):
        crowds[OURS].append(ours(mechanism, values))
        for name, peer in peers.items():
            if (crowd := theirs(peer, mechanism)) is not None:
                crowds[name].append(crowd)

    def least(of: Callable[[Crowd], float]) -> Iterator[float | None]:
        return (min(map(of, some)) if some else None for some in crowds.values())

    print(f"{mechanism.name}, k = {mechanism.k:,}")
    each = 1e6 / DEVICES
    line("randomise, µs a device", beside(least(lambda crowd: crowd.randomised * each)))
    line("  limit: asking the system for a byte", [f"{microseconds(one_byte):.3g}"])
    line("count and estimate, µs a report", beside(least(lambda crowd: crowd.counted * each)))
    reading = microseconds(reader(crowds[OURS][0].size)) / DEVICES
    line("  limit: reading the payloads", [f"{reading:.3g}"])
    line("bytes of a report", beside(least(lambda crowd: crowd.size)))
    line(
        f"mean error, points; by chance ± {chance_alone(mechanism, values):.1f}",
        (f"{off_by(some, values):+.1f}" if some else "–" for some in crowds.values()),
    )


def off_by(crowds: Sequence[Crowd], values: Sequence[int]) -> float:
    """How far off the commonest value's share was on average, in percentage points."""
    return 100 * (mean(crowd.share for crowd in crowds) - values.count(0) / len(values))


def one_byte() -> bytes:
    return os.urandom(1)


def reader(size: int) -> Callable[[], object]:
    payloads = np.frombuffer(os.urandom(-(-DEVICES * size // 8) * 8), np.uint64)
    return lambda: np.bitwise_or.reduce(payloads)


def chance_alone(mechanism: Mechanism, values: list[int]) -> float:
    """The standard deviation of the mean of TURNS estimates, in percentage points."""
    support = mechanism.support
    p, q = float(support.p), float(support.q)
    share = values.count(0) / len(values)
    variance: float = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2 / len(values)
    return 100 * sqrt(variance / TURNS)


def main() -> None:
    values = json.dumps({str(k): values_of(k) for k in SIZES})
    with ExitStack() as stack:
        peers: dict[str, Peer] = {}
        for name, requirements, script in (
            ("pure-LDP", peer_process.PURE_LDP, PURE_LDP),
            ("multi-freq-ldpy", peer_process.MULTI_FREQ_LDPY, MULTI_FREQ_LDPY),
        ):
            peer = stack.enter_context(peer_process.peer(requirements, script + ANSWERING, values))
            if peer is not None:
                peers[name] = peer
        print(f"{DEVICES:,} devices, ε = 1; the best of {TURNS} turns")
        line("", [OURS, *peers])
        for k in SIZES:
            for mechanism in MECHANISMS:
                show(best(mechanism, k, EPSILON), peers)


if __name__ == "__main__":
    main()
