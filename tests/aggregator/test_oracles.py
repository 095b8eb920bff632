"""The oracles read payloads exactly as the mechanisms that make them do."""

import os

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS, Mechanism
from hubbub.randomness import SYSTEM
from hubbub_aggregator.oracles import oracle_for

SIZES = [2, 3, 7, 8, 9, 16, 255, 256, 257, 300]


def mechanisms() -> list[Mechanism]:
    epsilon = Epsilon.parse("1")
    return [kind.calibrate(k, epsilon) for kind in MECHANISMS.values() for k in SIZES]


def table(payloads: list[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)


def supports(mechanism: Mechanism, payload: bytes) -> list[int] | None:
    """What the device's own code reads, or None for a payload it cannot make."""
    try:
        return mechanism.supported(payload)
    except ValueError:
        return None


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda m: f"{m.name}-{m.k}")
def test_counts_what_the_mechanism_supports(mechanism: Mechanism) -> None:
    oracle = oracle_for(mechanism)
    payloads = [mechanism.randomise(i % mechanism.k, SYSTEM) for i in range(500)]
    expected = np.zeros(mechanism.k, np.int64)
    for payload in payloads:
        expected[mechanism.supported(payload)] += 1
    assert oracle.cells == mechanism.k
    assert oracle.payload_size == mechanism.payload_size
    assert oracle.canonical(table(payloads)).all()
    assert oracle.fold(table(payloads)).dtype == np.int64
    np.testing.assert_array_equal(oracle.fold(table(payloads)), expected)


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda m: f"{m.name}-{m.k}")
def test_canonical_is_what_the_mechanism_can_make(mechanism: Mechanism) -> None:
    size = mechanism.payload_size
    payloads = [os.urandom(size) for _ in range(500)]
    # Every last byte, where spare bits and too large an index show.
    payloads += [bytes(size - 1) + bytes([last]) for last in range(256)]
    payloads += [b"\xff" * (size - 1) + bytes([last]) for last in range(256)]
    expected = [supports(mechanism, payload) is not None for payload in payloads]
    np.testing.assert_array_equal(oracle_for(mechanism).canonical(table(payloads)), expected)


def test_no_reports_add_nothing() -> None:
    for mechanism in mechanisms():
        oracle = oracle_for(mechanism)
        empty = np.zeros((0, oracle.payload_size), np.uint8)
        np.testing.assert_array_equal(oracle.fold(empty), np.zeros(mechanism.k))


def test_chunks_add_up() -> None:
    """A domain so large that one chunk holds sixteen reports."""
    mechanism = MECHANISMS["optimised-unary"].calibrate(65_536, Epsilon.parse("1"))
    rng = np.random.default_rng(20)
    payloads = rng.integers(0, 256, (50, mechanism.payload_size), np.uint8)
    bits = np.unpackbits(payloads, axis=1, bitorder="little")
    np.testing.assert_array_equal(oracle_for(mechanism).fold(payloads), bits.sum(axis=0))
