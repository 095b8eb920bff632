"""Query and `hubbub query`: a weighted sum, as the counts give it."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.estimation.intervals import Target
from hubbub_aggregator.estimation.linear import linear_estimate
from tests.aggregator.asked import TIMEOUT, Asked, asked
from tests.bundles import Operator


@pytest.fixture(scope="module")
def served(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    crowds = {
        ("lunch.today", 0): [150, 100, 50, 0],
        ("dinner", 0): [90, 30, 30],
        ("visits", 0): [100, 100, 50, 50],
    }
    with asked(operator, tmp_path_factory.mktemp("served"), crowds) as served:
        yield served


def ask(served: Asked, metric: str, weights: dict[str, float], **how: Any) -> Any:
    request = estimate_pb2.QueryRequest(
        metric=metric,
        weights=[estimate_pb2.Weight(value=value, weight=w) for value, w in weights.items()],
        **how,
    )
    return served.estimates.Query(request, timeout=TIMEOUT)


@pytest.mark.parametrize("target", ["respondents", "population"])
@pytest.mark.parametrize("metric", ["lunch.today", "dinner"])
def test_figures_are_those_of_the_counts(served: Asked, metric: str, target: Target) -> None:
    wire = getattr(estimate_pb2, f"TARGET_{target.upper()}")
    answer = ask(served, metric, {"soup": 2.0, "salad": -1.0}, target=wire, level=0.9)
    known = served.bundle.metrics[metric]
    weights = np.zeros(known.mechanism.k)
    weights[[known.domain.indices["soup"], known.domain.indices["salad"]]] = 2, -1

    tally = served.tallies[metric, 0]
    expected = linear_estimate(known.mechanism, tally, weights, target=target, level=0.9)

    for figure in fields(expected):
        assert getattr(answer, figure.name) == getattr(expected, figure.name), figure.name
    assert (answer.target, answer.level) == (wire, 0.9)
    assert answer.provenance.digest == known.digest
    assert answer.provenance.n == tally.n
    assert answer.provenance.mechanism == known.mechanism.name
    assert answer.provenance.state == estimate_pb2.ROUND_STATE_OPEN
    assert answer.provenance.as_of > 0


NOT_FOUND, INVALID = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("metric", "weights", "code", "text"),
    [
        ("nonsense", {"soup": 1.0}, NOT_FOUND, "there is no metric 'nonsense'"),
        ("dinner", {"soop": 1.0}, NOT_FOUND, "no value 'soop'; it has: salad, soup, stew"),
        ("dinner", {"": 1.0}, NOT_FOUND, "no value ''"),
        ("dinner", {}, INVALID, "nothing is weighed"),
        ("dinner", {"soup": 0.0}, INVALID, "nothing is weighed"),
        ("dinner", {"soup": float("inf")}, INVALID, "'soup' weighs inf"),
        ("dinner", {"soup": float("nan")}, INVALID, "'soup' weighs nan"),
        ("dinner", {"soup": 1e61}, INVALID, "at most 1e60"),
        ("words", {"soup": 1.0}, INVALID, "hubbub estimate words --candidates FILE"),
        ("words", {}, INVALID, "open domain"),
    ],
    ids=str,
)
def test_bad_questions(
    served: Asked, metric: str, weights: dict[str, float], code: grpc.StatusCode, text: str
) -> None:
    with pytest.raises(grpc.RpcError, match=text) as raised:
        ask(served, metric, weights)
    assert raised.value.code() is code


def test_a_value_is_weighed_once(served: Asked) -> None:
    twice = [estimate_pb2.Weight(value="soup", weight=1.0)] * 2
    with pytest.raises(grpc.RpcError, match="'soup' is weighed twice"):
        served.estimates.Query(
            estimate_pb2.QueryRequest(metric="dinner", weights=twice), timeout=TIMEOUT
        )


def test_json_says_what_the_service_says(served: Asked) -> None:
    run = served.run("query", "lunch.today", "soup=1", "salad=1", "--format", "json")
    report = json.loads(run.stdout)
    answer = ask(served, "lunch.today", {"soup": 1.0, "salad": 1.0})

    assert list(report) == [
        *("metric", "digest", "round", "n", "plain", "mechanism", "epsilon", "as_of"),
        *("target", "level", "weights"),
        *("estimate", "std_error", "low", "high", "influence"),
    ]
    assert report["weights"] == [
        {"value": "soup", "weight": 1.0},
        {"value": "salad", "weight": 1.0},
    ]
    assert report["n"] == 300
    assert report["digest"] == answer.provenance.digest.hex()
    assert report["epsilon"]["declared"] == "2"
    for name in ("estimate", "std_error", "low", "high", "influence"):
        assert report[name] == getattr(answer, name)


def test_people_read_a_sum_as_a_share(served: Asked) -> None:
    text = served.run("query", "lunch.today", "soup=1", "salad=1", "--level", "0.9").stdout

    assert "n = 300" in text
    assert "among the devices that answered (respondents)" in text
    (line,) = [line for line in text.splitlines() if line.startswith("soup + salad = ")]
    assert line.endswith(" %")
    assert "90 % interval" in text
    assert "One hostile report" in text


def test_what_adds_up_to_everybody_has_no_error(served: Asked) -> None:
    """A report of this mechanism supports one value, whatever it says."""
    everything = ("soup=1", "salad=1", "pasta=1", "nothing=1")
    text = served.run("query", "lunch.today", *everything).stdout

    assert "soup + salad + pasta + nothing = 100.00 %\n" in text
    assert "standard error 0.00 %; 95 % interval " in text
    assert "by up to 0.00 %." in text


def test_a_difference_is_in_points_as_comparisons_have_it(served: Asked) -> None:
    text = served.run("query", "lunch.today", "salad=1", "soup=-1").stdout
    compared = served.run("compare", "lunch.today", "--left", "salad", "--right", "soup").stdout

    (difference,) = re.findall(r"^salad − soup = (−[\d.]+ points)", text, re.MULTILINE)
    assert f"salad − soup = {difference} (" in compared


def test_weights_may_stand_in_a_file(served: Asked, tmp_path: Path) -> None:
    path = tmp_path / "weights.csv"
    path.write_text("value;weight\nsoup;0.5\nsalad;-2\n", encoding="utf-8")

    text = served.run("query", "lunch.today", "--weights", str(path)).stdout

    assert "0.5 × soup − 2 × salad = " in text


def test_numbers_have_a_mean(served: Asked) -> None:
    run = served.run("query", "visits", "--values-as-numbers", "--format", "json")
    report = json.loads(run.stdout)
    answer = ask(served, "visits", {"0": 0.0, "1": 1.0, "2": 2.0, "3": 3.0})

    assert report["estimate"] == pytest.approx(answer.estimate, rel=1e-12)
    assert report["low"] < report["estimate"] < report["high"]
    assert "\nmean = " in served.run("query", "visits", "--values-as-numbers").stdout


def test_before_the_first_snapshot_there_are_no_figures(served: Asked) -> None:
    run = served.run("query", "silent", "soup=1", "--format", "json")
    report = json.loads(run.stdout)

    assert run.returncode == 0
    assert report["n"] == 0
    assert {report[name] for name in ("as_of", "estimate", "low", "influence")} == {None}
    assert "no figures yet" in served.run("query", "silent", "soup=1").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lunch.today"], "say what is summed: VALUE=WEIGHT…, --weights or --values-as-numbers"),
        (["lunch.today", "soup=much"], "the weight 'much' of 'soup' is no number"),
        (["lunch.today", "soop=1"], "no value 'soop'; it has: soup, salad, pasta, nothing"),
        (
            ["lunch.today", "--values-as-numbers"],
            "'soup' of 'lunch.today' is no number; say what the others weigh with --weights FILE",
        ),
        (["lunch.today", "soup=1", "--level", "95%"], "--level is between 0 and 1"),
        (["lunch.today", "soup=1", "--level", "95"], "--level is between 0 and 1"),
    ],
    ids=str,
)
def test_mistakes_are_one_sentence(served: Asked, arguments: list[str], sentence: str) -> None:
    assert sentence in served.refusal("query", *arguments)
