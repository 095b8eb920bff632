"""The shipped samplers, on the system's randomness, obey the law the estimates rely on.

test_sampler_law enumerates them over small domains; this watches them at the size they are
shipped in: 2^64 draws, up to 128 values. The crowd's values are fixed, so all chance is the
devices' own. Crowds are small and many, which makes the variance of an estimate sharp.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS, Mechanism
from hubbub.randomness import SYSTEM
from tests.harness import (
    Range,
    count_law,
    divergence,
    divergence_limit,
    mean_range,
    variance_range,
)

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


@cache
def collect(name: str, k: int, epsilon: str) -> Sample:
    mechanism = MECHANISMS[name].calibrate(k, Epsilon.parse(epsilon))
    payloads = [mechanism.randomise(value, SYSTEM) for _ in range(CROWDS) for value in crowd(k)]
    folded = np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)
    if name == "randomised-response":  # one byte, since k ≤ 256
        bits = folded == np.arange(k)
    else:
        bits = np.unpackbits(folded, axis=1, count=k, bitorder="little").astype(bool)
    return Sample(mechanism, bits.reshape(CROWDS, DEVICES, k))


@pytest.fixture(params=["0.5", "1", "2", "4"], ids="ε={}".format)
def epsilon(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[2, 4, 16, 128], ids="k={}".format)
def k(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=list(MECHANISMS))
def sample(request: pytest.FixtureRequest, k: int, epsilon: str) -> Sample:
    return collect(request.param, k, epsilon)


@pytest.fixture(params=["symmetric-unary", "optimised-unary"])
def unary(request: pytest.FixtureRequest, k: int, epsilon: str) -> Sample:
    return collect(request.param, k, epsilon)


@pytest.fixture
def response(k: int, epsilon: str) -> Sample:
    return collect("randomised-response", k, epsilon)


def test_the_mean_of_the_estimates_is_the_truth(sample: Sample) -> None:
    allowed = mean_range(sample.truth, sample.variance, sample.bound, CROWDS, figures=sample.k)

    assert allowed.holds(sample.estimates.mean(axis=0))


def test_the_variance_of_the_estimates_is_the_formula(sample: Sample) -> None:
    allowed = variance_range(sample.variance, sample.fourth, sample.bound, CROWDS, figures=sample.k)

    assert allowed.holds(((sample.estimates - sample.truth) ** 2).mean(axis=0))


def test_bits_of_one_unary_report_are_uncorrelated(unary: Sample) -> None:
    rates = unary.rates_of_value_0
    spread = rates * (1 - rates)

    assert _pairs_range(unary, 0 * spread, np.outer(spread, spread)).holds(_products(unary))


def test_bits_of_one_randomised_response_exclude_each_other(response: Sample) -> None:
    rates = response.rates_of_value_0
    a, b = rates[:, None], rates[None, :]
    # Of two bits, the one, the other or neither is set.
    second_moment = a * (1 - a) ** 2 * b**2 + b * (1 - b) ** 2 * a**2 + (1 - a - b) * (a * b) ** 2

    assert _pairs_range(response, -np.outer(rates, rates), second_moment).holds(_products(response))


def test_randomised_response_reports_every_value_as_often_as_it_should(response: Sample) -> None:
    reports = response.of_value_0

    assert (reports.sum(axis=1) == 1).all()
    assert divergence(reports.sum(axis=0), response.rates_of_value_0) <= divergence_limit(
        response.k
    )


def test_unary_reports_set_as_many_bits_as_independent_bits_would(unary: Sample) -> None:
    totals = np.bincount(unary.of_value_0.sum(axis=1), minlength=unary.k + 1)
    _, law = count_law(unary.p, unary.q, holders=1, others=unary.k - 1, reach=unary.k)

    assert divergence(totals, law) <= divergence_limit(unary.k + 1)


@pytest.mark.parametrize("k", [2, 4], indirect=True)
def test_whole_unary_reports_come_as_often_as_they_should(unary: Sample) -> None:
    patterns = np.arange(2**unary.k)[:, None] >> np.arange(unary.k) & 1
    rates = unary.rates_of_value_0
    law = np.where(patterns, rates, 1 - rates).prod(axis=1)
    codes = unary.of_value_0 @ (1 << np.arange(unary.k))

    seen = np.bincount(codes, minlength=len(law))

    assert divergence(seen, law) <= divergence_limit(len(law))


def _pairs(k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, second = np.triu_indices(k, 1)
    return first, second


def _products(sample: Sample) -> Floats:
    """Mean product of every two bits' distances from their rates: the pairs' covariances."""
    centred = sample.of_value_0 - sample.rates_of_value_0
    sums: Floats = centred.T @ centred
    return sums[_pairs(sample.k)] / len(centred)


def _pairs_range(sample: Sample, covariance: Floats, second_moment: Floats) -> Range:
    pairs = _pairs(sample.k)
    return mean_range(
        np.broadcast_to(covariance, second_moment.shape)[pairs],
        second_moment[pairs],
        1,
        len(sample.of_value_0),
        figures=len(pairs[0]),
    )
