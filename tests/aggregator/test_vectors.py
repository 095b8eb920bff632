"""The aggregator against the golden vectors that the client's tests read too."""

from pathlib import Path

import numpy as np
import pytest

from hubbub.contract import Bundle
from hubbub.errors import BundleError
from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS
from hubbub_aggregator.oracles import Oracle, oracle_for
from hubbub_aggregator.store import Store
from tests.golden import Vector, read, vectors

OPERATOR_KEY: str = read("bundles")["operator_key"]


def oracle_of(vector: Vector) -> Oracle:
    kind = MECHANISMS[vector.facts["mechanism"]]
    return oracle_for(kind.calibrate(vector.facts["k"], Epsilon.parse("1")))


@pytest.mark.parametrize("vector", vectors("payloads", "good"), ids=str)
def test_a_good_payload_is_counted_in_the_cells_it_supports(vector: Vector) -> None:
    oracle = oracle_of(vector)
    table = np.frombuffer(vector.payload, np.uint8).reshape(1, oracle.payload_size)
    assert oracle.canonical(table).tolist() == [True]
    assert np.flatnonzero(oracle.fold(table)).tolist() == vector.facts["supported"]
    assert oracle.fold(np.repeat(table, 3, axis=0)).sum() == 3 * len(vector.facts["supported"])


@pytest.mark.parametrize("vector", vectors("payloads", "bad"), ids=str)
def test_a_bad_payload_is_not_canonical(vector: Vector) -> None:
    oracle = oracle_of(vector)
    # One of the wrong length never comes this far: the request's length is wrong.
    if len(vector.payload) == oracle.payload_size:
        table = np.frombuffer(vector.payload, np.uint8).reshape(1, oracle.payload_size)
        assert oracle.canonical(table).tolist() == [False]


def test_good_bundles_are_adopted_and_read_back(tmp_path: Path) -> None:
    for number, vector in enumerate(vectors("bundles", "good")):
        bundle = Bundle.verify(vector.signed, operator_key=OPERATOR_KEY)
        store = Store(str(tmp_path / f"{number}.sqlite3"), writer=1, publish_step=100)
        store.adopt(bundle)
        kept = {metric.digest for metric in store.metrics()}
        assert kept == {metric.digest for metric in bundle.metrics.values()}
        store.close()


@pytest.mark.parametrize("vector", vectors("bundles", "bad"), ids=str)
def test_what_serve_reads_refuses_a_bad_bundle(vector: Vector) -> None:
    with pytest.raises(BundleError):
        Bundle.verify(vector.signed, operator_key=OPERATOR_KEY)
