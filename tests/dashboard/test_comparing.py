"""What differs, in words, as a chart and a table."""

from dataclasses import replace

import pytest

from hubbub_dashboard import text
from hubbub_dashboard.comparing import difference_chart, difference_table, sentences
from hubbub_dashboard.comparing.more_reports import doubtful
from hubbub_dashboard.comparing.shown import Kind, kind_of, show
from hubbub_dashboard.reading.answers import Comparison, Difference, RoundState, Side, Target
from hubbub_dashboard.shares.selection import MAX_ROWS, Order
from tests.dashboard.snapshots import make_estimates, make_value

SURE = 0.041
UNSURE = 0.004


def make_difference(
    left: str, right: str, estimate: float, half: float = 0.021, std_error: float = 0.0107
) -> Difference:
    low, high = estimate - half, estimate + half
    return Difference(
        left,
        right,
        estimate,
        std_error,
        low,
        high,
        low,
        high,
        p_value=0.5,
        adjusted_p_value=0.5,
        distinguishable=low > 0 or high < 0,
    )


def make_side(
    metric: str = "health", round_: int = 4, state: RoundState = RoundState.CLOSED, n: int = 1_000
) -> Side:
    return Side(metric, round_, state, n, 0.0)


def compare(left: Side, right: Side, *differences: Difference) -> Comparison:
    return Comparison(left, right, Target.RESPONDENTS, 0.95, differences)


def said(comparison: Comparison) -> str:
    sentence = sentences.answer(comparison, show(comparison, Order.LISTED))
    return sentence.replace("\u2068", "").replace("\u2069", "").replace("\u202f", " ")


@pytest.mark.parametrize(("estimate", "where"), [(SURE, "ahead of"), (-SURE, "behind")])
def test_two_values_are_told_apart(estimate: float, where: str) -> None:
    comparison = compare(make_side(), make_side(), make_difference("soup", "salad", estimate))
    assert kind_of(comparison) is Kind.VALUES
    assert said(comparison) == f"“soup” is 4.1 points {where} “salad” (2.0 to 6.2, 95 %)."
    assert doubtful(comparison) is None


def test_two_values_that_cannot_be_told_apart_say_what_agrees() -> None:
    comparison = compare(make_side(), make_side(), make_difference("soup", "salad", UNSURE))
    assert said(comparison) == (
        "“soup” and “salad” cannot be told apart: “soup” looks 0.4 points ahead, and anything from "
        "1.7 points behind to 2.5 points ahead agrees with the reports."
    )
    # ((1.96 + 0.84) · 1.07 / 0.4)² times the thousand reports, to two digits.
    values = (make_value(label, 0.3) for label in ("soup", "salad"))
    values = (replace(value, count=400, influence=0.002) for value in values)
    more = sentences.more_reports(comparison, make_estimates(*values, n=1_000))
    assert more is not None
    assert "some 57,000 reports would be enough" in more


def test_rounds_tell_their_largest_changes_and_how_many_are_none() -> None:
    comparison = compare(
        make_side(round_=4),
        make_side(round_=3),
        make_difference("good", "good", -SURE),
        make_difference("fair", "fair", UNSURE),
        make_difference("poor", "poor", 2 * SURE),
    )
    assert said(comparison) == (
        "Round 4 has 8.2 points more of “poor” than round 3 (6.1 to 10.3, 95 %). "
        "Round 4 has 4.1 points less of “good” than round 3 (2.0 to 6.2, 95 %). "
        "The other value cannot be told from no difference."
    )


def test_only_of_two_closed_rounds_it_is_said_that_another_page_is_stricter() -> None:
    differences = [make_difference(name, name, SURE) for name in ("good", "poor")]
    before = make_side(round_=3)
    for side, kind, is_said in (
        (make_side(round_=4), Kind.ROUNDS, True),
        (make_side(round_=4, state=RoundState.OPEN), Kind.ROUNDS, False),
        (make_side("other"), Kind.METRICS, False),
        (before, Kind.VALUES, False),
    ):
        comparison = compare(side, before, *differences)
        assert kind_of(comparison) is kind
        stricter = sentences.over_time(kind, show(comparison, Order.LISTED))
        assert (stricter is not None and "Over time" in stricter) == is_said


def test_many_changes_are_counted() -> None:
    differences = [make_difference(str(i), str(i), SURE) for i in range(7)]
    comparison = compare(make_side(round_=4), make_side(round_=3), *differences)
    assert said(comparison).endswith("4 more differ, and are marked below.")


def test_metrics_without_a_difference_say_so() -> None:
    differences = [make_difference(name, name, UNSURE) for name in ("good", "poor")]
    comparison = compare(make_side("a"), make_side("b"), *differences)
    assert kind_of(comparison) is Kind.METRICS
    assert said(comparison) == (
        "`a` and `b` cannot be told apart: no value's difference stands out of the noise."
    )
    limit = sentences.limit(comparison, 1)
    assert limit is not None
    assert limit == "A difference stands out from about 2.1 points on."


def test_nothing_is_marked_while_a_round_is_open() -> None:
    still_open = make_side(state=RoundState.OPEN)
    comparison = compare(
        still_open, make_side(round_=3), make_difference("good", "good", 10 * SURE)
    )
    shown = show(comparison, Order.LISTED)
    assert not shown.found(comparison.differences[0])
    assert said(comparison).startswith("Preliminary: Round 4 has 41.0 points more")
    assert "preliminary" in difference_chart.alternative(comparison, shown)
    assert "● " not in difference_table.table(comparison, shown)
    assert difference_chart.rows(comparison, shown)["found"].to_pylist() == [False]


@pytest.mark.parametrize(("state", "there"), [(RoundState.CLOSED, True), (RoundState.OPEN, False)])
def test_p_is_shown_once_the_round_is_closed(state: RoundState, there: bool) -> None:
    side = make_side(state=state)
    comparison = compare(side, side, make_difference("soup", "salad", SURE))
    table = difference_table.table(comparison, show(comparison, Order.LISTED))
    assert (">p</th>" in table, 'value="0.5"' in table) == (there, there)


def test_a_long_list_is_its_largest_differences_or_what_is_looked_for() -> None:
    differences = [make_difference(f"value {i}", f"value {i}", i / 1e4) for i in range(80)]
    comparison = compare(make_side(round_=4), make_side(round_=3), *differences)
    shown = show(comparison, Order.LISTED)
    assert [each.left for each in shown.differences] == [
        f"value {i}" for i in range(79, 79 - MAX_ROWS, -1)
    ]
    found = show(comparison, Order.LISTED, "VALUE 7")
    assert found.matches == len(found.differences) == 11
    assert text.searched(11, 11, 80, "VALUE 7").startswith("11 values have")
    nothing = show(comparison, Order.LISTED, "nobody")
    assert nothing.differences == ()


def test_names_are_escaped() -> None:
    comparison = compare(
        make_side(round_=4), make_side(round_=3), make_difference("<b>", "<b>", SURE)
    )
    assert "<b>" not in difference_table.table(comparison, show(comparison, Order.LISTED))
