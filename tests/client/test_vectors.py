"""The client against the golden vectors."""

from typing import Any

import pytest

from hubbub import errors
from hubbub.bundle import Bundle
from hubbub.contract import parse_metric
from hubbub.domain import text_index
from hubbub.exact import charge_text
from hubbub.mechanisms import LocalHashing, MemoisedLocalHashing, ProjectiveGeometry
from tests import laws
from tests.golden import Vector, read, vectors
from tools import make_vectors
from tools.bundle_vectors import open_metric

OPERATOR_KEY: str = read("bundles")["operator_key"]
FOREIGN_KEY: str = read("bundles")["foreign_operator_key"]


def test_the_files_are_what_the_tool_makes() -> None:
    for path, text in make_vectors.texts():
        assert path.read_text(encoding="utf-8") == text, path.name


# -- Payloads -----------------------------------------------------------------------------


@pytest.mark.parametrize("vector", vectors("payloads", "good"), ids=str)
def test_a_good_payload_is_read(vector: Vector) -> None:
    mechanism = vector.mechanism
    assert mechanism.payload_size == len(vector.payload)
    assert mechanism.supported(vector.payload) == vector.facts["supported"]


@pytest.mark.parametrize("vector", vectors("payloads", "bad"), ids=str)
def test_a_bad_payload_is_refused(vector: Vector) -> None:
    with pytest.raises(ValueError, match=r"^not "):
        vector.mechanism.supported(vector.payload)


# -- Hashes, texts and points -------------------------------------------------------------


def hashing_of(vector: Vector) -> LocalHashing:
    return LocalHashing(2, 0, vector.facts["buckets"], int(vector.facts["prime"]))


@pytest.mark.parametrize("vector", vectors("hashing", "good"), ids=str)
def test_a_seed_puts_a_value_into_its_bucket(vector: Vector) -> None:
    mechanism = hashing_of(vector)
    a, b, c = map(int, vector.facts["seed"])
    seed = (a * mechanism.prime + b) * mechanism.prime + c
    assert mechanism.bucket(seed, int(vector.facts["value"])) == vector.facts["bucket"]
    assert mechanism.payload_size == len(vector.payload)
    assert mechanism.read(vector.payload) == (seed, vector.facts["bucket"])


@pytest.mark.parametrize("vector", vectors("hashing", "bad"), ids=str)
def test_what_is_no_seed_and_bucket_is_refused(vector: Vector) -> None:
    with pytest.raises(ValueError, match=r"^not "):
        hashing_of(vector).supported(vector.payload)


@pytest.mark.parametrize("vector", vectors("hashing", "cells"), ids=str)
def test_a_seed_of_memoised_hashing_puts_a_value_into_its_cell(vector: Vector) -> None:
    cells, coordinates = vector.facts["cells"], vector.facts["seed"]
    mechanism = MemoisedLocalHashing.of(2, 0, 0, cells, len(coordinates))
    seed = sum(digit * cells**place for place, digit in enumerate(reversed(coordinates)))
    assert mechanism.cell(seed, vector.facts["value"]) == vector.facts["cell"]
    assert mechanism.payload_size == len(vector.payload)
    assert mechanism.read(vector.payload) == (seed, vector.facts["cell"])


OPEN = parse_metric(open_metric(absent="no answer")).domain


@pytest.mark.parametrize("vector", read("hashing")["texts"], ids=lambda v: ascii(v["text"])[:20])
def test_every_text_has_its_index(vector: dict[str, str]) -> None:
    assert text_index(vector["text"]) == int(vector["index"])
    assert OPEN.index_of(vector["text"]) == int(vector["index"])


@pytest.mark.parametrize("text", read("hashing")["not_texts"], ids=lambda text: ascii(text)[:20])
def test_what_is_no_text_has_no_index(text: str) -> None:
    assert OPEN.index_of(text) is None


@pytest.mark.parametrize("vector", vectors("geometry", "points"), ids=str)
def test_a_point_has_its_coordinates_and_hyperplane(vector: Vector) -> None:
    facts = vector.facts
    field, dimensions, index = facts["field"], facts["dimensions"], facts["index"]
    space = laws.points(field, dimensions)
    assert list(space[index]) == facts["coordinates"]
    mechanism = ProjectiveGeometry(len(space), 0, field, dimensions)
    payload = laws.number(index, len(space))
    assert mechanism.supported(payload) == facts["orthogonal"]


# -- Bundles ------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", vectors("bundles", "good"), ids=str)
def test_a_good_bundle_is_understood(vector: Vector) -> None:
    bundle = Bundle.verify(vector.signed, operator_key=OPERATOR_KEY)
    facts = vector.facts
    assert bundle.operator == OPERATOR_KEY
    assert bundle.signed == vector.signed
    assert (bundle.revision, bundle.endpoint) == (facts["revision"], facts["endpoint"])
    assert [key.key_id.hex() for key in bundle.sealing_keys] == facts["sealing_keys"]
    assert list(bundle.metrics) == [metric["name"] for metric in facts["metrics"]]
    for expected in facts["metrics"]:
        metric = bundle.metrics[expected["name"]]
        assert metric.question == expected["question"]
        assert metric.source == expected["source"]
        assert metric.digest.hex() == expected["digest"]
        assert list(metric.domain.labels) == expected["values"]
        assert metric.domain.other == _number(expected["other"])
        assert metric.domain.absent == _number(expected["absent"])
        assert metric.domain.open == expected["open"]
        assert metric.retain == expected["retain"]
        for name, value in expected["schedule"].items():
            assert getattr(metric.schedule, name) == value
        assert metric.mechanism.name == expected["mechanism"]
        assert metric.mechanism.payload_size == expected["payload_bytes"]
        assert metric.mechanism.parameters == {
            name: int(number) for name, number in expected["parameters"].items()
        }
        assert metric.epsilon.text == expected["epsilon_declared"]
        assert metric.epsilon.decimal == expected["epsilon_charged"]
        assert metric.certificate.realised == expected["epsilon_realised"]
        ratios = [f"{c.ratio.numerator}/{c.ratio.denominator}" for c in metric.certificates]
        assert ratios == [*filter(None, (expected["ratio"], expected["ratio_permanent"]))]
        assert (metric.permanent and metric.permanent.text) == expected["permanent"]
        assert (metric.memoised and metric.memoised.rows) == expected["rows"]
        assert charge_text(metric.total_charge) == expected["epsilon_total"]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


@pytest.mark.parametrize("vector", vectors("bundles", "bad"), ids=str)
def test_a_bad_bundle_is_refused_for_its_reason(vector: Vector) -> None:
    facts = vector.facts
    kind: type[errors.BundleError] = getattr(errors, facts["error"])
    with pytest.raises(kind) as caught:
        Bundle.verify(vector.signed, operator_key=OPERATOR_KEY)
    error: Any = caught.value
    assert type(error) is kind
    assert str(error)
    assert "\n" not in str(error)
    assert facts.get("reason", "") in getattr(error, "reason", "")
    for field in ("metric", "field"):
        if field in facts:
            assert getattr(error, field) == facts[field]
            assert facts[field] in str(error).replace("\\n", "\n").replace("\\x00", "\0")


@pytest.mark.parametrize("vector", vectors("bundles", "good"), ids=str)
def test_a_good_bundle_of_another_operator_is_refused(vector: Vector) -> None:
    with pytest.raises(errors.BadSignature) as caught:
        Bundle.verify(vector.signed, operator_key=FOREIGN_KEY)
    assert caught.value.operator_keys == (FOREIGN_KEY,)


def test_any_of_several_operators_may_have_signed() -> None:
    signed = vectors("bundles", "good")[0].signed
    bundle = Bundle.verify(signed, operator_key=[FOREIGN_KEY, OPERATOR_KEY])
    assert bundle.operator == OPERATOR_KEY


def test_no_operator_at_all_trusts_nobody() -> None:
    signed = vectors("bundles", "good")[0].signed
    with pytest.raises(errors.BadSignature):
        Bundle.verify(signed, operator_key=[])
