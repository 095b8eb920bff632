"""The client against the golden vectors."""

from typing import Any

import pytest

from hubbub import errors
from hubbub.contract import Bundle
from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS, Mechanism
from tests.golden import Vector, read, vectors
from tools import make_vectors

OPERATOR_KEY: str = read("bundles")["operator_key"]
FOREIGN_KEY: str = read("bundles")["foreign_operator_key"]


def test_the_files_are_what_the_tool_makes() -> None:
    for path, text in make_vectors.texts():
        assert path.read_text(encoding="utf-8") == text, path.name


# -- Payloads -----------------------------------------------------------------------------


def mechanism_of(vector: Vector) -> Mechanism:
    kind = MECHANISMS[vector.facts["mechanism"]]
    return kind.calibrate(vector.facts["k"], Epsilon.parse("1"))


@pytest.mark.parametrize("vector", vectors("payloads", "good"), ids=str)
def test_a_good_payload_is_read(vector: Vector) -> None:
    mechanism = mechanism_of(vector)
    assert mechanism.payload_size == len(vector.payload)
    assert mechanism.supported(vector.payload) == vector.facts["supported"]


@pytest.mark.parametrize("vector", vectors("payloads", "bad"), ids=str)
def test_a_bad_payload_is_refused(vector: Vector) -> None:
    with pytest.raises(ValueError, match=r"^not "):
        mechanism_of(vector).supported(vector.payload)


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
        assert metric.domain.other == expected["other"]
        assert metric.domain.absent == expected["absent"]
        for name, value in expected["schedule"].items():
            assert getattr(metric.schedule, name) == value
        assert metric.mechanism.name == expected["mechanism"]
        assert metric.mechanism.payload_size == expected["payload_bytes"]
        for name, threshold in expected["thresholds"].items():
            assert metric.mechanism.thresholds[name] == int(threshold)
        assert metric.epsilon.text == expected["epsilon_declared"]
        assert metric.epsilon.decimal == expected["epsilon_charged"]
        assert metric.certificate.realised == expected["epsilon_realised"]
        ratio = metric.certificate.ratio
        assert f"{ratio.numerator}/{ratio.denominator}" == expected["ratio"]


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
