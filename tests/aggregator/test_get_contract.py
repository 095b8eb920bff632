"""GetContract: the bytes that devices check, from whoever counts their reports."""

from collections.abc import Iterator
from hashlib import sha256

import grpc
import pytest

from hubbub.contract import parse_metric
from hubbub.v1 import estimate_pb2
from tests.aggregator.asked import TIMEOUT, Asked, asked
from tests.bundles import Operator


@pytest.fixture(scope="module")
def served(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked(operator, tmp_path_factory.mktemp("served"), {}) as served:
        yield served


def contract(served: Asked, metric: str) -> bytes:
    request = estimate_pb2.GetContractRequest(metric=metric)
    return served.estimates.GetContract(request, timeout=TIMEOUT).contract


def test_its_bytes_are_those_that_were_signed(served: Asked) -> None:
    catalogue = served.estimates.ListMetrics(estimate_pb2.ListMetricsRequest(), timeout=TIMEOUT)
    assert {summary.name for summary in catalogue.metrics} == set(served.bundle.metrics)
    for summary in catalogue.metrics:
        data = contract(served, summary.name)
        assert sha256(data).digest() == summary.digest
        assert parse_metric(data) == served.bundle.metrics[summary.name]


def test_an_unknown_metric_is_refused_with_those_that_there_are(served: Asked) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        contract(served, "lunch.tomorrow")
    assert isinstance(refused.value, grpc.Call)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    said = refused.value.details() or ""
    assert "there is no metric 'lunch.tomorrow'" in said
    assert "lunch.today" in said
