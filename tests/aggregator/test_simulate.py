"""`hubbub simulate`: truth beside estimate, for people whose answers are known."""

import csv
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hubbub.contract import Metric, parse_metric
from hubbub.domain import text_index
from hubbub.errors import BadSignature, PrivacyNotProved
from hubbub.mechanisms import MECHANISMS, MEMOISED
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.commands.bundle_file import read_metrics
from hubbub_aggregator.commands.options import Format, Target
from hubbub_aggregator.commands.simulate import simulate
from hubbub_aggregator.crowd import SeededChance, batch_size
from hubbub_aggregator.crowd.population import Population
from hubbub_aggregator.definitions import read_definitions
from hubbub_aggregator.records import FIGURES
from hubbub_aggregator.simulate import Simulation, collect
from hubbub_aggregator.simulate import simulate as run
from tests.bundles import Operator, make_metric
from tests.calibrated import calibrated
from tests.harness import Range, mean_range
from tests.processes import COMMAND

Floats = NDArray[np.float64]

SEED = 20_261_128
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COLOURS = ("red", "green", "blue")


def metric(**how: Any) -> Metric:
    return parse_metric(make_metric("colour", **{"values": COLOURS, **how}))


# -- Who the crowd is -----------------------------------------------------------------------


def values_of(population: Population, step: int) -> list[int]:
    """Everybody's value, in batches of `step`."""
    chance, n = SeededChance(1), population.n
    batches = [
        population.values(start, min(start + step, n), chance) for start in range(0, n, step)
    ]
    return [int(value) for batch in batches for value in batch]


@pytest.mark.parametrize("step", [1, 4, 100])
def test_everybody_has_the_value_of_their_answer(step: int) -> None:
    domain = metric(absent="nothing", other="else").domain
    answers = {"blue": 3, "red": 2, "green": 0, None: 1, "mauve": 4, "else": 1}
    population = Population.answering(domain, answers)
    assert (population.n, population.outside) == (11, 0)
    assert values_of(population, step) == [2] * 3 + [0] * 2 + [4] + [3] * 5
    assert [population.share(index) for index in range(5)] == [2 / 11, 0, 3 / 11, 5 / 11, 1 / 11]


def test_whoever_is_outside_gets_a_random_value_and_counts_for_none() -> None:
    population = Population.answering(metric().domain, {"red": 1, "mauve": 3_000, None: 3_000})
    assert (population.n, population.outside) == (6_001, 6_000)
    assert population.share(0) == 1 / 6_001
    _, *values = values_of(population, 1_000)
    counts = np.bincount(values, minlength=3) / 6_000
    assert mean_range(1 / 3, 2 / 9, 1, 6_000, figures=3).holds(counts)


def test_an_open_domain_has_every_text_but_none_too_long() -> None:
    domain = metric(open=True, mechanism="local-hashing", absent="nothing").domain
    population = Population.answering(domain, {"mauve": 2, None: 3, "x" * 257: 1})
    assert population.outside == 1
    *known, random = values_of(population, 10)
    assert known == [text_index("mauve")] * 2 + [text_index("nothing")] * 3
    assert random < domain.k


# -- What is counted ------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_every_report_is_counted_once_whatever_the_batches(beyond: int) -> None:
    mechanism = metric(mechanism="optimised-unary").mechanism
    n = batch_size(mechanism) + beyond
    seen = []

    def count(payloads: Any) -> Any:
        seen.append(len(payloads))
        return np.array([len(payloads)])

    total = collect(mechanism, Population(3, {0: n - 1, 2: 1}), count, SeededChance(1))
    assert total.tolist() == [n]
    assert max(seen) <= batch_size(mechanism)


def allowed_shares(asked: Metric, truth: Floats, n: int) -> Range:
    """Where unbiased estimates of the truth lie: each is a mean over n devices."""
    p, q = map(float, asked.mechanism.support)
    noise = truth * p * (1 - p) + (1 - truth) * q * (1 - q)
    return mean_range(truth, noise / (p - q) ** 2, 1 / (p - q), n, figures=len(truth))


def shares(found: Simulation) -> Floats:
    p, q = map(float, found.metric.metric.mechanism.support)
    return (found.counts / found.n - q) / (p - q)


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_is_counted_and_unbiased(name: str) -> None:
    asked = metric(mechanism=name, epsilon="2")
    found = run(asked, {"red": 12_000, "blue": 8_000}, SeededChance(SEED))
    assert found.truth == [0.6, 0, 0.4]
    assert allowed_shares(asked, np.array(found.truth), found.n).holds(shares(found))


@pytest.mark.parametrize("name", MEMOISED)
def test_a_memoised_metric_is_one_round_of_devices_with_fresh_memos(name: str) -> None:
    asked = metric(mechanism=name, epsilon="2", permanent="4", periodic=(86_400, 30, 86_400))
    found = run(asked, {"red": 12_000, "blue": 8_000}, SeededChance(SEED))
    assert found.truth == [0.6, 0, 0.4]
    assert allowed_shares(asked, np.array(found.truth), found.n).holds(shares(found))


def test_an_open_domain_is_asked_about_candidates() -> None:
    asked = metric(open=True, mechanism="local-hashing", epsilon="4")
    answers: dict[str | None, int] = {"tea": 3_000, "coffee": 1_500, "x" * 300: 500}
    found = run(asked, answers, SeededChance(SEED), ["coffee", "tea", "milk"])
    assert (found.n, found.outside, found.truth) == (5_000, 500, [0.3, 0.6, 0])
    assert allowed_shares(asked, np.array(found.truth), found.n).holds(shares(found))


# -- The command ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(operator: Operator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, and tables of people."""
    folder = tmp_path_factory.mktemp("simulated")
    definitions = read_definitions(EXAMPLES / "blood_types.toml").metric[0]
    metrics = (
        make_metric("colour", values=COLOURS),
        make_metric("drink", open=True, mechanism="local-hashing", epsilon="4"),
        make_metric(definitions.name, values=definitions.values, epsilon=definitions.epsilon),
    )
    (folder / "metrics.hubbub").write_bytes(operator.sign(metrics))
    certain = calibrated("randomised-response", 3, "2")
    (folder / "nudged.hubbub").write_bytes(
        operator.sign([make_metric("colour", values=COLOURS, mechanism=certain)])
    )
    for name, text in {
        "people": "name;colour\nAnn;red\nBob;blue\nCid;\nDee;mauve\n",
        "shares": "colour,people,half\nred,3000,1\ngreen,0,0.5\nblue,1000,1\n",
        "drinks": "drink\n" + "".join(f"d{i}\n" * (101 - i) for i in range(101)),
        "header": "colour\n",
        "empty": "",
        "many": "colour,people\nred,1000000000\nblue,1\n",
        "nobody": "colour,people\nred,0\n",
    }.items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "latin.csv").write_bytes(b"colour\ngr\xfcn\n")
    (folder / "candidates.txt").write_text("d0\nwater\n")
    return folder


class Asked:
    """The command, run in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.remarks: list[str] = []
        self._capsys = capsys

    def simulate(self, table: str | Path = "shares.csv", **how: Any) -> str:
        """What it prints, of the metric and column "colour" unless told otherwise."""
        bundle = self.folder / how.pop("bundle", "metrics.hubbub")
        how = {"column": "colour", **how}
        simulate(bundle, how.pop("metric", "colour"), table=self.folder / table, **how)
        said = self._capsys.readouterr()
        self.remarks = said.err.splitlines()
        return said.out

    def report(self, table: str | Path = "shares.csv", **how: Any) -> Any:
        return json.loads(self.simulate(table, output=Format.JSON, seed=SEED, **how))


@pytest.fixture
def asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(folder, capsys)


def test_the_example_of_blood_types(asked: Asked) -> None:
    report = asked.report(
        EXAMPLES / "blood_types.csv", metric="blood.type", column="value", count="count"
    )
    assert report["n"] == 200_000
    truth = [row["truth"] for row in report["values"]]
    assert truth == [0.38, 0.07, 0.34, 0.06, 0.09, 0.02, 0.03, 0.01]
    estimates = np.array([row["estimate"] for row in report["values"]])
    bundle = read_metrics(asked.folder, (asked.folder / "metrics.hubbub").read_bytes())
    assert allowed_shares(bundle[-1], np.array(truth), 200_000).holds(estimates)
    for row in report["values"]:
        assert row["simultaneous_low"] <= row["truth"] <= row["simultaneous_high"]


def test_the_report_has_the_keys_of_an_estimate_and_the_truth(asked: Asked) -> None:
    report = asked.report(count="people", target=Target.POPULATION, level=0.9)
    assert (report["metric"], report["round"], report["n"]) == ("colour", 0, 4_000)
    assert (report["target"], report["level"], report["kind"]) == ("population", 0.9, "unbiased")
    assert (report["simulated"], report["seed"], report["as_of"]) == (True, SEED, None)
    assert report["epsilon"]["declared"] == "1"
    assert [row["truth"] for row in report["values"]] == [0.75, 0, 0.25]
    assert [row["value"] for row in report["values"]] == list(COLOURS)
    assert set(FIGURES) < set(report["values"][0])


def test_a_seed_repeats_a_simulation(asked: Asked) -> None:
    one, again = (asked.report(count="people") for _ in range(2))
    assert one == again
    unseeded = [asked.simulate(count="people", output=Format.CSV) for _ in range(2)]
    assert unseeded[0] != unseeded[1]


def test_the_table_counts_the_truths_inside(asked: Asked) -> None:
    text = asked.simulate(count="people", seed=SEED, level=0.9)
    assert "colour, simulated: n = 4,000 devices" in text
    assert "90 % intervals" in text
    lines = [line for line in text.splitlines() if line.startswith(COLOURS)]
    inside = sum(line.endswith(" inside") for line in lines)
    assert inside + sum(line.endswith("outside") for line in lines) == len(COLOURS)
    assert text.endswith(f"{inside} of 3 truths inside their 90 % interval.\n")


def test_the_csv_has_a_row_for_each_value(asked: Asked) -> None:
    text = asked.simulate(count="people", output=Format.CSV)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["value"] for row in rows] == list(COLOURS)
    assert [float(row["truth"]) for row in rows] == [0.75, 0, 0.25]
    assert {row["n"] for row in rows} == {"4000"}


def test_answers_outside_the_domain_are_told(asked: Asked) -> None:
    report = asked.report("people.csv")
    assert (report["n"], report["outside"]) == (4, 2)
    assert [row["truth"] for row in report["values"]] == [0.25, 0, 0.25]


def test_an_open_domain_is_asked_about_its_most_frequent_texts(asked: Asked) -> None:
    report = asked.report("drinks.csv", metric="drink", column="drink")
    assert [row["value"] for row in report["values"]] == [f"d{i}" for i in range(100)]
    assert asked.remarks == ["hubbub: asked about the 100 most frequent of 101 texts"]
    named = asked.report(
        "drinks.csv",
        metric="drink",
        column="drink",
        candidates=asked.folder / "candidates.txt",
    )
    assert [row["value"] for row in named["values"]] == ["d0", "water"]
    assert [row["truth"] for row in named["values"]] == [101 / 5_151, 0]


@pytest.mark.parametrize(
    ("table", "how", "says"),
    [
        ("shares.csv", {"metric": "shape"}, "has no metric 'shape'; it has colour, drink, blood"),
        ("shares.csv", {"column": "shape"}, "no column 'shape'; it has colour, people, half"),
        ("shares.csv", {"count": "number"}, "no column 'number'; it has colour, people, half"),
        ("shares.csv", {"count": "half"}, "row 2 under the header has '0.5' in column 'half'"),
        ("shares.csv", {"candidates": Path("any")}, "--candidates is for open domains"),
        ("shares.csv", {"metric": "drink", "column": "none"}, "has no column 'none'"),
        ("empty.csv", {}, "has no rows under a header"),
        ("header.csv", {}, "has no rows under a header"),
        ("latin.csv", {}, "is not UTF-8 text"),
        ("nobody.csv", {"count": "people"}, "has 0 people; 1 to 1,000,000,000 can be simulated"),
        ("many.csv", {"count": "people"}, "has 1,000,000,001 people; 1 to"),
        ("shares.csv", {"bundle": "shares.csv"}, "is it a signed bundle?"),
    ],
    ids=lambda value: str(value).replace("/", "-"),
)
def test_a_mistake_is_one_sentence(
    asked: Asked, table: str, how: dict[str, Any], says: str
) -> None:
    with pytest.raises(CommandError) as mistake:
        asked.simulate(table, **how)
    assert says in str(mistake.value)
    assert len(str(mistake.value).splitlines()) == 1


def test_a_metric_that_proves_less_than_it_declares_is_not_simulated(asked: Asked) -> None:
    with pytest.raises(PrivacyNotProved, match="more than the declared ε = 1"):
        asked.simulate(bundle="nudged.hubbub")


def test_the_signature_is_checked_if_asked_for(asked: Asked, operator: Operator) -> None:
    assert asked.simulate(count="people", operator_key=operator.key)
    with pytest.raises(BadSignature):
        asked.simulate(count="people", operator_key=f"ed25519:{'0' * 64}")


def test_a_person_types_it(folder: Path) -> None:
    command = [COMMAND, "simulate", "metrics.hubbub", "colour", "--csv", "people.csv"]

    def hubbub(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more], cwd=folder, capture_output=True, text=True, check=False
        )

    result = hubbub("--column", "colour", "--seed", "1")
    assert result.returncode == 0
    assert "of 3 truths inside" in result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("hubbub: 2 of 4 answers are not in the domain (nothing, 'mauve'): ")
    result = hubbub("--column", "shape")
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert line == "hubbub: people.csv has no column 'shape'; it has name, colour"
