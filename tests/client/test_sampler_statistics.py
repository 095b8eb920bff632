"""The shipped samplers, on the system's randomness, obey the law the estimates rely on.

test_sampler_law enumerates them over small domains; this watches them at the size they are
shipped in: 2^64 draws, up to 128 values. The crowd's values are fixed, so all chance is the
devices' own. Crowds are small and many, which makes the variance of an estimate sharp.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.mechanisms import (
    MECHANISMS,
    MEMOISED,
    LocalHashing,
    Mechanism,
    MemoisedUnary,
    OptimisedUnary,
    SymmetricUnary,
)
from hubbub.randomness import SYSTEM
from tests.calibrated import calibrated, memoised
from tests.harness import count_law, divergence, divergence_limit, mean_range, variance_range
from tests.laws import pair_chance, specified_law

CROWDS = 6_000
DEVICES = 4  # in a crowd, one after the other: a draw used twice shows in the variance
Floats = NDArray[np.float64]


def crowd(k: int) -> list[int]:
    """The devices' values: the first of k twice, the second and the last."""
    return [0, 0, 1, k - 1]


@dataclass(frozen=True)
class Sample:
    """Reports of CROWDS crowds."""

    mechanism: Mechanism
    payloads: list[bytes]
    """Of crowd after crowd: shape (CROWDS · DEVICES,)."""
    bits: NDArray[np.bool_]
    """Whether a report supports a value: shape (CROWDS, DEVICES, k)."""

    @property
    def k(self) -> int:
        return self.mechanism.k

    @property
    def p(self) -> float:
        return float(self.mechanism.support.p)

    @property
    def q(self) -> float:
        return float(self.mechanism.support.q)

    @property
    def truth(self) -> Floats:
        """Shares in every crowd."""
        shares = np.zeros(self.k)
        np.add.at(shares, crowd(self.k), 1 / DEVICES)
        return shares

    @property
    def estimates(self) -> Floats:
        """Shape (CROWDS, k)."""
        rates: Floats = self.bits.mean(axis=1)
        return (rates - self.q) / (self.p - self.q)

    @property
    def variance(self) -> Floats:
        """Of one crowd's estimates: formulas for fixed data, over the noise alone."""
        p, q = self.p, self.q
        absent = q * (1 - q) / (DEVICES * (p - q) ** 2)
        return absent + self.truth * (1 - p - q) / (DEVICES * (p - q))

    @property
    def fourth(self) -> Floats:
        """Fourth central moment of one crowd's estimates: sums of independent bits."""
        p, q = self.p, self.q
        excess_p, excess_q = (x * (1 - x) * (1 - 6 * x * (1 - x)) for x in (p, q))
        excess = DEVICES * (self.truth * excess_p + (1 - self.truth) * excess_q)
        return 3 * self.variance**2 + excess / (DEVICES * (p - q)) ** 4

    @property
    def bound(self) -> Floats:
        """How far one crowd's estimates can lie from the truth."""
        rate = self.q + self.truth * (self.p - self.q)
        return np.maximum(rate, 1 - rate) / (self.p - self.q)

    @property
    def of_value_0(self) -> NDArray[np.bool_]:
        """Reports of the devices whose value is 0: shape (2 · CROWDS, k)."""
        return self.bits[:, :2].reshape(-1, self.k)

    @property
    def rates_of_value_0(self) -> Floats:
        """How often those reports should support each value."""
        return np.where(np.arange(self.k) == 0, self.p, self.q)

    @property
    def payloads_of_value_0(self) -> list[bytes]:
        """Shape (2 · CROWDS,)."""
        return [payload for i in (0, 1) for payload in self.payloads[i::DEVICES]]


@cache
def collect(name: str, k: int, epsilon: str) -> Sample:
    mechanism = memoised(name, k) if name in MEMOISED else calibrated(name, k, epsilon)
    payloads = [mechanism.randomise(value, SYSTEM) for _ in range(CROWDS) for value in crowd(k)]
    bits = supports(mechanism, payloads).reshape(CROWDS, DEVICES, k)
    return Sample(mechanism, payloads, bits)


def supports(mechanism: Mechanism, payloads: list[bytes]) -> NDArray[np.bool_]:
    """Whether each payload supports each value: shape (payloads, k)."""
    if isinstance(mechanism, SymmetricUnary | OptimisedUnary | MemoisedUnary):
        packed = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
        return np.unpackbits(packed, axis=1, count=mechanism.k, bitorder="little").astype(bool)
    if isinstance(mechanism, LocalHashing):
        # Hardly a seed comes twice, so that all are read at once.
        seeds, said = np.array([mechanism.read(payload) for payload in payloads]).T[:, :, None]
        rest, c = np.divmod(seeds, mechanism.prime)
        a, b = np.divmod(rest, mechanism.prime)
        x = np.arange(mechanism.k)
        hashed = ((a * x + b) * x + c) % mechanism.prime
        return np.asarray(hashed * mechanism.buckets // mechanism.prime == said)
    bits = np.zeros((len(payloads), mechanism.k), np.bool_)
    read = cache(mechanism.supported)
    for row, payload in zip(bits, payloads, strict=True):
        row[read(payload)] = True
    return bits


EPSILONS = ("0.5", "1", "2", "4")
SIZES = (2, 4, 16, 128)
QUICK = ("randomised-response", "symmetric-unary", "optimised-unary")
# Those that draw more are watched at fewer ε.
CASES = [
    *((name, k, epsilon) for name in QUICK for k in SIZES for epsilon in EPSILONS),
    *(
        (name, k, epsilon)
        for name in MECHANISMS
        if name not in QUICK
        for k, epsilon in ((2, "4"), (4, "0.5"), (16, "1"), (128, "1"))
    ),
    # Every device draws a memo for its one report.
    *((name, k, "1") for name in MEMOISED for k in (2, 4)),
]


def cases(
    names: Iterable[str] = (*MECHANISMS, *MEMOISED), most: int = max(SIZES)
) -> pytest.MarkDecorator:
    """Samples of some mechanisms, of at most so many values."""
    chosen = [case for case in CASES if case[0] in names and case[1] <= most]
    return pytest.mark.parametrize(("name", "k", "epsilon"), chosen)


@cases()
def test_the_mean_of_the_estimates_is_the_truth(name: str, k: int, epsilon: str) -> None:
    sample = collect(name, k, epsilon)
    allowed = mean_range(sample.truth, sample.variance, sample.bound, CROWDS, figures=k)

    assert allowed.holds(sample.estimates.mean(axis=0))


@cases()
def test_the_variance_of_the_estimates_is_the_formula(name: str, k: int, epsilon: str) -> None:
    sample = collect(name, k, epsilon)
    allowed = variance_range(sample.variance, sample.fourth, sample.bound, CROWDS, figures=k)

    assert allowed.holds(((sample.estimates - sample.truth) ** 2).mean(axis=0))


@cases()
def test_two_values_are_supported_together_as_often_as_they_should(
    name: str, k: int, epsilon: str
) -> None:
    """The mean product of every two bits' distances from their rates is the covariance."""
    sample = collect(name, k, epsilon)
    first, second = np.triu_indices(k, 1)
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    both = np.array([float(pair_chance(sample.mechanism, 0, u, v)) for u, v in pairs])
    rates = sample.rates_of_value_0
    a, b = rates[first], rates[second]
    # Of two bits both are set, or one, or the other, or none.
    second_moment = (
        both * (1 - a) ** 2 * (1 - b) ** 2
        + (a - both) * (1 - a) ** 2 * b**2
        + (b - both) * a**2 * (1 - b) ** 2
        + (1 - a - b + both) * a**2 * b**2
    )
    centred = sample.of_value_0 - rates
    products = (centred.T @ centred)[first, second] / len(centred)

    allowed = mean_range(both - a * b, second_moment, 1, len(centred), figures=len(first))

    assert allowed.holds(products)


@cases([name for name in (*MECHANISMS, *MEMOISED) if name.endswith("unary")])
def test_unary_reports_set_as_many_bits_as_independent_bits_would(
    name: str, k: int, epsilon: str
) -> None:
    sample = collect(name, k, epsilon)
    totals = np.bincount(sample.of_value_0.sum(axis=1), minlength=k + 1)
    _, law = count_law(sample.p, sample.q, holders=1, others=k - 1, reach=k)

    assert divergence(totals, law) <= divergence_limit(k + 1)


@cases(["randomised-response", "projective-geometry", *MEMOISED])
def test_whole_reports_come_as_often_as_they_should(name: str, k: int, epsilon: str) -> None:
    check_whole_reports(collect(name, k, epsilon))


@cases(["symmetric-unary", "optimised-unary"], most=4)
def test_whole_bit_vectors_come_as_often_as_they_should(name: str, k: int, epsilon: str) -> None:
    check_whole_reports(collect(name, k, epsilon))


@cases(["subset-selection"], most=16)
def test_whole_sets_come_as_often_as_they_should(name: str, k: int, epsilon: str) -> None:
    check_whole_reports(collect(name, k, epsilon))


def check_whole_reports(sample: Sample) -> None:
    law = specified_law(sample.mechanism, 0)
    seen = Counter(sample.payloads_of_value_0)
    assert seen.keys() <= law.keys()

    counts = np.array([seen[payload] for payload in law])

    assert divergence(counts, np.array([float(p) for p in law.values()])) <= divergence_limit(
        len(law)
    )


@cases(["local-hashing"])
def test_hashes_fall_independently_and_only_the_value_s_is_told(
    name: str, k: int, epsilon: str
) -> None:
    """Where the own value, another one, and one beyond the domain fall, and what is said."""
    sample = collect(name, k, epsilon)
    mechanism = sample.mechanism
    assert isinstance(mechanism, LocalHashing)
    buckets, prime = mechanism.buckets, mechanism.prime
    size = np.bincount(np.arange(prime) * buckets // prime) / prime
    keep, lie = sample.p, (1 - sample.p) / (buckets - 1)
    told = np.where(np.eye(buckets, dtype=bool), keep, lie)
    law = np.einsum("a,b,c,ad->abcd", size, size, size, told)
    seen = np.zeros(law.shape, np.int64)
    for seed, said in map(mechanism.read, sample.payloads_of_value_0):
        seen[(*(mechanism.bucket(seed, value) for value in (0, 1, 999)), said)] += 1

    assert divergence(seen.ravel(), law.ravel()) <= divergence_limit(law.size)
