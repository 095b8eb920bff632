"""`hubbub plan`, as a person and a script type it."""

import io
import json
import subprocess
from contextlib import redirect_stdout
from typing import Any

import pytest

from hubbub.mechanisms import MECHANISMS
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
