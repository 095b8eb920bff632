"""What the statement says of ε, and of what ε does not bound."""

from collections.abc import Iterator
from math import exp
from pathlib import Path

import pytest

from hubbub import exposure
from hubbub.mechanisms import MEMOISED
from hubbub.statement.figures import percent
from tests import owners
from tests.bundles import Operator, make_bundle, make_metric
from tests.devices import Clock, Device
from tests.owners import FRESH, MEMO, ONCE, SAMPLED
from tests.statements import about, row, section, told

NAME = "health.self_rated"
DAY = 86_400


@pytest.fixture(scope="module")
def month(operator: Operator) -> Iterator[owners.Owned]:
    """A device that was asked in every way, and lost nothing."""
    with owners.month(operator) as owned:
        yield owned


# What it can reveal.


@pytest.mark.parametrize(
    ("epsilon", "sure"),
    [
        ("0.000000000001", "at most 50.1 % sure"),
        ("0.1", "at most 52.5 % sure"),
        ("0.5", "at most 62.3 % sure"),
        ("1", "at most 73.2 % sure"),
        ("ln 3", "at most 75.0 % sure"),
        ("2", "at most 88.1 % sure"),
        ("4", "at most 98.3 % sure"),
        ("8", "practically certain"),
    ],
)
def test_epsilon_in_words(operator: Operator, tmp_path: Path, epsilon: str, sure: str) -> None:
    """Rounded up: a promise may be too modest, never too bold."""
    Device(make_bundle(operator, make_metric(epsilon=epsilon)), tmp_path).close()
    facts = told(tmp_path)
    said = row(str(facts), NAME, "One report")
    assert said.startswith(f"ε {epsilon}: whatever it says, it is at most ")
    assert said.endswith(f" Anyone who thought it 50:50 can be {sure} after it.")
    if not epsilon.startswith("ln"):
        odds = exp(float(epsilon))
        loss = about(facts, NAME).report_loss
        assert 0 <= float(loss.sure_percent) - 100 * odds / (1 + odds) <= 0.1
        assert 0 <= float(loss.times) - odds <= 0.01 + 1e-9


def test_the_proof_is_the_certificate(month: owners.Owned) -> None:
    for metric in month.client.statement().metrics:
        asked = month.bundle.metrics[metric.metric]
        numerator, denominator = map(int, metric.report_loss.ratio.split("/"))
        assert (numerator, denominator) == asked.certificate.ratio.as_integer_ratio()
        assert metric.report_loss.realised == asked.certificate.realised
        assert metric.digest == asked.digest
        if metric.memo is not None:
            _, row_certificate = asked.certificates
            assert metric.memo.row.realised == row_certificate.realised
            assert metric.memo.row.epsilon == "1"


@pytest.mark.parametrize(
    ("budget", "answers", "allowed", "sure"),
    [
        ("32", 0, "4", "98.3"),  # what the contract asks for
        ("1.7", 0, "1.5", "81.8"),  # what the budget covers, in whole reports
        ("1.7", 2, "1.5", "81.8"),
        ("0.4", 0, "0", "50.0"),
        ("32", 8, "4", "98.3"),
    ],
)
def test_all_that_is_allowed(
    operator: Operator, budget: str, answers: int, allowed: str, sure: str
) -> None:
    clock = Clock()
    contract = make_metric(periodic=(DAY, 8, DAY), epsilon="0.5")
    with Device(
        make_bundle(operator, contract), None, clock=clock, budgets={"health": budget}
    ) as client:
        for day in range(answers):
            clock.now = DAY * day
            assert client.metric(NAME).record("good")
        metric = about(client.statement(), NAME)
    assert (metric.allowed, metric.allowed_percent) == (allowed, sure)
    assert (metric.next is None) == (answers == 8 or allowed == "0")


def test_what_is_left_counts_every_source(operator: Operator, tmp_path: Path) -> None:
    """A source's budget is worth no more than what the device as a whole has left."""
    sources = ("a", "b", "c")
    bundle = make_bundle(
        operator,
        *(make_metric(f"m.{s}", epsilon="8", source=s, periodic=(1_000, 4, 0)) for s in sources),
    )
    clock = Clock(0)
    with Device(bundle, tmp_path, clock=clock, budgets=dict.fromkeys(sources, "32")) as client:
        for number in range(4):
            clock.now = 1_000 * number
            client.metric("m.a").record("good")
            if number < 3:
                client.metric("m.b").record("good")
    facts = told(tmp_path)
    assert [(budget.spent, budget.left, budget.allowed) for budget in facts.budgets] == [
        ("32", "0", "32"),
        ("24", "8", "32"),
        ("0", "8", "32"),
    ]
    assert (facts.total.spent, facts.total.left, facts.total.allowed) == ("56", "8", "64")


# Series.


@pytest.mark.parametrize("name", MEMOISED)
def test_what_a_memo_protects_and_what_not(month: owners.Owned, name: str) -> None:
    facts = month.client.statement()
    metric, mechanism = about(facts, MEMO[name]), month.bundle.metrics[MEMO[name]].memoised
    assert mechanism is not None
    memo = metric.memo
    assert memo is not None
    assert (memo.rows, memo.rounds, memo.run) == (mechanism.rows, 30, 15)
    assert memo.change_noticed_percent == percent(exposure.change_noticed(mechanism, 30))
    assert memo.change_noticed_ever_percent == percent(exposure.change_noticed_ever(mechanism))
    assert memo.linked_percent == percent(exposure.linked(mechanism, 15))
    hashed = name == "memoised-local-hashing"
    assert (memo.hashes, memo.identifying_bits) == ((8, "3.0") if hashed else (None, "0.0"))
    text = str(facts)
    protected = row(text, MEMO[name], "Protected")
    assert f"chance filled the {mechanism.rows} rows of the memo" in protected
    assert "and come back to an earlier answer, in the same rounds" in protected
    assert ("those that share one look alike" in protected) == hashed
    bare = row(text, MEMO[name], "Not protected")
    assert bare.startswith("That an answer changed, when, and whether it came back, and what")
    assert f"right {memo.change_noticed_percent} % of the time" in bare
    assert ("one of 8: 3.0 bits that mark the device" in bare) == hashed
    assert row(text, MEMO[name], "All reports").endswith("see what is not protected.")
    price = (
        f"ε {mechanism.rows} = {mechanism.rows} rows × 1, as a whole and before the first answer"
    )
    assert row(text, MEMO[name], "Price") == price
    charged = f"ε {mechanism.rows} on 2027-01-01T00:00:00Z, for the rounds from 0 on"
    assert row(text, MEMO[name], "Charged") == charged
    assert {report.charge for report in metric.reports} == {"0"}


def test_which_rounds_a_device_joins(operator: Operator, month: owners.Owned) -> None:
    facts = month.client.statement()
    metric = about(facts, SAMPLED)
    assert metric.series is not None
    joined = metric.series.joined
    assert len(joined) == 3
    assert [report.round for report in metric.reports] == [day for day in joined if day < 24]
    coming = [day for day in joined if day >= 24]
    assert (None if metric.next is None else [metric.next.round]) == (coming[:1] or None)
    listed = ", ".join(map(str, joined))
    text = str(facts)
    assert row(text, SAMPLED, "Joins") == f"rounds {listed}; drawn before there was any answer"
    assert (
        row(text, SAMPLED, "Price") == "ε 3 = 3 rounds × 1, as a whole and before the first answer"
    )


def test_whether_silence_can_be_seen(month: owners.Owned) -> None:
    text = str(month.client.statement())
    visible = "sends nothing: the aggregator can see which rounds this device answers"
    assert row(text, ONCE, "Silence") == row(text, SAMPLED, "Silence") == visible
    assert row(text, FRESH, "Silence").startswith('the app may answer "stayed at home"; a round')
    filled = 'a round in which nothing is recorded is answered "not asked" by the device'
    assert all(row(text, name, "Silence").startswith(filled) for name in MEMO.values())


def test_a_series_that_could_not_be_paid(operator: Operator, tmp_path: Path) -> None:
    contract = make_metric(periodic=(DAY, 30, DAY), join=4)
    bundle = make_bundle(operator, contract)
    with Device(bundle, tmp_path, budgets={"health": "3"}) as client:
        client.metric(NAME)
    facts = told(tmp_path)
    metric = about(facts, NAME)
    assert (metric.allowed, metric.next) == ("0", None)
    assert row(str(facts), NAME, "Charged") == "not yet; without it nothing is recorded"


@pytest.mark.parametrize(
    ("join", "joins"),
    [(0, []), (25, ["and 5 more; drawn before there was any answer"])],
)
def test_long_lists_of_rounds_are_cut(operator: Operator, join: int, joins: list[str]) -> None:
    contract = make_metric(periodic=(DAY, 100, DAY), epsilon="0.5", join=join)
    with Device(make_bundle(operator, contract), None, budgets={"health": "32"}) as client:
        client.metric(NAME)
        lines = section(str(client.statement()), f"Metric {NAME}")
    found = [line for line in lines if line.startswith("Joins")]
    assert [line[-len(end) :] for line, end in zip(found, joins, strict=True)] == joins
