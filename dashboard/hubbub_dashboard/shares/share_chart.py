"""The chart of a snapshot's shares: its rows, its axis's ends, and what it shows in words. Pure."""

from typing import Final

import pyarrow

from hubbub_dashboard import text
from hubbub_dashboard.interval_chart import Interval, columns, ends
from hubbub_dashboard.reading.answers import Value
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares.selection import Selection

# Named in the alternative text one by one; a listener has the table for the rest.
_MAX_SPOKEN: Final = 8


@derived
def rows(selection: Selection) -> pyarrow.Table:
    """Return the chart\'s data; shares as floats, texts ready to draw."""
    make = _part if selection.whole else _interval
    return columns(make(value, selection) for value in selection.values)


def _part(value: Value, selection: Selection) -> Interval:
    said = text.percent(value.consistent, selection.places)
    return Interval(value.label, value.consistent, 0.0, 0.0, True, said, said)


def figures(value: Value, selection: Selection) -> str:
    """An estimate with the interval that is drawn, as "12.4 %  (11.9 to 12.9)"."""
    low, high = selection.low(value), selection.high(value)
    share = text.percent(value.estimate, selection.places)
    return f"{share}  ({text.interval(low, high, selection.places)})"


def _interval(value: Value, selection: Selection) -> Interval:
    low, high, said = selection.low(value), selection.high(value), figures(value, selection)
    if value.found:
        return Interval(value.label, value.estimate, low, high, True, said, said)
    wide = f"{selection.doubt}  ·  {said}"
    return Interval(value.label, value.estimate, low, high, False, wide, selection.doubt)


@derived
def alternative(selection: Selection, probability: float) -> str:
    """Say in a few sentences what the chart shows."""
    shown, places = selection.values, selection.places
    more = f"; and {len(shown) - _MAX_SPOKEN} more" if len(shown) > _MAX_SPOKEN else ""
    if selection.whole:
        parts = "; ".join(
            f"{value.label} {text.percent(value.consistent, places)}"
            for value in shown[:_MAX_SPOKEN]
        )
        return (
            f"Shares as parts of a whole, {len(shown)} of {selection.total} values. {parts}{more}."
        )
    intervals = "simultaneous intervals" if selection.simultaneous else "intervals"
    distinct = sum(value.found for value in shown)
    spoken = "; ".join(
        f"{value.label} {text.percent(value.estimate, places)} "
        f"({text.interval(selection.low(value), selection.high(value), places)})"
        for value in shown[:_MAX_SPOKEN]
    )
    return (
        f"Estimated shares with {text.level(probability)} {intervals}, {len(shown)} of "
        f"{selection.total} values; {distinct} of these "
        f"{'is' if distinct == 1 else 'are'} distinguishable from zero. "
        f"{spoken}{more}."
    )


def domain(selection: Selection) -> tuple[float, float]:
    """Return the shares at the axis's ends: round ones, around zero and every interval."""
    if selection.whole:
        return ends(0.0, max(value.consistent for value in selection.values))
    low = min(map(selection.low, selection.values))
    return ends(low, max(map(selection.high, selection.values)))
