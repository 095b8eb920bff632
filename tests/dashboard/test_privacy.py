"""What the page about privacy says is what `hubbub certify` proves and devices' owners read."""

import json
import re
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import Any

import pytest

from hubbub.contract import parse_metric
from hubbub.errors import PrivacyNotProved
from hubbub.mechanisms import MECHANISMS, MEMOISED
from hubbub_dashboard.privacy import (
    beliefs,
    privacy_markup,
    privacy_states,
    promise,
    sentences,
    witnesses,
)
from hubbub_dashboard.reading.answers import Metric, Round, RoundState
from tests.aggregator.test_plan import run
from tests.bundles import Operator, make_metric

DAILY = (86_400, 365, 86_400)
README = Path(__file__).parents[2] / "README.md"

SHAPES = {
    **{name: make_metric(name, mechanism=name) for name in MECHANISMS},
    **{name: make_metric(name, mechanism=name, permanent="2", periodic=DAILY) for name in MEMOISED},
    "open": make_metric("open", open=True),
    "kept": make_metric("kept", retain=True, epsilon="ln 3"),
    "week": make_metric("week", periodic=(86_400, 7, 0), epsilon="0.5"),
    "year": make_metric("year", periodic=DAILY, epsilon="5"),
    "sampled": make_metric("sampled", periodic=DAILY, join=8, epsilon="ln 3", absent="none"),
}


def promised(name: str) -> promise.Promise:
    return promise.promise(parse_metric(SHAPES[name]))


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `hubbub certify --format json` proves of each."""
    folder = tmp_path_factory.mktemp("certified")
    operator = Operator.create(folder / "keys")
    (folder / "metrics.hubbub").write_bytes(operator.sign(SHAPES.values()))
    proofs = json.loads(run("certify", str(folder / "metrics.hubbub"), "--format", "json"))
    return {proof["name"]: proof for proof in proofs["metrics"]}


@pytest.mark.parametrize("name", SHAPES)
def test_figures_are_those_of_certify(certified: dict[str, Any], name: str) -> None:
    proof, known = certified[name], promised(name)
    (certificate, loss), *of_memo = known.proofs
    assert known.contract.digest.hex() == proof["digest"]
    assert known.contract.mechanism.name == proof["mechanism"]
    assert certificate.declared.decimal == proof["epsilon_declared"]
    assert (loss.realised, loss.ratio) == (proof["epsilon_realised"], proof["ratio"])
    assert known.total == proof["epsilon_total"]
    said = sentences.proved(certificate, loss, of_row=False)
    assert f"the realised ε = {proof['epsilon_realised']}" in said
    assert said.endswith(f"by at most {proof['loss']}.")
    for number in proof["ratio"].split("/"):
        assert number[:6] in said
        assert number[-6:] in said
    assert [loss.ratio for _, loss in of_memo] == [
        proof[key] for key in ("ratio_permanent",) if key in proof
    ]
    if known.told.memo is not None:
        assert known.told.memo.rows == proof["rows"]
        assert known.told.memo.rounds == proof["change_noticed"]["rounds"]
    assert known.told.schedule.rounds == proof["rounds"]
    assert known.told.schedule.join == proof["join"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("randomised-response", "ε = 1, once."),
        ("kept", "ε = ln 3, once."),
        ("open", "ε = 1, once."),
        ("week", "ε = 0.5 for every report, at most ε = 3.5 in all for 7 rounds."),
        (
            "year",
            "ε = 5 for every report, at most ε = 30 in all: after 6 reports the device stops.",
        ),
        (
            "sampled",
            "ε ≈ 8.788898, charged before its first report, for 8 of 365 rounds at ε = ln 3 each.",
        ),
        (
            "memoised-optimised-unary",
            "ε = 8, charged before its first report, for a memo of 4 rows at ε = 2 each. No report "
            "adds to it.",
        ),
    ],
)
def test_the_charge_is_one_sentence(name: str, said: str) -> None:
    assert sentences.charge(promised(name)) == f"In ε, the measure of privacy lost: {said}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "randomised-response",
            "after its one report, anyone who thought its answer 50:50 can be at most 73.2 % sure.",
        ),
        (
            "week",
            "after one report, anyone who thought its answer 50:50 can be at most 62.3 % sure. "
            "Where its answer stays the same, every further report adds to that: after all 7, at "
            "most 97.1 % sure.",
        ),
        (
            "year",
            "after one report, anyone who thought its answer 50:50 can be at most 99.4 % sure. "
            "Where its answer stays the same, every further report adds to that: after all 6, "
            "practically certain.",
        ),
        (
            "memoised-optimised-unary",
            "after one report, anyone who thought its answer 50:50 can be at most 73.2 % sure. "
            "After any number of them, practically certain.",
        ),
    ],
)
def test_the_cost_is_one_sentence_without_epsilon(name: str, said: str) -> None:
    assert sentences.cost(promised(name)) == f"What it costs the device: {said}"


def test_reports_so_far_are_those_of_all_rounds_until_now() -> None:
    rounds = tuple(Round(number, RoundState.CLOSED, 100) for number in range(4))

    def so_far(name: str, rounds: tuple[Round, ...]) -> int | None:
        known = promised(name)
        return known.reports_so_far(Metric(name, "?", known.contract.digest, (), rounds))

    assert so_far("week", rounds) == 4
    assert so_far("week", rounds[:1]) is None
    assert so_far("week", ()) is None
    assert so_far("year", (*rounds, Round(6, RoundState.OPEN, 0))) is None
    assert so_far("sampled", rounds) is None
    assert float(promised("week").odds_of_first(4)) == pytest.approx(exp(2))


def test_what_no_device_pays_is_said() -> None:
    said = sentences.over_rounds(promised("year"))
    assert "365 rounds at ε = 5 come to ε = 1825. No device pays that: at ε = 30" in said
    assert "No device" not in sentences.over_rounds(promised("week"))


def test_changes_are_said_to_be_left_out_of_a_memos_figures() -> None:
    for name in SHAPES:
        left_out = any("answer changed" in said for said in sentences.meaning(promised(name)))
        assert left_out == (name in MEMOISED)
        labels = [label for label, _ in sentences.owners_rows(promised(name))]
        assert ("Not protected" in labels) == (name in MEMOISED)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "ln 3", "8"])
def test_beliefs_are_bayes_rounded_outwards(epsilon: str) -> None:
    contract = parse_metric(make_metric(epsilon=epsilon))
    times = 3.0 if epsilon == "ln 3" else exp(float(epsilon))
    table = beliefs.table([promise.promise(contract).odds_of_report])
    assert [prior for prior, _ in table] == list(beliefs.PRIORS)
    for prior, (belief,) in table:
        p = float(prior)
        exact_low, exact_high = p / (p + (1 - p) * times), p * times / (p * times + 1 - p)
        assert -1e-9 <= 100 * exact_low - float(belief.least) < 0.1
        assert -1e-9 <= float(belief.most) - 100 * exact_high < 0.1
    assert "73.2" in privacy_markup.odds(beliefs.table([Fraction("2.7183")]), ["After"])


def test_no_report_can_make_anybody_surer_than_said() -> None:
    """Of every report of a small mechanism, by its own law."""
    contract = parse_metric(SHAPES["randomised-response"])
    p, q = contract.mechanism.support
    for prior, (belief,) in beliefs.table([promise.promise(contract).odds_of_report]):
        told_it = prior * p / (prior * p + (1 - prior) * q)
        told_another = prior * q / (prior * q + (1 - prior) * p)
        assert Fraction(belief.least) <= 100 * told_another
        assert 100 * told_it <= Fraction(belief.most)
        assert Fraction(belief.most) - 100 * told_it <= Fraction("0.1")


def test_a_series_of_much_leaves_no_limit() -> None:
    rows = privacy_markup.odds(beliefs.table([promised("year").odds_of_all]), ["After"])
    assert rows.count("no real limit") == len(beliefs.PRIORS)


def test_the_readme_names_the_same_witnesses() -> None:
    section = README.read_text(encoding="utf-8").partition("## Who can see what\n")[2]
    section = section.partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.*?) ?\|$", section, re.MULTILINE)
    table = {who: (sees, sees_not) for who, sees, sees_not in rows[1:]}
    here = witnesses.witnesses(promised("randomised-response").told, 100)
    assert [witness.who for witness in here] == list(table)
    by_name = {witness.who: (witness.sees, witness.sees_not) for witness in here}
    for who in (witnesses.AGGREGATOR, witnesses.NETWORK, witnesses.READER):
        assert by_name[who] == table[who]


def test_who_sees_what_depends_on_the_metric() -> None:
    def seen(name: str, who: str) -> witnesses.Witness:
        found = witnesses.witnesses(promised(name).told, None)
        return next(witness for witness in found if witness.who == who)

    assert "any report" in seen("week", witnesses.STORE_THIEF).sees_not
    assert "noisy reports" in seen("kept", witnesses.STORE_THIEF).sees
    assert "memo" in seen("memoised-local-hashing", witnesses.DEVICE_THIEF).sees
    assert seen("memoised-local-hashing", witnesses.DEVICE_THIEF).sees_not == ""
    assert "true answers" in seen("week", witnesses.DEVICE_THIEF).sees_not
    assert "in which rounds" in seen("week", witnesses.AGGREGATOR).sees
    assert "in which rounds" not in seen("sampled", witnesses.AGGREGATOR).sees
    assert "resemble" in seen("memoised-local-hashing", witnesses.AGGREGATOR).sees
    assert "texts that somebody asks about" in seen("open", witnesses.READER).sees


def test_a_contract_of_something_else_is_refused() -> None:
    contract = parse_metric(SHAPES["week"])
    metric = Metric("week", "How?", contract.digest, (), ())
    assert promise.refusal(metric, contract) is None
    other = promise.refusal(Metric("week", "How?", bytes(32), (), ()), contract)
    assert other is not None
    assert contract.digest.hex() in privacy_states.refused(other).sentence
    assert promise.refusal(Metric("month", "How?", contract.digest, (), ()), contract) is not None


def test_a_refusal_says_why() -> None:
    with pytest.raises(PrivacyNotProved) as refusal:
        parse_metric(make_metric(epsilon="1", mechanism=leaky()))
    assert "reveal more than the declared ε = 1" in privacy_states.refused(refusal.value).sentence


def leaky() -> Any:
    """A mechanism that tells more than ε = 1."""
    return parse_metric(make_metric(epsilon="2", mechanism="randomised-response")).mechanism


def test_names_of_neighbours_are_text() -> None:
    html = privacy_markup.neighbours([privacy_markup.Neighbour("<b>", None, None)])
    assert "&lt;b&gt;" in html
    assert html.count("not known") == 2
