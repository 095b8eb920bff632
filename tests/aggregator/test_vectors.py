"""The aggregator against the golden vectors that the client's tests read too."""

from pathlib import Path

import numpy as np
import pytest

from hubbub.bundle import Bundle
from hubbub.errors import BundleError
from hubbub.limits import MAX_VALUES
from hubbub.mechanisms import LocalHashing
from hubbub.mechanisms.local_hashing import OPEN_PRIME
from hubbub.mechanisms.projective_space import points
from hubbub_aggregator.oracles import (
    ListedHashingOracle,
    OpenHashingOracle,
    Oracle,
    Payloads,
    oracle_for,
)
from hubbub_aggregator.oracles.hyperplanes import hyperplane_sums
from hubbub_aggregator.store import Store
from tests.golden import Vector, read, vectors

OPERATOR_KEY: str = read("bundles")["operator_key"]


# -- Payloads -----------------------------------------------------------------------------


def table(vector: Vector) -> Payloads:
    return np.frombuffer(vector.payload, np.uint8).reshape(1, -1)


def refuses(oracle: Oracle, vector: Vector) -> bool:
    # One of the wrong length never comes this far: the request's length is wrong.
    if len(vector.payload) != oracle.payload_size:
        return True
    return oracle.canonical(table(vector)).tolist() == [False]


@pytest.mark.parametrize("vector", vectors("payloads", "good"), ids=str)
def test_a_good_payload_is_counted_for_the_values_it_supports(vector: Vector) -> None:
    oracle = oracle_for(vector.mechanism)
    assert oracle.canonical(table(vector)).tolist() == [True]
    for times in (1, 3):
        payloads = np.repeat(table(vector), times, axis=0)
        expected = np.zeros(vector.mechanism.k, np.int64)
        expected[vector.facts["supported"]] = times
        np.testing.assert_array_equal(oracle.supports(oracle.fold(payloads)), expected)


@pytest.mark.parametrize("vector", vectors("payloads", "bad"), ids=str)
def test_a_bad_payload_is_not_canonical(vector: Vector) -> None:
    assert refuses(oracle_for(vector.mechanism), vector)


# -- Hashes and points --------------------------------------------------------------------


def hashing_oracle_of(vector: Vector) -> ListedHashingOracle | OpenHashingOracle:
    """For all values that the prime has room for."""
    prime = int(vector.facts["prime"])
    if prime == OPEN_PRIME:
        return OpenHashingOracle(LocalHashing(prime, 0, vector.facts["buckets"], prime))
    k = min(prime, MAX_VALUES)
    return ListedHashingOracle(LocalHashing(k, 0, vector.facts["buckets"], prime))


@pytest.mark.parametrize("vector", vectors("hashing", "good"), ids=str)
def test_a_report_supports_a_value_in_its_bucket(vector: Vector) -> None:
    oracle, value = hashing_oracle_of(vector), int(vector.facts["value"])
    assert oracle.canonical(table(vector)).tolist() == [True]
    if isinstance(oracle, OpenHashingOracle):
        assert oracle.candidate_supports(table(vector), [value]).tolist() == [1]
    else:
        assert oracle.fold(table(vector))[value] == 1


@pytest.mark.parametrize("vector", vectors("hashing", "bad"), ids=str)
def test_what_is_no_seed_and_bucket_is_not_canonical(vector: Vector) -> None:
    assert refuses(hashing_oracle_of(vector), vector)


@pytest.mark.parametrize("vector", vectors("geometry", "points"), ids=str)
def test_a_point_is_counted_for_its_hyperplane(vector: Vector) -> None:
    field, dimensions = vector.facts["field"], vector.facts["dimensions"]
    cells = np.zeros(points(field, dimensions), np.int64)
    cells[vector.facts["index"]] = 1
    sums = hyperplane_sums(cells, field, dimensions)
    assert np.flatnonzero(sums).tolist() == vector.facts["orthogonal"]
    assert sums.max() == 1


# -- Bundles ------------------------------------------------------------------------------


def test_good_bundles_are_adopted_and_read_back(tmp_path: Path) -> None:
    for number, vector in enumerate(vectors("bundles", "good")):
        bundle = Bundle.verify(vector.signed, operator_key=OPERATOR_KEY)
        store = Store(str(tmp_path / f"{number}.sqlite3"), writer=1, publish_step=100)
        store.adopt(bundle, now=0)
        kept = {metric.digest for metric in store.metrics()}
        assert kept == {metric.digest for metric in bundle.metrics.values()}
        store.close()


@pytest.mark.parametrize("vector", vectors("bundles", "bad"), ids=str)
def test_what_serve_reads_refuses_a_bad_bundle(vector: Vector) -> None:
    with pytest.raises(BundleError):
        Bundle.verify(vector.signed, operator_key=OPERATOR_KEY)
