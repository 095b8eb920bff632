"""The oracles read payloads exactly as the mechanisms that make them do."""

import os
from math import comb

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import (
    MECHANISMS,
    MEMOISED,
    LocalHashing,
    Mechanism,
    MemoisedLocalHashing,
    ProjectiveGeometry,
    SubsetSelection,
)
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.randomness import SYSTEM
from hubbub_aggregator.oracles import Payloads, oracle_for
from tests.calibrated import calibrated, memoised

SIZES = [2, 3, 7, 8, 9, 16, 255, 256, 257, 300]
# Of memoised mechanisms, whose devices draw a row for each.
FEW = [2, 3, 8, 9, 16]
ONE = Epsilon.parse("1")

# Parameters that `calibrated` does not choose: sets sent as ranks of nearly 2^64 and of one
# byte, a large field and the smallest, primes of every size, uneven buckets.
UNUSUAL: list[Mechanism] = [
    *(
        SubsetSelection.calibrate(k, ONE, size)
        for k, size in ((9, 4), (9, 8), (66, 30), (67, 33), (68, 34), (300, 2), (300, 297))
    ),
    *(
        ProjectiveGeometry.calibrate(k, ONE, field, dimensions)
        for k, field, dimensions in ((2, 2, 2), (7, 2, 3), (8, 7, 2), (9, 101, 2), (100, 31, 3))
    ),
    *(
        LocalHashing.calibrate(k, ONE, buckets, prime)
        for k, buckets, prime in (
            (2, 2, 2),
            (3, 2, 3),
            (5, 5, 5),
            (200, 7, 251),
            (200, 64, 4_093),
            (200, 3, 32_749),
            (300, 4_096, 65_537),
            (30, 3, OPEN_PRIME),
        )
    ),
    # Seeds and cells in every number of bytes, full spaces and such with one value too few.
    *(
        memoised("memoised-local-hashing", k, cells=cells)
        for k, cells in ((2, 3), (4, 3), (12, 3), (31, 5), (30, 5), (60, 7), (30, 31), (200, 2))
    ),
]


def mechanisms() -> list[Mechanism]:
    once = [calibrated(name, k, "1") for name in MECHANISMS for k in SIZES]
    return [*once, *(memoised(name, k) for name in MEMOISED for k in FEW), *UNUSUAL]


def show(mechanism: Mechanism) -> str:
    _, *rest = mechanism.parameters.values()
    return "-".join(map(str, [mechanism.name, mechanism.k, *rest]))


def table(payloads: list[bytes]) -> Payloads:
    return np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)


def is_canonical(mechanism: Mechanism, payload: bytes) -> bool:
    """Whether the device's own code reads it."""
    try:
        mechanism.supported(payload)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("mechanism", mechanisms(), ids=show)
def test_counts_what_the_mechanism_supports(mechanism: Mechanism) -> None:
    oracle = oracle_for(mechanism)
    payloads = [mechanism.randomise(i % mechanism.k, SYSTEM) for i in range(200)]
    expected = np.zeros(mechanism.k, np.int64)
    for payload in payloads:
        expected[mechanism.supported(payload)] += 1
    assert oracle.payload_size == mechanism.payload_size
    assert oracle.canonical(table(payloads)).all()
    folded = oracle.fold(table(payloads))
    assert folded.shape == (oracle.cells,)
    assert folded.dtype == np.int64
    counts = oracle.supports(folded)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize("mechanism", mechanisms(), ids=show)
def test_canonical_is_what_the_mechanism_can_make(mechanism: Mechanism) -> None:
    size = mechanism.payload_size
    payloads = [os.urandom(size) for _ in range(200)]
    # Every first and every last byte, where too large a number and spare bits show.
    for rest in (bytes(size - 1), b"\xff" * (size - 1), mechanism.randomise(0, SYSTEM)[1:]):
        payloads += [bytes([other]) + rest for other in range(256)]
        payloads += [rest + bytes([other]) for other in range(256)]
    expected = [is_canonical(mechanism, payload) for payload in payloads]
    np.testing.assert_array_equal(oracle_for(mechanism).canonical(table(payloads)), expected)


def number_of_payloads(mechanism: Mechanism) -> int | None:
    """How many payloads there are, if they are numbered from 0."""
    match mechanism:
        case SubsetSelection():
            return mechanism.ranks
        case ProjectiveGeometry():
            return mechanism.cells
        case LocalHashing() | MemoisedLocalHashing():
            return mechanism.reports
        case _:
            return None


@pytest.mark.parametrize(
    "mechanism", [m for m in mechanisms() if number_of_payloads(m) is not None], ids=show
)
def test_the_first_and_the_last_payload_are_canonical_and_the_next_is_not(
    mechanism: Mechanism,
) -> None:
    many = number_of_payloads(mechanism) or 0
    oracle, size = oracle_for(mechanism), mechanism.payload_size
    payloads = [number.to_bytes(size, "big") for number in (0, many - 1)]
    assert oracle.canonical(table(payloads)).tolist() == [True, True]
    for payload in payloads:
        counts = oracle.supports(oracle.fold(table([payload])))
        assert np.flatnonzero(counts).tolist() == mechanism.supported(payload)
    if many < 256**size:
        assert oracle.canonical(table([many.to_bytes(size, "big")])).tolist() == [False]


def test_ranks_of_nearly_eight_bytes_are_among_them() -> None:
    """The largest numbers of sets below 2^64 that there are for sizes so near the middle."""
    assert comb(67, 33) < 2**64 <= comb(68, 34)
    assert SubsetSelection.calibrate(67, ONE, 33).payload_size == 8
    assert SubsetSelection.calibrate(68, ONE, 34).ranks is None


@pytest.mark.parametrize("mechanism", mechanisms(), ids=show)
def test_no_reports_add_nothing(mechanism: Mechanism) -> None:
    oracle = oracle_for(mechanism)
    empty = np.zeros((0, oracle.payload_size), np.uint8)
    np.testing.assert_array_equal(oracle.fold(empty), np.zeros(oracle.cells))
    assert oracle.canonical(empty).shape == (0,)
