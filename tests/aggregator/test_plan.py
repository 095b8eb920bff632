"""`hubbub plan`, as a person and a script type it."""

import io
import json
import subprocess
from contextlib import redirect_stdout
from math import log2
from typing import Any

import pytest

from hubbub.mechanisms import MECHANISMS, MEMOISED
from hubbub_aggregator.app import app
from hubbub_aggregator.commands import CommandError
from tests.processes import COMMAND

USUAL = {"--values": "128", "--epsilon": "1", "--reports": "1000000"}


def words(**changed: str) -> list[str]:
    """The usual options, but for those given: `max_bytes="8"`."""
    options = USUAL | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return ["plan", *(word for option in options.items() for word in option)]


def run(*options: str) -> str:
    """What it prints; in this process, for starting one takes longer than planning."""
    said = io.StringIO()
    with redirect_stdout(said):
        app(options, standalone_mode=False)
    return said.getvalue()


def report(**changed: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(*words(format="json", **changed)))
    return found


def test_the_json_that_scripts_rely_on() -> None:
    found = report()
    assert (found["values"], found["epsilon"], found["reports"]) == (128, "1", 1_000_000)
    assert found["auto"] == "subset-selection"
    names = [row["name"] for row in found["mechanisms"]]
    assert sorted(names) == sorted(MECHANISMS)
    assert names[0] == found["auto"]
    for row in found["mechanisms"]:
        assert row["std_error"] < row["half_width"] < row["detectable"] < 1
        assert row["payload_bytes"] >= 1
        assert row["influence"] > 0
        assert row["to_bound"] >= 0.999
    best = found["mechanisms"][0]
    assert best["parameters"] == {"size": 34}
    assert best["payload_bytes"] == 16
    curator = found["curator"]
    assert curator["in_people"]["std_error"] == pytest.approx(8**0.5)
    assert found["price"]["std_errors"] == pytest.approx(best["std_error"] / curator["std_error"])


def test_max_bytes_filters_rows() -> None:
    found = report(max_bytes="8")
    assert found["auto"] == "local-hashing"
    assert {row["name"] for row in found["mechanisms"]} == {
        "randomised-response",
        "subset-selection",
        "projective-geometry",
        "local-hashing",
    }
    assert all(row["payload_bytes"] <= 8 for row in found["mechanisms"])


def test_what_cannot_be_seen_is_null() -> None:
    found = report(reports="3", epsilon="0.5", half_width="0.00000000001", values="2")
    assert {row["detectable"] for row in found["mechanisms"]} == {None}
    assert {row["reports_needed"] for row in found["mechanisms"]} == {None}
    assert "3 reports are too few" in run(*words(reports="3", epsilon="0.5", values="2"))


@pytest.mark.parametrize("changed", [{}, {"share": "0.125", "max_bytes": "8"}])
def test_the_table_is_for_a_person(changed: dict[str, str]) -> None:
    text = run(*words(**changed))
    assert max(map(len, text.splitlines())) <= 100
    for name in ("randomised-response", "local-hashing"):
        assert text.count(f"\n{name} ") == 2
    assert "auto picks" in text
    assert ("at 12.5 %" in text) == bool(changed)


def test_the_price_of_not_trusting_anyone() -> None:
    text = run(*words(values="10000", reports="100000000", level="0.99")).replace("\n", " ")
    assert "within 27.6 people" in text
    assert "within 93,844" in text


def test_what_trusting_nobody_costs_is_told_only_where_it_costs() -> None:
    dear, cheap = (run(*words(values="2", epsilon="0.01", reports=n)) for n in ("1000", "1"))
    assert "Trusting nobody" in dear
    assert "Trusting nobody" not in cheap
    assert ", 1 report;" in cheap
    assert "\n1 report is too few" in cheap


def test_a_sample_of_the_rounds() -> None:
    found = report(rounds="365", join="8")
    assert (found["reports"], found["rounds"], found["join"]) == (1_000_000, 365, 8)
    assert found["reports_per_round"] == 8_000_000 // 365
    best = found["mechanisms"][0]
    assert best["epsilon_total"] == "8"
    # A round is what it would be for so many devices alone.
    alone = report(reports=str(found["reports_per_round"]))
    assert best["std_error"] == alone["mechanisms"][0]["std_error"]
    assert found["fresh"]["epsilon"] == "0.021917808219"
    thin = report(epsilon="0.021917808219")["mechanisms"][0]
    assert found["fresh"]["std_error"] == thin["std_error"]
    text = run(*words(rounds="365", join="8")).replace("\n", " ")
    assert "joins 8 of 365 rounds" in text
    assert "costs it ε = 8 in all" in text
    assert "would be of ε = 0.0219 a report" in text


def test_fresh_noise_in_every_round() -> None:
    found = report(rounds="40")
    assert {row["epsilon_total"] for row in found["mechanisms"]} == {"40"}
    assert found["fresh"] is None
    assert found["mechanisms"][0]["std_error"] == report()["mechanisms"][0]["std_error"]
    text = run(*words(rounds="40")).replace("\n", " ")
    assert "ε = 40 in all. Devices stop at 32, the most for a source: after 32 rounds." in text
    assert "Devices stop" not in run(*words(rounds="8"))
    assert "in all" not in run(*words())


def test_a_memo() -> None:
    found = report(values="16", permanent="2", rounds="365")
    assert (found["permanent"], found["cells"], found["rounds"]) == ("2", None, 365)
    rows = {row["name"]: row for row in found["mechanisms"]}
    assert set(rows) == set(MEMOISED)
    assert found["auto"] == "memoised-optimised-unary"
    for row in rows.values():
        assert row["epsilon_total"] == str(2 * row["rows"])
        assert 0.5 < row["change_noticed"] < row["change_noticed_ever"] <= 1
        assert 0.5 < row["linked"] <= 1
    hashing = rows["memoised-local-hashing"]
    assert (hashing["rows"], hashing["parameters"]) == (3, {"cells": 3, "dimensions": 4})
    assert hashing["identifying_bits"] == pytest.approx(log2(81))
    assert rows["memoised-optimised-unary"]["identifying_bits"] == 0
    # As accurate as without a memo.
    one_time = {row["name"]: row for row in report(values="16")["mechanisms"]}
    for name in ("symmetric-unary", "optimised-unary", "randomised-response"):
        assert rows[f"memoised-{name}"]["std_error"] == pytest.approx(one_time[name]["std_error"])
    # 32 in all, of which a round in 365 gets little.
    assert found["fresh"]["epsilon"] == "0.087671232876"


def test_a_memo_of_fewer_cells() -> None:
    found = report(values="16", permanent="2", cells="2")
    (row,) = found["mechanisms"]
    assert (row["name"], row["rows"], row["epsilon_total"]) == ("memoised-local-hashing", 2, "4")
    # A month, unless told otherwise.
    assert (found["cells"], found["rounds"]) == (2, 30)


def test_a_memo_is_told_to_a_person() -> None:
    text = run(*words(values="16", permanent="2", rounds="365", share="0.125"))
    assert max(map(len, text.splitlines())) <= 100
    for name in ("optimised-unary", "local-hashing"):
        assert text.count(f"\n{name} ") == 3
    flowing = text.replace("\n", " ")
    assert "in each of 365 rounds, from a memo of ε∞ = 2 a row" in flowing
    assert "compares the first half of 30 reports" in flowing
    assert "auto picks memoised-optimised-unary" in flowing
    assert "answers 365 rounds from its memo. That costs it ε = 32 in all." in flowing


def test_epsilon_is_decimal_text_and_may_be_a_logarithm() -> None:
    assert report(epsilon="ln 3", values="2")["epsilon"] == "1.098612288669"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"values": "1"}, "--values is 2 to 65,536 answers, not 1"),
        ({"values": "65537"}, "--values is 2 to 65,536 answers, not 65,537"),
        ({"epsilon": "0"}, "--epsilon: ε must be positive"),
        ({"epsilon": "-1"}, "--epsilon: ε must be decimal text"),
        ({"epsilon": "1e400"}, "--epsilon: ε must be decimal text"),
        ({"epsilon": "nan"}, "--epsilon: ε must be decimal text"),
        ({"epsilon": "ln 1"}, "--epsilon: ε must be positive"),
        ({"epsilon": "9"}, "--epsilon: 9 is above 8, the most a report may cost"),
        ({"epsilon": "200"}, "--epsilon: ε must be at most 128"),
        ({"reports": "0"}, "--reports is 1 to 10,000,000,000, not 0"),
        ({"reports": "-5"}, "--reports is 1 to"),
        ({"level": "95%"}, "--level is between 0 and 1, for example 0.95, not 95%"),
        ({"level": "1"}, "--level is between 0 and 1"),
        ({"level": "nan"}, "--level is between 0 and 1"),
        ({"level": "0"}, "--level is between 0 and 1"),
        ({"max_bytes": "0"}, "--max-bytes is at least 1, not 0"),
        ({"max_bytes": "1", "values": "60000"}, "--max-bytes: every mechanism's payload has at "),
        ({"share": "1.5"}, "--share is 0 to 1"),
        ({"share": "nan"}, "--share is 0 to 1"),
        ({"half_width": "0"}, "--half-width is between 0 and 1"),
        ({"rounds": "0"}, "--rounds is 1 to 100,000, not 0"),
        ({"rounds": "100001"}, "--rounds is 1 to 100,000, not 100,001"),
        ({"join": "2"}, "--join is 1 to 1, the number of --rounds, not 2"),
        ({"join": "0", "rounds": "8"}, "--join is 1 to 8, the number of --rounds, not 0"),
        ({"join": "33", "rounds": "40"}, "--join: 33 rounds of ε = 1 cost more than 32"),
        ({"permanent": "1"}, "--permanent must be above --epsilon"),
        ({"permanent": "9"}, "--permanent: 9 is above 8"),
        ({"permanent": "two"}, "--permanent: ε must be decimal text"),
        ({"permanent": "2", "join": "2", "rounds": "8"}, "--join and --permanent are two schedule"),
        ({"cells": "2"}, "--cells goes with --permanent"),
        ({"permanent": "2", "cells": "1"}, "--cells is at least 2, not 1"),
        ({"permanent": "2", "max_bytes": "1", "values": "300"}, "--max-bytes: every mechanism's"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(changed: dict[str, str], says: str) -> None:
    with pytest.raises(CommandError) as refusal:
        run(*words(**changed))
    assert str(refusal.value).startswith(says)
    assert "\n" not in str(refusal.value)


def test_a_refusal_is_one_line_and_a_status() -> None:
    result = subprocess.run(
        [COMMAND, *words(epsilon="1e400")], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("hubbub: --epsilon: ε must be decimal text")
