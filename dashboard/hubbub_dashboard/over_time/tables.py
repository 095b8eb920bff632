"""The figures over the rounds as tables. Pure."""

from html import escape
from typing import Any

from hubbub_dashboard import parts, text
from hubbub_dashboard.over_time import sentences
from hubbub_dashboard.over_time.changes import MAX_CHANGES, Change, change_at, marked
from hubbub_dashboard.over_time.series import Kind, Point, Series
from hubbub_dashboard.parts import Row, exact, exact_interval
from hubbub_dashboard.reading.derived import derived


@derived
def changes(series: Series, drawn: tuple[int, ...]) -> str:
    """Every change that stands out, or the newest of them; the newest first."""
    rows = (_change(series, change, drawn) for change in marked(series)[:MAX_CHANGES])
    return parts.table("Changes", ("Rounds", "Value", "Change in points", "Panel"), rows)


def _change(series: Series, change: Change, drawn: tuple[int, ...]) -> Row:
    step = change.step
    cells = (
        f"<bdi>{escape(series.values[change.value])}</bdi>",
        exact(change.estimate, escape(sentences.change_in_words(change))),
        "drawn" if change.value in drawn else "not drawn",
    )
    return Row(f"{step.before.number} to {step.after.number}", cells)


@derived
def rounds(series: Series, drawn: tuple[int, ...]) -> str:
    """A row for each round, the newest first; a column for each value that is drawn."""
    columns = ("Round", "Began", "Reports", *(series.values[value] for value in drawn))
    known = {
        (change.step.after.number, change.value): sentences.change_in_words(change)
        for change in marked(series)
    }
    rows = (
        Row(
            f"{point.number}{_state(point)}",
            (
                sentences.day(series, point),
                text.count(point.shares.n) if point.shares is not None else "",
                *(_cell(series, point, value, known) for value in drawn),
            ),
            "" if point.drawn is not None else "doubt",
        )
        for point in reversed(series.points)
    )
    return parts.table("Rounds", columns, rows)


def _state(point: Point) -> str:
    said = [] if point.kind is Kind.CLOSED else [point.kind.value]
    if point.revisions:
        said.append(f"{sentences.revisions_in_words(point.revisions)} came")
    return f"<small>{'; '.join(said)}</small>" if said else ""


def _cell(series: Series, point: Point, value: int, known: dict[tuple[int, int], str]) -> str:
    shares = point.drawn
    if shares is None:
        return "no figures"
    estimate, low, high = (
        float(figures[value]) for figures in (shares.estimate, shares.low, shares.high)
    )
    shown = exact(estimate, text.percent(estimate, series.places))
    change = known.get((point.number, value))
    told = f"<br>{escape(change)}" if change else ""
    return f"{shown} ({exact_interval(low, high, series.places, unit='')}){told}"


@derived
def every_value(series: Series) -> dict[str, list[Any]]:
    """Return all values as columns for a table that scrolls; shares as percentages.

    What changed in the last step first, then a column for each round that is drawn, the newest
    first.
    """
    changed: list[str] = []
    if series.last is not None:
        changed = [
            {"rose": "▲ rose", "fell": "▼ fell", "": ""}[change_at(series.last, value)]
            for value in range(len(series.values))
        ]
    return {
        "Value": list(series.values),
        **({f"Since round {series.last.before.number}": changed} if series.last else {}),
        **{
            f"Round {point.number}": list(100 * shares.estimate)
            for point, shares in reversed(series.drawn)
        },
    }
