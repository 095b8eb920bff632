"""Intervals in rows, as data: columns, and a constant Vega-Lite specification. Pure.

Columns change with every snapshot and the specification seldom does, so the browser moves the
marks instead of drawing the chart anew.
"""

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow

from hubbub_dashboard.palette import PALETTES, Palette, Theme

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

# Less than this is no width, but what rounding left of none.
_LEAST_SPAN: Final = 1e-12

# Labels of the axis, as Vega writes them: shares, and differences of shares.
PERCENT: Final = (
    "replace(format(datum.value, domain('x')[1] - domain('x')[0] < 0.06 ? '.1%' : '.0%'),"
    " '%', '\u202f%')"
)
POINTS: Final = (
    "datum.value == 0 ? 'no difference' :"
    " format(100 * datum.value, domain('x')[1] - domain('x')[0] < 0.06 ? '+.1f' : '+.0f')"
)


class Interval(NamedTuple):
    """One row."""

    label: str
    estimate: float
    """A share, or a difference of shares, as the ends are."""
    low: float
    high: float
    found: bool
    """Whether it is drawn as one that stands out of the noise."""
    wide: str
    """What is written beside the label."""
    narrow: str
    """The same where there is little room."""


def columns(rows: Iterable[Interval]) -> pyarrow.Table:
    """Return the chart's data.

    As the browser takes it: Streamlit would go by way of pandas, and again at every look.
    """
    rows = list(rows)
    named = {name: [getattr(row, name) for row in rows] for name in Interval._fields}
    return pyarrow.table({"row": list(range(len(rows))), **named})


def ends(low: float, high: float) -> tuple[float, float]:
    """Return round numbers at or beyond both, and around zero; they differ, whatever is drawn.

    Left to Vega they would be sought in the data, which come only after the first drawing.
    """
    low, high = min(0.0, low), max(0.0, high)
    if high - low < _LEAST_SPAN:
        # Nothing but 0 is drawn: a point to either side.
        return -0.01, 0.01
    # Half a power of ten, so small that there are 2 to 20 steps. Divided by rather than
    # multiplied with, so that 0.05 is 0.05.
    per_share = 2 * 10.0 ** -math.floor(math.log10(high - low))
    return math.floor(low * per_share) / per_share, math.ceil(high * per_share) / per_share


@lru_cache(maxsize=64)
def specification(
    row_count: int,
    ends: tuple[float, float],
    theme: Theme,
    *,
    whole: bool = False,
    axis_label: str = PERCENT,
) -> dict[str, Any]:
    """Return the Vega-Lite specification for so many rows; the same object every time.

    `ends`: the shares at the axis's ends; `whole`: bars that are parts of a whole; `axis_label`:
    PERCENT or POINTS.

    Each row has its texts above and its marks below: zero line, interval with end caps taller
    than the point (so that one narrower than its point is still seen), point. A value that is
    not found, and so not distinguishable from zero, is a hollow diamond, grey, and says so.
    """
    palette = PALETTES[theme]
    axis = _Axis(ends, axis_label, palette)
    row_height = _ROW_HEIGHT if row_count <= _MAX_AIRY_ROWS else _DENSE_ROW_HEIGHT
    if whole:
        marks = [_part(axis)]
    else:
        marks = [
            _whisker(axis),
            _cap("low", axis),
            _cap("high", axis),
            _point(axis),
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


class _Axis(NamedTuple):
    """The axis of shares."""

    ends: tuple[float, float]
    label: str
    palette: Palette


def _band(position: float) -> dict[str, Any]:
    """Place something within its row: 0 is the row's upper edge, 1 its lower."""
    return {
        "field": "row",
        "type": "ordinal",
        "axis": None,
        "scale": {"padding": 0},
        "bandPosition": position,
    }


def _share(field: str, axis: _Axis) -> dict[str, Any]:
    """Place something along the axis of shares."""
    return {
        "field": field,
        "type": "quantitative",
        "title": None,
        "scale": {"domain": axis.ends, "nice": False, "padding": 14},
        "axis": {
            "domain": False,
            "grid": True,
            "gridColor": axis.palette.grid,
            "labelColor": axis.palette.muted,
            "labelExpr": axis.label,
            "labelFontSize": 12,
            "tickCount": {"expr": "max(3, floor(width / 110))"},
            "ticks": False,
        },
    }


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


def _whisker(axis: _Axis) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "x": _share("low", axis),
            "x2": {"field": "high"},
            "y": _band(_MARKS),
            "color": _shade(axis.palette),
        },
    }


def _cap(field: str, axis: _Axis) -> dict[str, Any]:
    return {
        "mark": {"type": "rule", "strokeWidth": 2},
        "encoding": {
            "x": _share(field, axis),
            "y": _band(_MARKS - _CAP),
            "y2": _band(_MARKS + _CAP),
            "color": _shade(axis.palette),
        },
    }


def _point(axis: _Axis) -> dict[str, Any]:
    return {
        "mark": {"type": "point", "strokeWidth": 1.75, "opacity": 1},
        "encoding": {
            "x": _share("estimate", axis),
            "y": _band(_MARKS),
            "stroke": _shade(axis.palette),
            "fill": _if_found(axis.palette.accent, axis.palette.paper),
            "shape": _if_found("circle", "diamond"),
            "size": _if_found(64, 90),
        },
    }


def _part(axis: _Axis) -> dict[str, Any]:
    """A line from zero, thick as a bar: a part of a whole is a length, and has no interval."""
    return {
        "mark": {"type": "rule", "strokeWidth": _PART_HEIGHT, "color": axis.palette.accent},
        "encoding": {
            "x": _share("low", axis),
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
