"""What is drawn, how doubt is marked, and what is said in place of the chart."""

import pytest

from hubbub_dashboard import interval_chart, text
from hubbub_dashboard.palette import PALETTES, Theme
from hubbub_dashboard.shares import share_chart
from hubbub_dashboard.shares.selection import Order, select
from tests.dashboard.snapshots import make_estimates, make_value

ENDS = (-0.05, 0.65)


def test_doubt_is_said_in_words_at_every_width() -> None:
    estimates = make_estimates(make_value("clear", 0.5), make_value("doubtful", -0.01))
    columns = share_chart.rows(select(estimates, Order.LISTED)).to_pydict()
    assert columns["found"] == [True, False]
    for width in ("wide", "narrow"):
        clear, doubtful = columns[width]
        assert text.NOT_DISTINGUISHABLE not in clear
        assert text.NOT_DISTINGUISHABLE in doubtful
    assert "\u22121" in columns["wide"][1]
    assert columns["estimate"] == [0.5, -0.01]


def test_parts_of_a_whole_are_lengths_from_zero_without_intervals() -> None:
    estimates = make_estimates(make_value("clear", 0.5), make_value("doubtful", -0.01))
    selection = select(estimates, Order.LISTED, whole=True)
    columns = share_chart.rows(selection).to_pydict()
    assert columns["estimate"] == [0.5, 0.0]
    assert columns["wide"] == columns["narrow"] == ["50.0\u202f%", "0.0\u202f%"]
    assert share_chart.domain(selection) == (0.0, 0.5)
    layers = interval_chart.specification(2, ENDS, "light", whole=True)["layer"]
    assert not [layer for layer in layers if layer["mark"]["type"] == "point"]
    said = share_chart.alternative(selection, 0.95)
    assert said == (
        "Shares as parts of a whole, 2 of 2 values. clear 50.0\u202f%; doubtful 0.0\u202f%."
    )


def test_the_specification_stays_the_same_object() -> None:
    # Else the browser would draw the chart anew at every snapshot.
    first, second = (interval_chart.specification(4, ENDS, "light") for _ in range(2))
    assert first is second


@pytest.mark.parametrize(
    ("estimates", "ends"),
    [
        # Intervals are 0.02 wide on each side.
        ((0.58, 0.01), (-0.05, 0.6)),
        ((0.585, 0.01), (-0.05, 0.65)),
        ((0.5, 0.4), (0.0, 0.55)),
        ((-0.05,), (-0.075, 0.0)),
    ],
)
def test_the_axis_ends_at_round_shares_around_all_intervals(
    estimates: tuple[float, ...], ends: tuple[float, float]
) -> None:
    values = [make_value(str(share), share) for share in estimates]
    assert share_chart.domain(select(make_estimates(*values), Order.LISTED)) == ends


@pytest.mark.parametrize("share", [0.0, 1e-300, -1e-300, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 2])
def test_the_axis_has_a_length_where_nothing_has_a_width(share: float, count: int) -> None:
    values = [make_value(str(place), share, error=0.0) for place in range(count)]
    selection = select(make_estimates(*values), Order.LISTED)
    low, high = share_chart.domain(selection)
    assert low <= 0 <= high
    assert low <= share <= high
    assert high - low >= 0.01
    whole = select(make_estimates(*values), Order.LISTED, whole=True)
    assert share_chart.domain(whole)[0] < share_chart.domain(whole)[1]


@pytest.mark.parametrize("high", [1e-300, 1e-9, 1e-3, 0.3, 1.0, 25.0])
@pytest.mark.parametrize("low", [-30.0, -0.07, -1e-9, -1e-300, 0.0])
def test_the_axis_ends_around_whatever_there_is(low: float, high: float) -> None:
    first, last = interval_chart.ends(low, high)
    assert first <= low <= 0 <= high <= last
    assert last - first <= max(0.02, 2 * (high - low))


def test_doubt_has_a_shape_of_its_own() -> None:
    layers = interval_chart.specification(4, ENDS, "light")["layer"]
    point = next(layer for layer in layers if layer["mark"]["type"] == "point")
    shape, fill = point["encoding"]["shape"], point["encoding"]["fill"]
    assert shape["condition"] == {"test": "datum.found", "value": "circle"}
    assert shape["value"] == "diamond"
    assert fill["value"] == PALETTES["light"].paper  # hollow


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_zero_line_is_drawn_in_ink(theme: Theme) -> None:
    layers = interval_chart.specification(4, ENDS, theme)["layer"]
    zero = [layer for layer in layers if layer["encoding"].get("x") == {"datum": 0}]
    assert [layer["mark"]["color"] for layer in zero] == [PALETTES[theme].ink]


def _luminance(colour: str) -> float:
    """Relative luminance of "#rrggbb" (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("role", ["ink", "muted", "accent"])
def test_contrast_is_enough_to_read(theme: Theme, role: str) -> None:
    palette = PALETTES[theme]
    one, other = _luminance(getattr(palette, role)), _luminance(palette.paper)
    assert (max(one, other) + 0.05) / (min(one, other) + 0.05) >= 4.5


def test_the_alternative_text_says_what_the_chart_shows() -> None:
    estimates = make_estimates(make_value("clear", 0.5), make_value("doubtful", -0.01))
    said = share_chart.alternative(select(estimates, Order.LISTED), 0.95)
    assert said == (
        "Estimated shares with 95\u202f% intervals, 2 of 2 values; 1 of these is "
        "distinguishable from zero. clear 50.0\u202f% (48.0 to 52.0); "
        "doubtful \u22121.0\u202f% (\u22123.0 to 1.0)."
    )


def test_the_alternative_text_of_many_values_ends() -> None:
    values = [make_value(str(i), 0.5) for i in range(20)]
    said = share_chart.alternative(select(make_estimates(*values), Order.LISTED), 0.95)
    assert said.endswith("; and 12 more.")
