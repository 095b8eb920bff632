"""What hostile reports could have done, as a table. Pure; every text from outside is escaped."""

from html import escape

from hubbub_dashboard import parts, text
from hubbub_dashboard.parts import Row, exact, exact_interval
from hubbub_dashboard.privacy.attack import Attack


def table(found: Attack, probability: float) -> str:
    """The chart's figures."""
    selection, places = found.selection, found.selection.places
    rows: list[Row] = []
    for value, (low, high) in zip(selection.values, found.ends, strict=True):
        cells = [
            exact(value.estimate, text.percent(value.estimate, places)),
            exact_interval(selection.low(value), selection.high(value), places),
            exact_interval(low, high, places),
            '<span aria-hidden="true">●</span> yes' if value.found else f"◇ {selection.doubt}",
        ]
        rows.append(Row(escape(value.label), cells, "" if value.found else "doubt"))
    together = ", all at once" if selection.simultaneous else ""
    columns = [
        "Value",
        "Share",
        f"{text.level(probability)} interval{together}",
        f"with {text.count(found.hostile)} hostile",
        "Above zero even then?",
    ]
    return parts.table("With hostile reports", columns, rows)
