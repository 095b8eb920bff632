"""The chart's figures, and those it has no room for, as HTML. Pure."""

from html import escape

from hubbub_dashboard import parts, text
from hubbub_dashboard.comparing.difference_chart import name
from hubbub_dashboard.comparing.shown import Shown
from hubbub_dashboard.parts import Row, exact, exact_interval
from hubbub_dashboard.reading.answers import Comparison, Difference
from hubbub_dashboard.reading.derived import derived


@derived
def table(comparison: Comparison, shown: Shown) -> str:
    """A row for each difference that is shown."""
    several = shown.total > 1
    level = text.level(comparison.level)
    columns = (
        "Value",
        "Points",
        f"{level} interval",
        *([f"{level}, all at once"] if several else []),
        "Std error",
        *(["p"] if _decides(shown) else []),
        "A difference?",
    )
    rows = (_row(comparison, shown, difference) for difference in shown.differences)
    return parts.table("Differences", columns, rows)


def _row(comparison: Comparison, shown: Shown, difference: Difference) -> Row:
    several, places = shown.total > 1, shown.places
    together = difference.simultaneous_low, difference.simultaneous_high
    found = shown.found(difference)
    cells = (
        exact(difference.estimate, text.signed(difference.estimate, places)),
        exact_interval(difference.low, difference.high, places, unit=""),
        *([exact_interval(*together, places, unit="")] if several else []),
        exact(difference.std_error, text.bare_percent(difference.std_error, places)),
        *([_p(difference.p_value)] if _decides(shown) else []),
        '<span aria-hidden="true">●</span> yes' if found else f"◇ {shown.doubt}",
    )
    return Row(escape(name(comparison, difference)), cells, "" if found else "doubt")


def _decides(shown: Shown) -> bool:
    """Whether p says something: of one difference, and not while whoever looks may wait for it."""
    return shown.final and shown.total == 1


def _p(value: float) -> str:
    return exact(value, escape(text.p_value(value)))
