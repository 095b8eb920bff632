"""The chart of differences: its rows, its axis's ends, and what it shows in words. Pure."""

from typing import Final

import pyarrow

from hubbub_dashboard import text
from hubbub_dashboard.comparing.shown import Kind, Shown, kind_of
from hubbub_dashboard.interval_chart import Interval, columns, ends
from hubbub_dashboard.reading.answers import Comparison, Difference
from hubbub_dashboard.reading.derived import derived

# Named in the alternative text one by one; a listener has the table for the rest.
_MAX_SPOKEN: Final = 8


@derived
def rows(comparison: Comparison, shown: Shown) -> pyarrow.Table:
    """Return the chart\'s data; differences of shares as floats."""
    return columns(_row(comparison, shown, each) for each in shown.differences)


def _row(comparison: Comparison, shown: Shown, difference: Difference) -> Interval:
    low, high = difference.simultaneous_low, difference.simultaneous_high
    figures = (
        f"{text.signed_points(difference.estimate, shown.places)}"
        f"  ({text.interval(low, high, shown.places)})"
    )
    label, found = name(comparison, difference), shown.found(difference)
    if found:
        return Interval(label, difference.estimate, low, high, True, figures, figures)
    wide = f"{shown.doubt}  ·  {figures}"
    return Interval(label, difference.estimate, low, high, False, wide, shown.doubt)


def name(comparison: Comparison, difference: Difference) -> str:
    """What a difference is of."""
    if kind_of(comparison) is Kind.VALUES:
        return f"{difference.left} − {difference.right}"
    return difference.left


@derived
def domain(shown: Shown) -> tuple[float, float]:
    """Return the differences at the axis's ends: round ones, around zero and every interval."""
    low = min(difference.simultaneous_low for difference in shown.differences)
    return ends(low, max(difference.simultaneous_high for difference in shown.differences))


@derived
def alternative(comparison: Comparison, shown: Shown) -> str:
    """Say in a few sentences what the chart shows."""
    told = shown.differences[:_MAX_SPOKEN]
    more = f"; and {len(shown.differences) - len(told)} more" if len(told) < shown.total else ""
    spoken = "; ".join(
        f"{name(comparison, difference)} {text.signed_points(difference.estimate, shown.places)} "
        f"({_ends(difference, shown.places)})"
        for difference in told
    )
    stand_out = sum(map(shown.found, shown.differences))
    verb = "stands" if stand_out == 1 else "stand"
    judged = f"{stand_out} of these {verb} out of the noise" if shown.final else "preliminary"
    return (
        f"Differences with {text.level(comparison.level)} intervals, {len(shown.differences)} of "
        f"{shown.total}; {judged}. {spoken}{more}."
    )


def _ends(difference: Difference, places: int) -> str:
    return text.interval(difference.simultaneous_low, difference.simultaneous_high, places)
