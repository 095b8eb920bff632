"""Digits are cut to the error, signs and units survive, sentences hold in their limits."""

from dataclasses import replace

import pytest

from hubbub_dashboard import text
from hubbub_dashboard.reading.answers import Epsilon
from tests.dashboard.snapshots import make_value


@pytest.mark.parametrize(
    ("std_error", "places"),
    [
        (0.2, 0),  # 20 points: whole percentages
        (0.05, 0),
        (0.019, 1),  # 1.9 points begin with 1, so a second digit is kept
        (0.005, 1),
        (0.0019, 2),
        (0.0004, 2),
        (1e-9, 6),
    ],
)
def test_decimals_follow_the_error(std_error: float, places: int) -> None:
    assert text.decimals([std_error]) == places


def test_the_smallest_error_decides_and_none_is_no_error() -> None:
    assert text.decimals([0.05, 0.0004]) == 2
    assert text.decimals([0.0, 0.05]) == 0
    assert text.decimals([]) == 1


@pytest.mark.parametrize(
    ("share", "places", "shown"),
    [
        (0.3124, 1, "31.2\u202f%"),
        (-0.0141, 1, "\u22121.4\u202f%"),
        (-0.0004, 1, "0.0\u202f%"),  # no negative zero
        (1.0321, 0, "103\u202f%"),  # never clipped
        (0.0, 2, "0.00\u202f%"),
    ],
)
def test_percent(share: float, places: int, shown: str) -> None:
    assert text.percent(share, places) == shown


def test_interval_shows_both_ends() -> None:
    assert text.interval(-0.004, 0.021, 1) == "\u22120.4 to 2.1"


@pytest.mark.parametrize(
    ("low", "places", "shown"),
    [
        (-0.004, 0, "\u22121"),
        (-1e-12, 2, "\u22120.01"),
        (-0.014, 0, "\u22121"),
        (-0.026, 0, "\u22123"),
        (0.0, 0, "0"),
        (0.004, 0, "1"),
    ],
)
def test_a_lower_end_below_zero_is_seen_to_be(low: float, places: int, shown: str) -> None:
    assert text.bare_low(low, places) == shown


@pytest.mark.parametrize(
    ("influence", "shown"), [(0.000_432_8, "0.044"), (0.012, "1.2"), (0.5, "50")]
)
def test_influence_keeps_two_digits(influence: float, shown: str) -> None:
    said = text.influence([replace(make_value("a", 0.5), influence=influence)])
    assert said.endswith(f"by up to ±{shown} points")


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.25, "25"), (0.0401, "4.1"), (0.000_43, "0.043"), (0.1, "10"), (1.5, "150"), (0.04, "4.0")],
)
def test_points_are_rounded_up(share: float, said: str) -> None:
    assert text.points_at_most(share) == f"{said} points"


def test_numbers() -> None:
    assert text.count(1_234_567) == "1,234,567"
    assert text.rank(1, 1) == "1"
    assert text.rank(2, 4) == "2–4"
    assert text.level(0.95) == "95\u202f%"
    assert text.level(0.999) == "99.9\u202f%"
    assert text.clock(1_000_000_000.0) == "01:46:40 UTC"
    assert text.day_and_clock(1_000_000_000.0) == "2001-09-09 01:46:40 UTC"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (3.9, "3 s"), (119, "119 s"), (120, "2 min"), (7_200, "2 h"), (172_800, "2 d")],
)
def test_age(seconds: float, shown: str) -> None:
    assert text.age(seconds) == shown


@pytest.mark.parametrize(
    ("declared", "times", "sure"),
    [
        ("1", "2.72", "73.2"),  # e = 2.7183, e/(1 + e) = 0.7311
        ("1.098612288669", "3", "75.0"),  # ln 3, as it is declared
        ("8", "2,980.96", "more than 99.9"),
    ],
)
def test_epsilon_in_words_rounds_the_declared_up(declared: str, times: str, sure: str) -> None:
    said = text.epsilon_in_words(Epsilon(declared, "0.5"))
    assert f"at most {times} times" in said
    assert f"at most {sure}\u202f% sure" in said


@pytest.mark.parametrize(
    ("decimal", "shown"),
    [
        ("1", "1"),
        ("0.000000000001", "0.000000000001"),
        ("1.098612288669", "≈ 1.098612"),
        ("0.999999999999999999", "≈ 1"),
    ],
)
def test_a_long_epsilon_is_rounded_for_reading(decimal: str, shown: str) -> None:
    assert text.short_epsilon(decimal) == shown


def test_the_intervals_meaning_names_how_they_hold() -> None:
    assert "1 in 20 misses" in text.interval_meaning(0.95, simultaneous=False)
    assert "all at once" in text.interval_meaning(0.95, simultaneous=True)


def test_notes_are_there_only_where_they_apply() -> None:
    clear, doubtful, negative = (make_value("v", share) for share in (0.5, 0.02, -0.01))
    assert text.doubt_explained([clear], final=True) is None
    for final, said in ((True, "zero: judged"), (False, "zero yet: while the round is open")):
        assert said in str(text.doubt_explained([clear, doubtful], final=final))
    assert text.below_zero([clear, doubtful]) is None
    assert text.below_zero([negative]) is not None
    assert text.cut(50, 50) is None
    assert text.cut(50, 1_024) == "The 50 largest estimates of 1,024 are shown."
