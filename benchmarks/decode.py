"""Decoding a million reports: seconds, and how many times faster than pure-LDP 1.2.0.

From payloads to how many reports support each value. pure-LDP adds up reports of its own
clients, in its own form and in memory, where a million would need too much time or room: its
rate is that of 10,000. It lives in an environment of its own, made for this run with what it
needs beside what it asks for. The two work in turns, and the best turn of each is shown.

Run as `python benchmarks/decode.py`.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import peer_process
from benchmarks.peer_process import Peer
from hubbub.exact import Epsilon
from hubbub.mechanisms import LocalHashing, Mechanism, OptimisedUnary, ProjectiveGeometry
from hubbub_aggregator.crowd.base import big_endian_bytes
from hubbub_aggregator.oracles import Payloads, oracle_for
from hubbub_aggregator.planning.choice import best

REPORTS = 1_000_000
PEER_REPORTS = 10_000
TURNS = 5
LIMIT_PROJECTIVE_GEOMETRY = 0.3
LIMIT_LOCAL_HASHING = 200
LIMIT_UNARY = 40

# Answers a mechanism's name on a line with the seconds that adding up its reports took.
PEER_SCRIPT = """
import sys, time
from pure_ldp.frequency_oracles import LHClient, LHServer, UEClient, UEServer

k, n = int(sys.argv[1]), int(sys.argv[2])
sides = {
    "local-hashing": (LHClient(1, k, use_olh=True), LHServer(1, k, use_olh=True)),
    "optimised-unary": (UEClient(1, k, use_oue=True), UEServer(1, k, use_oue=True)),
}
reports = {
    name: [client.privatise(1 + i % k) for i in range(n)] for name, (client, _) in sides.items()
}
print("ready", flush=True)
for line in sys.stdin:
    name = line.strip()
    server = sides[name][1]
    server.reset()
    start = time.perf_counter()
    server.aggregate_all(reports[name])
    print(time.perf_counter() - start, flush=True)
"""


def peer_seconds(peer: Peer, mechanism: Mechanism) -> float:
    """How long REPORTS reports take pure-LDP, by the rate of a turn."""
    return float(peer.ask(mechanism.name)) * REPORTS / PEER_REPORTS


def random_payloads(mechanism: Mechanism) -> Payloads:
    """REPORTS canonical payloads, all equally likely: counting takes as long for any."""
    rng = np.random.default_rng(1)
    match mechanism:
        case ProjectiveGeometry():
            numbers = rng.integers(0, mechanism.cells, REPORTS, np.uint64)
        case LocalHashing():
            numbers = rng.integers(0, mechanism.reports, REPORTS, np.uint64)
        case _:
            return rng.integers(0, 256, (REPORTS, mechanism.payload_size), np.uint8)
    return np.ascontiguousarray(big_endian_bytes(numbers, mechanism.payload_size))


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def projective_geometry(epsilon: str) -> None:
    mechanism = best("projective-geometry", 16_384, Epsilon.parse(epsilon))
    oracle, payloads = oracle_for(mechanism), random_payloads(mechanism)
    cells = oracle.fold(payloads)
    fold = min(seconds(lambda: oracle.fold(payloads)) for _ in range(TURNS))
    supports = min(seconds(lambda: oracle.supports(cells)) for _ in range(TURNS))
    print(f"projective geometry, ε = {epsilon:<17} {mechanism.k:>8,} {fold + supports:>10.3f}")
    print(
        f"  limit {LIMIT_PROJECTIVE_GEOMETRY} s; {fold:.3f} s to count {oracle.cells:,} points,"
        f" {supports:.3f} s to add up their hyperplanes"
    )


def beside(peer: Peer | None, mechanism: Mechanism, limit: int, reason: str) -> None:
    """A row with both libraries, and what limits ours."""
    oracle, payloads = oracle_for(mechanism), random_payloads(mechanism)
    ours = theirs = float("inf")
    for _ in range(TURNS):
        ours = min(ours, seconds(lambda: oracle.supports(oracle.fold(payloads))))
        if peer is not None:
            theirs = min(theirs, peer_seconds(peer, mechanism))
    row = f"{mechanism.name:<43} {mechanism.k:>8,} {ours:>10.3f}"
    print(row if peer is None else f"{row} {theirs:>10.1f} {theirs / ours:>8.0f}")
    print(f"  at least {limit} times as fast; {reason}")


def main() -> None:
    epsilon = Epsilon.parse("1")
    hashing = best("local-hashing", 1_024, epsilon)
    unary = OptimisedUnary.calibrate(1_024, epsilon)
    with peer_process.peer(
        peer_process.PURE_LDP, PEER_SCRIPT, str(hashing.k), str(PEER_REPORTS)
    ) as peer:
        print(f"{'mechanism':<43} {'k':>8} {'s':>10} {'pure-LDP':>10} {'ratio':>8}")
        for text in ("0.25", "0.5", "1", "2"):
            projective_geometry(text)
        beside(peer, hashing, LIMIT_LOCAL_HASHING, "a hash for every report and value")
        beside(peer, unary, LIMIT_UNARY, "reading all bits from memory")


if __name__ == "__main__":
    main()
