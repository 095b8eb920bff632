"""Compare and `hubbub compare`: differences, as the counts give them."""

import csv
import io
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from hubbub.v1 import estimate_pb2
from hubbub_aggregator.estimation.comparison import Sample
from hubbub_aggregator.estimation.differences import Differences, between, within
from hubbub_aggregator.estimation.intervals import Target
from tests.aggregator.asked import LUNCHES, TIMEOUT, Asked, asked
from tests.bundles import Operator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def served(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    crowds = {
        ("lunch.today", 0): [260, 60, 40, 0],
        ("lunch.weekly", 0): [400, 100, 0, 0],
        ("lunch.weekly", 1): [100, 100, 300, 0],
        ("dinner", 0): [150, 50, 50],
    }
    with asked(operator, tmp_path_factory.mktemp("served"), crowds) as served:
        yield served


Side = tuple[str, int | None]


def ask(
    served: Asked, left: Side, right: Side, pairs: list[tuple[str, str]], **how: Any
) -> estimate_pb2.CompareResponse:
    request = estimate_pb2.CompareRequest(
        left=estimate_pb2.RoundOfMetric(metric=left[0], round=left[1]),
        right=estimate_pb2.RoundOfMetric(metric=right[0], round=right[1]),
        pairs=[estimate_pb2.ValuePair(left=one, right=other) for one, other in pairs],
        **how,
    )
    answer = served.estimates.Compare(request, timeout=TIMEOUT)
    assert isinstance(answer, estimate_pb2.CompareResponse)
    return answer


def sample(served: Asked, metric: str, number: int = 0) -> Sample:
    return Sample(served.bundle.metrics[metric].mechanism, served.tallies[metric, number])


def same(answer: estimate_pb2.CompareResponse, expected: Differences) -> None:
    for figure in fields(expected):
        got = [getattr(row, figure.name) for row in answer.differences]
        np.testing.assert_array_equal(got, getattr(expected, figure.name), figure.name)


@pytest.mark.parametrize("target", ["respondents", "population"])
def test_values_of_one_snapshot(served: Asked, target: Target) -> None:
    pairs = [("soup", "salad"), ("nothing", "soup")]
    wire = getattr(estimate_pb2, f"TARGET_{target.upper()}")

    today = ("lunch.today", None)
    answer = ask(served, today, today, pairs, target=wire, level=0.9)

    left, right = np.array([0, 3]), np.array([1, 0])
    same(answer, within(sample(served, "lunch.today"), left, right, target=target, level=0.9))
    assert [(row.values.left, row.values.right) for row in answer.differences] == pairs
    assert answer.left == answer.right
    assert (answer.left.n, answer.target, answer.level) == (360, wire, 0.9)


def test_two_rounds_value_by_value(served: Asked) -> None:
    answer = ask(served, ("lunch.weekly", 0), ("lunch.weekly", 1), [])

    samples = sample(served, "lunch.weekly"), sample(served, "lunch.weekly", 1)
    same(answer, between(*samples, np.arange(4), np.arange(4)))
    assert [row.values.left for row in answer.differences] == list(LUNCHES)
    assert [row.values.right for row in answer.differences] == list(LUNCHES)
    assert (answer.left.round, answer.right.round) == (0, 1)


def test_two_metrics_of_different_mechanisms(served: Asked) -> None:
    """Labels are paired by what they say, not by where they stand."""
    pairs = [("soup", "soup"), ("salad", "stew")]

    answer = ask(served, ("lunch.today", 0), ("dinner", 0), pairs)

    samples = sample(served, "lunch.today"), sample(served, "dinner")
    same(answer, between(*samples, np.array([0, 1]), np.array([1, 2])))
    mechanisms = answer.left.mechanism, answer.right.mechanism
    assert mechanisms == tuple(made.mechanism.name for made in samples)


NOT_FOUND, INVALID = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT
TODAY, DINNER = ("lunch.today", None), ("dinner", None)
WORDS, WIDE = ("words", None), ("wide", None)


@pytest.mark.parametrize(
    ("sides", "pairs", "code", "text"),
    [
        ((TODAY, TODAY), [], INVALID, "both sides are the same round; name two values"),
        ((TODAY, TODAY), [("soup", "soup")], INVALID, "'soup' is compared with itself"),
        ((TODAY, ("lunch.today", 0)), [("soup", "soup")], INVALID, "compared with itself"),
        ((TODAY, DINNER), [], INVALID, "'dinner' has no 'nothing', which 'lunch.today' has"),
        ((DINNER, TODAY), [], INVALID, "'lunch.today' has no 'stew', which 'dinner' has"),
        ((WORDS, WORDS), [("a", "b")], INVALID, "open domain"),
        ((TODAY, WORDS), [], INVALID, "hubbub estimate words --candidates FILE"),
        ((TODAY, DINNER), [("soup", "tea")], NOT_FOUND, "'dinner' has no value 'tea'"),
        ((TODAY, ("nonsense", None)), [], NOT_FOUND, "no metric 'nonsense'"),
        ((WIDE, WIDE), [("v1", "v2")] * 2_001, INVALID, "2,000 pairs of 'wide' .* not 2,001"),
    ],
    ids=lambda what: str(what)[:60],
)
def test_bad_questions(
    served: Asked, sides: tuple[Side, Side], pairs: Any, code: grpc.StatusCode, text: str
) -> None:
    with pytest.raises(grpc.RpcError, match=text) as raised:
        ask(served, *sides, pairs)
    assert raised.value.code() is code


def test_json_says_what_the_service_says(served: Asked) -> None:
    run = served.run("compare", "lunch.weekly", "--rounds", "0", "1", "--format", "json")
    report = json.loads(run.stdout)
    answer = ask(served, ("lunch.weekly", 0), ("lunch.weekly", 1), [])

    assert list(report) == ["left", "right", "target", "level", "comparisons", "differences"]
    assert report["comparisons"] == 4
    assert (report["left"]["round"], report["right"]["round"]) == (0, 1)
    for row, expected in zip(report["differences"], answer.differences, strict=True):
        assert (row["left"], row["right"]) == (expected.values.left, expected.values.right)
        assert row["estimate"] == expected.estimate
        assert row["adjusted_p_value"] == expected.adjusted_p_value
        assert row["distinguishable"] is expected.distinguishable


def test_csv_has_a_row_for_each_difference(served: Asked) -> None:
    run = served.run("compare", "lunch.weekly", "--rounds", "0", "1", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(run.stdout)))

    assert [row["left"] for row in rows] == list(LUNCHES)
    assert {(row["left_round"], row["right_round"], row["left_n"]) for row in rows} == {
        ("0", "1", "500")
    }


def test_one_difference_is_a_sentence(served: Asked) -> None:
    run = served.run("compare", "lunch.today", "--left", "salad", "--right", "soup")

    (line,) = [line for line in run.stdout.splitlines() if line.startswith("salad − soup = −")]
    assert re.search(r"= −\d+\.\d points \(−\d+\.\d to −\d+\.\d\), standard error \d+\.\d; p", line)
    assert "comparisons" not in run.stdout


def test_multiplicity_is_stated(served: Asked) -> None:
    run = served.run("compare", "lunch.today", "dinner", *("--left", "soup", "--right", "soup") * 2)
    assert "soup in lunch.today − soup in dinner = " in run.stdout
    assert "adjusted for 2 comparisons" in run.stdout
    assert "\n2 comparisons: " in run.stdout
    assert "Not distinguishable: the simultaneous interval" in run.stdout


def test_many_differences_are_a_table(served: Asked) -> None:
    text = served.run("compare", "lunch.weekly", "--rounds", "0", "1").stdout

    assert "soup in round 0" in text
    assert "adjusted p" in text
    assert "\n4 comparisons: " in text


def test_before_the_first_snapshot_there_are_no_figures(served: Asked) -> None:
    pair = ("--left", "soup", "--right", "salad")
    run = served.run("compare", "lunch.today", "silent", *pair, "--format", "json")
    report = json.loads(run.stdout)

    assert run.returncode == 0
    assert (report["left"]["n"], report["right"]["n"]) == (360, 0)
    (row,) = report["differences"]
    assert {row["estimate"], row["p_value"], row["distinguishable"]} == {None}
    text = served.run("compare", "lunch.today", "silent", *pair).stdout
    assert "no figures yet: round 0 of silent" in text


def test_the_documents_commands_run(served: Asked) -> None:
    text = (ROOT / "docs" / "estimates.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    commands = [shlex.split(line)[1:] for line in blocks.splitlines()]

    assert {command[0] for command in commands} == {"estimate", "query", "compare"}
    for command in commands:
        run = served.run(*command)
        assert (run.returncode, run.stderr) == (0, ""), command


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["lunch.today", "--left", "soup"], "give as many --left as --right"),
        (["lunch.today", "--left", "soop", "--right", "salad"], "no value 'soop'"),
        (["lunch.weekly", "--rounds", "0", "-1"], "--rounds are counted from 0, not from -1"),
    ],
    ids=str,
)
def test_mistakes_are_one_sentence(served: Asked, arguments: list[str], sentence: str) -> None:
    assert sentence in served.refusal("compare", *arguments)
