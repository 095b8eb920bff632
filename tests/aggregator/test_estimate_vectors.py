"""The golden vectors: every figure, computed apart with 50 digits, to 12 digits."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub.mechanisms import MECHANISMS, Support
from hubbub_aggregator.estimation.estimate import estimate

VECTORS: Final[list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "estimates.json").read_text()
)


def label(vector: dict[str, Any]) -> str:
    return "-".join(str(vector[key]) for key in ("mechanism", "k", "epsilon", "target", "level"))


def test_the_vectors_try_every_mechanism_target_and_kind_of_interval() -> None:
    assert {v["mechanism"] for v in VECTORS} == set(MECHANISMS)
    assert {v["target"] for v in VECTORS} == {"respondents", "population"}
    rarer = [v["n"] * min(Fraction(v["q"]), 1 - Fraction(v["p"])) for v in VECTORS]
    assert min(rarer) < 10 < max(rarer)


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_figures_agree_with_the_vectors(vector: dict[str, Any]) -> None:
    support = Support(Fraction(vector["p"]), Fraction(vector["q"]))

    found = estimate(
        support,
        np.array(vector["counts"]),
        vector["n"],
        target=vector["target"],
        level=vector["level"],
    )

    expected = [vector["figures"][str(count)] for count in vector["counts"]]
    for name in expected[0]:
        wanted = np.array([figures[name] for figures in expected], np.float64)
        # Digits are counted from the larger of the figure and its standard error: near 0 a
        # figure is the difference of two that are not.
        scale = np.maximum(np.abs(wanted), found.std_error)
        off = np.abs(getattr(found, name).astype(np.float64) - wanted)
        assert (off <= 1e-12 * scale).all(), name


@pytest.mark.parametrize("vector", VECTORS, ids=label)
def test_supports_agree_with_the_vectors(vector: dict[str, Any]) -> None:
    kind, parameters = MECHANISMS[vector["mechanism"]], vector["parameters"].values()
    epsilon = Epsilon.parse(vector["epsilon"])

    found = kind.calibrate(vector["k"], epsilon, *parameters).support

    assert found == (Fraction(vector["p"]), Fraction(vector["q"]))
