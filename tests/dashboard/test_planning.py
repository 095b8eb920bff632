"""What the page about planning says is what `hubbub plan` says, and what it draws can be true."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from hubbub.exact import Epsilon
from hubbub_aggregator.commands import CommandError
from hubbub_aggregator.definitions import read_definitions
from hubbub_aggregator.planning.choice import most_accurate
from hubbub_dashboard import parts
from hubbub_dashboard.planning import made_up, plan_markup, reach, sentences, truth_chart
from hubbub_dashboard.planning.definition import definition, refusal
from hubbub_dashboard.planning.question import MOST_REPORTS, Question, TakesLong, answered, command
from tests.aggregator.test_plan import run

USUAL = Question(8, "1", 10_000)
SAMPLED = Question(16, "ln 3", 1_000_000, rounds=365, join=8)
MEMO = Question(16, "1", 1_000_000, rounds=365, permanent="2", cells=4)
HOSTILE = ('a "quoted" \\ text', "[[metric]]", "tea # or coffee", "مرحبا", "🍵", "<b>&", "x" * 256)


def typed(question: Question) -> list[str]:
    """The command that the page names, as words after `hubbub`."""
    return shlex.split(command(question))[1:]


@pytest.mark.parametrize(
    "question",
    [
        USUAL,
        Question(65_536, "0.5", 1_000),
        Question(4, "1", 10_000_000),
        Question(2, "0.5", 3),
        SAMPLED,
        MEMO,
    ],
    ids=["usual", "most values", "many reports", "too few", "sampled", "memo"],
)
def test_the_table_has_the_figures_of_the_command(question: Question) -> None:
    found = json.loads(run(*typed(question), "--format", "json"))
    html = plan_markup.mechanisms(answered(question))
    for row, line in zip(found["mechanisms"], re.findall("<tr class.*?</tr>", html), strict=True):
        figures = [float(share) for share in re.findall(r'<data value="([^"]+)">', line)]
        expected = [row["std_error"], row["half_width"], row["detectable"], row["influence"]]
        assert figures == [share for share in expected if share is not None]
        assert row["name"] in line
        assert f"<td>{row['payload_bytes']:,}</td>" in line
        assert ("picked" in line) == (row["name"] == found["auto"])
        if "rows" in row:
            assert f"<td>{row['rows']:,}</td><td>{row['epsilon_total']}</td>" in line


@pytest.mark.parametrize(
    "question",
    [
        Question(1, "1", 10_000),
        Question(65_537, "1", 10_000),
        Question(8, "0", 10_000),
        Question(8, "x", 10_000),
        Question(8, "9", 10_000),
        Question(8, "1", 0),
        Question(8, "1", 10_000, rounds=3, join=4),
        Question(8, "1", 10_000, rounds=3, permanent="1"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_the_commands_words(question: Question) -> None:
    with pytest.raises(CommandError) as typed_there:
        run(*typed(question))
    with pytest.raises(CommandError) as asked_here:
        answered(question)
    assert str(asked_here.value) == str(typed_there.value)


def test_what_takes_long_is_left_to_the_command() -> None:
    question = Question(8, "1", MOST_REPORTS + 1)
    with pytest.raises(TakesLong, match=re.escape(f"run `{command(question)}`")):
        answered(question)


def test_the_answer_is_one_sentence_or_that_there_is_none() -> None:
    said = sentences.answer(answered(USUAL))
    assert said.startswith("With 10,000 reports at ε = 1, a share of 5.78 % or more stands out")
    assert said.endswith("95\u202f% margins are ±3.14 points.")
    assert "21,917 reports in a round" in sentences.answer(answered(SAMPLED))
    assert "3 reports are too few" in sentences.answer(answered(Question(2, "0.5", 3)))


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 7), (8, 10_000), (128, 100), (65_536, 10**8)])
def test_the_ladder_halves_and_leaves_nobody_out(k: int, n: int) -> None:
    devices = made_up.ladder(k, n).devices
    assert sum(devices.values()) == n
    assert min(devices.values()) >= 0
    assert set(devices) <= set(range(k))
    steps = [devices[index] for index in range(min(k - 1, len(devices) - 1))]
    assert steps == [n // 2 ** (index + 1) for index in range(len(steps))]


def test_a_crowd_is_the_same_for_its_number_and_its_truth_is_stated() -> None:
    first, again, other = (made_up.crowd(USUAL, seed) for seed in (7, 7, 8))
    assert first is again
    assert first.together
    assert first.truth == (0.5, 0.25, 0.125, 0.0625, 0.0312, 0.0156, 0.0078, 0.0079)
    assert [value.count for value in first.values] != [value.count for value in other.values]
    # Every report says so many values.
    size = answered(USUAL).prospects[0].mechanism.parameters["size"]
    assert sum(value.count for value in first.values) == size * USUAL.reports


def test_a_large_crowd_is_drawn_value_by_value_and_says_so() -> None:
    crowd = made_up.crowd(Question(65_536, "1", 1_000_000), 1)
    assert not crowd.together
    assert "for each value by itself" in sentences.how(crowd, 1)
    assert crowd.selection.simultaneous
    assert (len(crowd.values), crowd.selection.total) == (made_up.MAX_ROWS, 65_536)
    assert [value.label for value in crowd.values[:3]] == ["value-1", "value-2", "value-3"]
    assert crowd.truth[:3] == (0.5, 0.25, 0.125)


def test_counts_by_themselves_have_their_exact_mean_and_spread() -> None:
    mechanism, n, crowds = most_accurate(4, Epsilon.parse("1")), 1_000, 4_000
    population = made_up.ladder(4, n)
    p, q = map(float, mechanism.support)
    drawn = np.array([made_up.separate(mechanism, population, seed) for seed in range(crowds)])
    holders = np.array([population.devices[index] for index in range(4)])
    variance = holders * p * (1 - p) + (n - holders) * q * (1 - q)
    mean = holders * p + (n - holders) * q
    # Five standard errors, and the seeds are fixed.
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * np.sqrt(variance / crowds))
    assert np.all(np.abs(drawn.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / crowds))


def test_the_chart_marks_the_truth_and_its_data_are_the_crowds() -> None:
    crowd = made_up.crowd(USUAL, 7)
    assert truth_chart.rows(crowd)["truth"].to_pylist() == list(crowd.truth)
    ends = truth_chart.domain(crowd)
    assert ends[0] <= min(crowd.truth) <= max(crowd.truth) <= ends[1]
    specification = truth_chart.specification(8, ends, "light")
    assert specification is truth_chart.specification(8, ends, "light")
    *others, truth = specification["layer"]
    assert (truth["mark"]["shape"], truth["encoding"]["x"]["field"]) == ("triangle-up", "truth")
    scales = {
        json.dumps(layer["encoding"]["x"]["scale"])
        for layer in (*others, truth)
        if "scale" in layer["encoding"].get("x", {})
    }
    assert len(scales) == 1
    assert truth_chart.alternative(crowd, 0.95).startswith("A made-up crowd. Estimated shares")


def test_more_reports_show_what_a_plan_of_them_says() -> None:
    steps = reach.steps(USUAL)
    assert [step.reports for step in steps] == [10**power for power in range(3, 8)]
    for step in steps[:3]:
        first = answered(Question(8, "1", step.reports)).prospects[0]
        assert (step.detectable, step.half_width) == (first.detectable, first.half_width)
    # The number of a sampled round has a row of its own.
    assert [step.reports for step in reach.steps(SAMPLED)][2] == 21_917


def test_so_many_reports_are_needed_to_see_a_share() -> None:
    needed = reach.reports_to_see(USUAL, 0.05)
    assert needed == 13_300
    enough, fewer = (answered(Question(8, "1", n)).prospects[0] for n in (needed, needed - 100))
    assert enough.detectable is not None
    assert fewer.detectable is not None
    assert enough.detectable <= 0.05 < fewer.detectable
    assert "about 13,300 reports" in sentences.needed(0.05, needed)
    assert reach.reports_to_see(USUAL, 0.000_01) is None
    assert "not enough" in sentences.needed(0.000_01, None)


@pytest.mark.parametrize("question", [USUAL, SAMPLED, MEMO, Question(7, "1", 10, HOSTILE)])
def test_the_definition_is_a_whole_metrics_toml(question: Question, tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(definition(question), encoding="utf-8")
    (metric,) = read_definitions(path).metric
    assert (tuple(metric.values), metric.epsilon) == (question.labels, question.epsilon)
    assert (metric.permanent, metric.cells) == (question.permanent, question.cells)
    assert refusal(question) is None


@pytest.mark.parametrize(
    ("names", "says"),
    [(("tea", "tea"), "'tea' is listed twice"), (("tea", "x" * 257), "not 1 to 256 bytes")],
)
def test_what_could_not_be_signed_is_told(names: tuple[str, ...], says: str) -> None:
    assert says in str(refusal(Question(2, "1", 10, names)))


def test_names_are_text_and_nothing_else() -> None:
    question = Question(7, "1", 1_000, HOSTILE)
    crowd = made_up.crowd(question, 1)
    html = plan_markup.crowd(crowd, 0.95)
    assert "<b>&amp;" not in html
    assert "&lt;b&gt;&amp;" in html
    said = sentences.who(question, answered(question))
    assert HOSTILE[0] in said
    assert "<b>" not in parts.part("<b>", "<b>")
