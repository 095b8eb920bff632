"""Pool, `hubbub estimate --rounds` and `pooled` in Python: rounds as their counts give them."""

import csv
import io
import json
import os
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import hubbub_aggregator
from hubbub.v1 import estimate_pb2
from hubbub_aggregator.catalogue import Catalogue
from hubbub_aggregator.connection import CallFailed
from hubbub_aggregator.estimation import anytime
from hubbub_aggregator.estimation.estimate import Estimate
from hubbub_aggregator.estimation.intervals import Target
from hubbub_aggregator.estimation.pooled import pool, pooled_estimate
from hubbub_aggregator.reader import Reader
from hubbub_aggregator.records import FIGURES, POOLED_COLUMNS
from hubbub_aggregator.refusals import Refused
from hubbub_aggregator.services.pooling import Pooling
from hubbub_aggregator.services.questions import Questions
from hubbub_aggregator.store import Batch, Store, as_ids
from tests.aggregator.asked import LUNCHES, TIMEOUT, Asked
from tests.bundles import Operator, make_bundle, make_metric
from tests.processes import ServeProcess

# Of eight rounds the first is closed by now, and the second to the fourth take reports.
PERIODIC = (5 * 10**8, 8, 10**9)
CROWDS = {
    ("mood", 1): [120, 80, 0],
    ("mood", 3): [250, 100, 50],
    ("lunch", 1): [60, 30, 20, 0],
    ("lunch", 2): [100, 50, 50, 0],
}


@pytest.fixture(scope="module")
def served(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("served")
    bundle = make_bundle(
        operator,
        make_metric(
            "mood",
            values=("good", "fair", "poor"),
            mechanism="memoised-optimised-unary",
            permanent="2",
            periodic=PERIODIC,
        ),
        make_metric("lunch", values=LUNCHES, mechanism="optimised-unary", periodic=PERIODIC),
        make_metric("silent", values=LUNCHES, periodic=PERIODIC),
        make_metric("once", values=LUNCHES),
        make_metric("words", open=True, mechanism="local-hashing"),
    )
    (folder / "metrics.hubbub").write_bytes(bundle.signed)
    with ServeProcess(operator, folder / "metrics.hubbub", folder / "store.sqlite3") as serve:
        made = Asked(serve, bundle, CROWDS)
        with made.channel:
            yield made


@pytest.fixture
def reader(served: Asked) -> Iterator[Reader]:
    with hubbub_aggregator.connect(served.address) as reader:
        yield reader


def ask(served: Asked, metric: str, **how: Any) -> Any:
    request = estimate_pb2.PoolRequest(metric=metric, **how)
    return served.estimates.Pool(request, timeout=TIMEOUT)


def expected(served: Asked, metric: str, *rounds: int, target: Target, level: float) -> Estimate:
    tallies = sorted((served.tallies[metric, number] for number in rounds), key=lambda t: -t.n)
    found = pool(tallies)
    assert found is not None
    return pooled_estimate(
        served.bundle.metrics[metric].mechanism, found, target=target, level=level
    )


@pytest.mark.parametrize("target", ["respondents", "population"])
@pytest.mark.parametrize(("metric", "rounds"), [("mood", (1, 3)), ("lunch", (1, 2))])
def test_figures_are_those_of_the_counts(
    served: Asked, metric: str, rounds: tuple[int, int], target: Target
) -> None:
    wire = getattr(estimate_pb2, f"TARGET_{target.upper()}")
    answer = ask(served, metric, first=0, last=3, target=wire, level=0.9)
    known = served.bundle.metrics[metric]

    figures = expected(served, metric, *rounds, target=target, level=0.9)

    for figure in fields(figures):
        found = [getattr(row, figure.name) for row in answer.values]
        assert found == getattr(figures, figure.name).tolist(), figure.name
    tallies = [served.tallies[metric, number] for number in rounds]
    supports = np.sum([tally.cells for tally in tallies], axis=0)
    assert [row.count for row in answer.values] == supports.tolist()
    assert [row.value for row in answer.values] == list(known.domain.labels)
    assert (answer.n, answer.digest) == (sum(tally.n for tally in tallies), known.digest)
    assert [(summary.round, summary.n) for summary in answer.rounds] == [
        (number, tally.n) for number, tally in zip(rounds, tallies, strict=True)
    ]
    assert {summary.state for summary in answer.rounds} == {estimate_pb2.ROUND_STATE_OPEN}
    # They may change yet; where reports of one device vary together, no rule is known for that.
    present = [False] * len(answer.values)
    if metric == "lunch":
        counts = np.array([row.count for row in answer.values])
        present = anytime.found(known.mechanism.support, counts, answer.n, level=0.9).tolist()
    assert [row.found for row in answer.values] == present
    assert (answer.first, answer.last, answer.kind) == (0, 3, "unbiased")
    assert (answer.target, answer.level) == (wire, 0.9)
    assert answer.at_most == (metric == "mood" or target == "population")
    assert answer.as_of > 0


def test_without_a_range_it_is_all_rounds_up_to_the_newest(served: Asked) -> None:
    answer = ask(served, "mood")
    assert (answer.first, answer.last, answer.n) == (0, 3, 600)
    assert answer.level == 0.95
    assert answer.target == estimate_pb2.TARGET_RESPONDENTS


def test_one_round_is_what_it_is_alone(served: Asked) -> None:
    alone = served.estimates.GetEstimates(
        estimate_pb2.GetEstimatesRequest(metric="mood", round=3), timeout=TIMEOUT
    )
    answer = ask(served, "mood", first=2, last=3)
    assert answer.values == alone.estimates.values
    assert answer.as_of == alone.estimates.as_of
    assert not answer.at_most


NOT_FOUND, INVALID = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("how", "code", "text"),
    [
        ({"metric": "nonsense"}, NOT_FOUND, "there is no metric 'nonsense'"),
        ({"metric": "mood", "last": 8}, NOT_FOUND, "rounds 0 to 7, not 8"),
        ({"metric": "mood", "first": 9, "last": 3}, NOT_FOUND, "rounds 0 to 7, not 9"),
        ({"metric": "mood", "first": 3, "last": 1}, INVALID, "first to the last, not 3 to 1"),
        ({"metric": "mood", "target": 7}, INVALID, "respondents or population"),
        ({"metric": "mood", "level": 1.5}, INVALID, "between 0 and 1, not 1.5"),
        ({"metric": "words"}, INVALID, "hubbub estimate words --candidates FILE"),
    ],
    ids=str,
)
def test_bad_questions(
    served: Asked, how: dict[str, Any], code: grpc.StatusCode, text: str
) -> None:
    with pytest.raises(grpc.RpcError, match=text) as raised:
        ask(served, **how)
    assert raised.value.code() is code


def test_more_than_a_call_can_pool_is_refused(
    operator: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = make_bundle(operator, make_metric("lunch", values=LUNCHES, periodic=PERIODIC))
    digest = bundle.metrics["lunch"].digest
    store = Store(str(tmp_path / "store.sqlite3"), writer=1, publish_step=1)
    store.adopt(bundle, now=0)

    def fold(new: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.full(len(LUNCHES), new.sum())

    for number in (1, 2, 3):
        ids = as_ids(os.urandom(16 * number))
        store.commit([Batch(digest, number, ids, fold)], now=0)
    questions = Questions(Catalogue(bundle, store.metrics()), store, time.time)
    pooling = Pooling(store, questions)
    monkeypatch.setattr("hubbub_aggregator.services.pooling.MAX_POOLED", 2 * 4)

    two = pooling.answer(questions.span(estimate_pb2.PoolRequest(metric="lunch", last=2)))
    with pytest.raises(Refused, match="2 rounds of 'lunch' can be pooled at once; ask for fewer"):
        pooling.answer(questions.span(estimate_pb2.PoolRequest(metric="lunch")))

    assert (two.n, len(two.rounds)) == (3, 2)
    store.close()


# -- The command --------------------------------------------------------------------------------


def test_json_says_what_the_service_says(served: Asked) -> None:
    report = json.loads(
        served.run("estimate", "mood", "--rounds", "0-3", "--format", "json").stdout
    )
    answer = ask(served, "mood", first=0, last=3)

    assert list(report) == [
        *("metric", "digest", "first_round", "last_round", "pooled_rounds", "rounds"),
        *("without_reports", "n", "plain", "mechanism", "epsilon", "at_most"),
        *("kind", "target", "level", "as_of", "values"),
    ]
    assert (report["first_round"], report["last_round"], report["pooled_rounds"]) == (0, 3, 2)
    assert report["rounds"] == [{"round": 1, "n": 200}, {"round": 3, "n": 400}]
    assert report["without_reports"] == [0, 2]
    assert (report["n"], report["at_most"]) == (600, True)
    for row, figures in zip(report["values"], answer.values, strict=True):
        assert row == {name: getattr(figures, name) for name in ("value", "count", *FIGURES)}


def test_people_are_told_what_is_assumed(served: Asked) -> None:
    text = served.run("estimate", "mood", "--rounds", "all").stdout

    assert text.startswith("mood, rounds 0 to 3 pooled: n = 600 as of ")
    assert "\nno snapshot of rounds 0, 2\n" in text
    assert "share among the reports, each about its device's value in its round (respond" in text
    assert "who answered when is not known" in text
    assert "one hostile device by 2 times as much." in text


def test_noise_that_is_drawn_afresh_adds_up(served: Asked) -> None:
    text = served.run("estimate", "lunch", "--rounds", "0-7").stdout

    assert "\nno snapshot of rounds 0, 3 to 7\n" in text
    assert "Every report has noise of its own" in text
    assert "who answered when" not in text
    assert (
        "who answered when"
        in served.run("estimate", "lunch", "--rounds", "1-2", "--target", "population").stdout
    )


def test_without_a_snapshot_there_are_no_figures(served: Asked) -> None:
    run = served.run("estimate", "silent", "--rounds", "all", "--format", "json")
    report = json.loads(run.stdout)

    assert run.returncode == 0
    assert (report["n"], report["pooled_rounds"], report["as_of"]) == (0, 0, None)
    assert {row["estimate"] for row in report["values"]} == {None}
    assert len(report["values"]) == len(LUNCHES)
    text = served.run("estimate", "silent", "--rounds", "1-2").stdout
    assert "no figures: none of these rounds has a snapshot" in text


def test_csv_and_parquet_have_the_same_rows(served: Asked, reader: Reader, tmp_path: Path) -> None:
    text = served.run("estimate", "mood", "--rounds", "all", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    path = tmp_path / "mood.parquet"
    told = served.run("estimate", "mood", "--rounds", "all", "--to-parquet", str(path)).stdout

    assert tuple(rows[0]) == POOLED_COLUMNS
    assert told == f"{path}: 3 values of mood\n"
    table = parquet.read_table(path)
    assert table.equals(reader.pooled("mood").to_arrow(), check_metadata=True)
    types = {field.name: field.type for field in table.schema}
    assert {types[name] for name in ("first_round", "last_round", "pooled_rounds")} == {pa.int64()}
    assert types["at_most"] == pa.bool_()
    assert [row["estimate"] for row in rows] == [str(x) for x in table["estimate"].to_pylist()]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rounds", "3"], "--rounds are FIRST-LAST, for example 0-29, or all; not 3"),
        (["--rounds", "-1-3"], "--rounds are FIRST-LAST"),
        (["--rounds", "0-99999999999999999999"], "--rounds are FIRST-LAST"),
        (["--rounds", "0-9"], "rounds 0 to 7, not 9"),
        (["--rounds", "2-1"], "first to the last, not 2 to 1"),
        (["--rounds", "0-1", "--round", "0"], "--rounds go with neither --round nor"),
        (["--rounds", "0-1", "--candidates", "file"], "--rounds go with neither --round nor"),
    ],
    ids=str,
)
def test_mistakes_are_one_sentence(served: Asked, arguments: list[str], sentence: str) -> None:
    assert sentence in served.refusal("estimate", "mood", *arguments)


# -- Python -------------------------------------------------------------------------------------


def test_pooled_rounds_in_python(served: Asked, reader: Reader) -> None:
    found = reader.pooled("mood", (1, 3), target="population", level=0.9)
    figures = expected(served, "mood", 1, 3, target="population", level=0.9)

    assert [(known.number, known.state, known.n) for known in found.rounds] == [
        (1, "open", 200),
        (3, "open", 400),
    ]
    assert (found.first_round, found.last_round, found.n, found.at_most) == (1, 3, 600, True)
    assert [row["low"] for row in found.to_dicts()] == figures.low.tolist()
    assert list(found.to_pandas()["high"]) == figures.high.tolist()
    assert found.as_of is not None
    with pytest.raises(CallFailed, match="rounds 0 to 7, not 8"):
        reader.pooled("mood", (0, 8))
    with pytest.raises(ValueError, match="respondents or population"):
        reader.pooled("mood", target="everybody")
