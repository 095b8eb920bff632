"""The chart of a snapshot, as data: rows, a constant Vega-Lite specification, alternative text.

Rows change with every snapshot and the specification seldom does, so the browser moves the
marks instead of drawing the chart anew. Pure.
"""

import math
from functools import lru_cache
from typing import Any, Final

from hubbub_dashboard import text
from hubbub_dashboard.palette import PALETTES, Palette, Theme
from hubbub_dashboard.selection import Selection

# Named in the alternative text one by one; a listener has the table for the rest.
_MAX_SPOKEN: Final = 8

# Pixels; long charts are denser.
_ROW_HEIGHT: Final = 52
_DENSE_ROW_HEIGHT: Final = 42
_MAX_AIRY_ROWS: Final = 12
_AXIS_HEIGHT: Final = 34
# Heights within a row, from 0 to 1: the middle of its texts, where they end, and the middle
# of its marks with half the height of an interval's end caps.
_TEXTS: Final = 0.28
_TEXT_ENDS: Final = 0.48
_MARKS: Final = 0.72
_CAP: Final = 0.13
_PART_HEIGHT: Final = 10
# Below this many pixels a row's figures and its words do not fit beside its label.
_NARROW: Final = 560


_COLUMNS: Final = ("row", "label", "estimate", "low", "high", "found", "wide", "narrow")


@lru_cache(maxsize=64)
def rows(selection: Selection) -> dict[str, list[Any]]:
    """Return the chart's data as columns; shares as floats, texts ready to draw."""
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for position, value in enumerate(selection.values):
        if selection.whole:
            part = text.percent(value.consistent, selection.places)
            row = (position, value.label, value.consistent, 0.0, 0.0, True, part, part)
            _append(columns, row)
            continue
        low, high = selection.low(value), selection.high(value)
        figures = (
            f"{text.percent(value.estimate, selection.places)}"
            f"  ({text.interval(low, high, selection.places)})"
        )
        doubt = "" if value.found else f"{selection.doubt}  ·  "
        row = (
            position,
            value.label,
            value.estimate,
            low,
            high,
            value.found,
            doubt + figures,
            figures if value.found else selection.doubt,
        )
        _append(columns, row)
    return columns


def _append(columns: dict[str, list[Any]], row: tuple[Any, ...]) -> None:
    for name, cell in zip(_COLUMNS, row, strict=True):
        columns[name].append(cell)


@lru_cache(maxsize=64)
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
        f"{selection.total} values; {distinct} of these are distinguishable from zero. "
        f"{spoken}{more}."
    )


def domain(selection: Selection) -> tuple[float, float]:
    """Return the shares at the axis's ends: round ones, around zero and every interval.

    Left to Vega it would be sought in the data, which come only after the first drawing.
    """
    if selection.whole:
        low, high = 0.0, max(value.consistent for value in selection.values)
    else:
        low = min(0.0, *map(selection.low, selection.values))
        high = max(0.0, *map(selection.high, selection.values))
    # Half a power of ten, so small that there are 2 to 20 steps. Divided by rather than
    # multiplied with, so that 0.05 is 0.05.
    per_share = 2 * 10.0 ** -math.floor(math.log10(high - low))
    return math.floor(low * per_share) / per_share, math.ceil(high * per_share) / per_share


@lru_cache(maxsize=64)
def specification(
    row_count: int, ends: tuple[float, float], theme: Theme, *, whole: bool = False
) -> dict[str, Any]:
    """Return the Vega-Lite specification for so many rows; the same object every time.

    `ends`: the shares at the axis's ends; `whole`: bars that are parts of a whole.

    Each row has its texts above and its marks below: zero line, interval with end caps taller
    than the point (so that one narrower than its point is still seen), point. A value that is
    not found, and so not distinguishable from zero, is a hollow diamond, grey, and says so.
    """
    palette = PALETTES[theme]
    row_height = _ROW_HEIGHT if row_count <= _MAX_AIRY_ROWS else _DENSE_ROW_HEIGHT
    if whole:
        marks = [_part(ends, palette)]
    else:
        marks = [
            _whisker(ends, palette),
            _cap("low", ends, palette),
            _cap("high", ends, palette),
            _point(ends, palette),
        ]
    return {
        "height": row_count * row_height + _AXIS_HEIGHT,
        "config": {"view": {"stroke": None}},
        "encoding": {"y": _band(0)},
        "layer": [
            _text_band(row_height, palette),
            _separator(palette),
            _zero_line(palette),
            *marks,
            _label(palette),
            _figures(palette),
        ],
    }


def _band(position: float) -> dict[str, Any]:
    """Place something within its row: 0 is the row's upper edge, 1 its lower."""
    return {
        "field": "row",
        "type": "ordinal",
        "axis": None,
        "scale": {"padding": 0},
        "bandPosition": position,
    }


def _share(field: str, ends: tuple[float, float], palette: Palette) -> dict[str, Any]:
    """Place something along the axis of shares."""
    return {
        "field": field,
        "type": "quantitative",
        "title": None,
        "scale": {"domain": ends, "nice": False, "padding": 14},
        "axis": {
            "domain": False,
            "grid": True,
            "gridColor": palette.grid,
            "labelColor": palette.muted,
            "labelExpr": _AXIS_LABEL,
            "labelFontSize": 12,
            "tickCount": {"expr": "max(3, floor(width / 110))"},
            "ticks": False,
        },
    }


_AXIS_LABEL: Final = (
    "replace(format(datum.value, domain('x')[1] - domain('x')[0] < 0.06 ? '.1%' : '.0%'),"
    " '%', '\u202f%')"
)


def _shade(palette: Palette) -> dict[str, Any]:
    return _if_found(palette.accent, palette.muted)


def _if_found(then: object, otherwise: object) -> dict[str, Any]:
    return {"condition": {"test": "datum.found", "value": then}, "value": otherwise}


def _text_band(row_height: int, palette: Palette) -> dict[str, Any]:
    """Cover the grid where texts stand, so that no line crosses them."""
    return {
        "mark": {
            "type": "rule",
            # Else its width would count as room to be left at both ends.
            "clip": True,
            "color": palette.paper,
            "strokeWidth": row_height * _TEXT_ENDS,
        },
        "encoding": {
            "x": {"value": 0},
            "x2": {"value": "width"},
            "y": _band(_TEXT_ENDS / 2),
        },
    }


def _separator(palette: Palette) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "color": palette.grid},
        "encoding": {"x": {"value": 0}, "x2": {"value": "width"}},
    }


def _zero_line(palette: Palette) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "color": palette.ink, "strokeWidth": 1.25},
        "encoding": {"x": {"datum": 0}, "y": _band(_TEXT_ENDS), "y2": _band(1)},
    }


def _whisker(ends: tuple[float, float], palette: Palette) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "x": _share("low", ends, palette),
            "x2": {"field": "high"},
            "y": _band(_MARKS),
            "color": _shade(palette),
        },
    }


def _cap(field: str, ends: tuple[float, float], palette: Palette) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "x": _share(field, ends, palette),
            "y": _band(_MARKS - _CAP),
            "y2": _band(_MARKS + _CAP),
            "color": _shade(palette),
        },
    }


def _point(ends: tuple[float, float], palette: Palette) -> dict[str, Any]:
    return {
        "mark": {"type": "point", "strokeWidth": 1.75, "opacity": 1},
        "encoding": {
            "x": _share("estimate", ends, palette),
            "y": _band(_MARKS),
            "stroke": _shade(palette),
            "fill": _if_found(palette.accent, palette.paper),
            "shape": _if_found("circle", "diamond"),
            "size": _if_found(64, 90),
        },
    }


def _part(ends: tuple[float, float], palette: Palette) -> dict[str, Any]:
    """A line from zero, thick as a bar: a part of a whole is a length, and has no interval."""
    return {
        "mark": {"type": "rule", "strokeWidth": _PART_HEIGHT, "color": palette.accent},
        "encoding": {
            "x": _share("low", ends, palette),
            "x2": {"field": "estimate"},
            "y": _band(_MARKS),
        },
    }


def _label(palette: Palette) -> dict[str, Any]:
    room = f"width < {_NARROW} ? width - 175 : width - 400"
    return {
        "mark": {
            "type": "text",
            "align": "left",
            "color": palette.ink,
            "fontSize": 14,
            "limit": {"expr": room},
        },
        "encoding": {"x": {"value": 0}, "y": _band(_TEXTS), "text": {"field": "label"}},
    }


def _figures(palette: Palette) -> dict[str, Any]:
    fitting = {"test": f"width < {_NARROW}", "field": "narrow"}
    return {
        "mark": {"type": "text", "align": "right", "color": palette.muted, "fontSize": 13},
        "encoding": {
            "x": {"value": "width"},
            "y": _band(_TEXTS),
            "text": {"condition": fitting, "field": "wide"},
        },
    }
