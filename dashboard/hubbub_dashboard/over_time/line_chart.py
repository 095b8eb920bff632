"""A value over the rounds, as data: columns, and a constant Vega-Lite specification. Pure.

Line and band are broken where a round has no figures. An open round is hollow, and stands apart.
A change that stands out is a triangle at the round that it came with.
"""

import math
from functools import lru_cache
from typing import Any, Final, NamedTuple

import pyarrow

from hubbub.schedule import Periodic
from hubbub_dashboard.over_time import sentences
from hubbub_dashboard.over_time.changes import change_at
from hubbub_dashboard.over_time.series import Kind, Point, Series
from hubbub_dashboard.palette import PALETTES, Palette, Theme

_HEIGHT: Final = 130
# Pixels more below the last panel, which alone says which rounds they are.
_NAMES: Final = 36
# Pixels for the figures beside the panel, so that all begin at the same place.
_LABELS: Final = 52
_DAY: Final = 86_400

# Pixels from the panel's ends within which a round's name begins or ends there.
_FLUSH: Final = 48

# Room above and below the bands, as a part of the panel's height: for the triangles.
_ROOM: Final = 0.14

# Above so many rounds, points are smaller.
_AIRY: Final = 30

_COLUMNS: Final = (
    "round",
    "estimate",
    "low",
    "high",
    "segment",
    "open",
    "mark",
    "gap",
    "revision",
    "tip",
)


class Scale(NamedTuple):
    """The ends of a panel's axis, and where it has lines; shares."""

    low: float
    high: float
    step: float

    @property
    def lines(self) -> list[float]:
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        return [round(line * self.step, 9) for line in range(first, last + 1)]


@lru_cache(maxsize=256)
def rows(series: Series, value: int) -> pyarrow.Table:
    """Return a panel's data: a row for each round, and one for each with revisions."""
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    steps = {step.after.number: step for step in series.steps}
    segment = 0
    for point in series.points:
        shares = point.drawn
        segment += shares is None
        figures: dict[str, Any] = {"gap": shares is None}
        if shares is not None:
            figures = {
                "gap": False,
                "estimate": float(shares.estimate[value]),
                "low": float(shares.low[value]),
                "high": float(shares.high[value]),
            }
        rose = change_at(steps.get(point.number), value)
        _append(
            columns,
            round=float(point.number),
            segment=segment,
            open=point.kind is Kind.OPEN,
            mark=rose,
            tip=_tip(series, point, value),
            **figures,
        )
        if point.revisions:
            part = (point.revisions[0].since - point.begins) / series.schedule.every
            name = sentences.revisions_in_words(point.revisions)
            _append(columns, round=point.number - 0.5 + part, revision=name)
    return pyarrow.table(columns)


def _append(columns: dict[str, list[Any]], **cells: Any) -> None:
    usual = {"segment": 0, "open": False, "mark": "", "gap": False, "revision": "", "tip": ""}
    for name in _COLUMNS:
        columns[name].append(cells.get(name, usual.get(name)))


def _tip(series: Series, point: Point, value: int) -> str:
    still = ", still open" if point.kind is Kind.OPEN else ""
    return f"{sentences.share(series, point, value)}, {sentences.day(series, point)}{still}"


@lru_cache(maxsize=64)
def scales(series: Series, drawn: tuple[int, ...]) -> tuple[Scale, ...]:
    """Return a scale for each value that is drawn; all span equally many points."""
    ends = [
        (
            min(float(shares.low[value]) for _, shares in series.drawn),
            max(float(shares.high[value]) for _, shares in series.drawn),
        )
        for value in drawn
    ]
    span = max(high - low for low, high in ends) / (1 - 2 * _ROOM)
    step = _step(span)
    return tuple(_scale(low, high, span, step) for low, high in ends)


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that there are 3 to 7 lines."""
    power = 10.0 ** math.floor(math.log10(span / 3))
    return next(power * size for size in (5, 2, 1) if power * size <= span / 3)


def _scale(low: float, high: float, span: float, step: float) -> Scale:
    start = (low + high - span) / 2
    return Scale(round(start, 9), round(start + span, 9), step)


@lru_cache(maxsize=64)
def specification(
    scale: Scale, rounds: tuple[int, int], schedule: Periodic, theme: Theme, *, names: bool
) -> dict[str, Any]:
    """Return the Vega-Lite specification; the same object every time.

    `rounds`: the first and the last; `names`: whether the axis says which they are.
    """
    palette = PALETTES[theme]
    many = rounds[1] - rounds[0] >= _AIRY
    return {
        "height": _HEIGHT + _NAMES * names,
        "config": {"view": {"stroke": None}},
        "encoding": {"x": _rounds_axis(rounds, schedule, palette, names=names)},
        "layer": [
            _gap(palette),
            _zero_line(palette, scale),
            _band(palette, scale),
            _whisker(palette, scale),
            _line(palette, scale),
            _point(palette, scale, 22 if many else 50),
            _triangle("rose", palette, scale),
            _triangle("fell", palette, scale),
            _revision_line(palette),
            _revision_name(palette),
        ],
    }


def _rounds_axis(
    rounds: tuple[int, int], schedule: Periodic, palette: Palette, *, names: bool
) -> dict[str, Any]:
    starts, every = schedule.starts, schedule.every
    form = "%-d %b %Y" if every % _DAY == 0 else "%-d %b, %H:%M"
    return {
        "field": "round",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [rounds[0] - 0.5, rounds[1] + 0.5], "nice": False, "zero": False},
        "axis": {
            "domainColor": palette.edge,
            "grid": False,
            "labelColor": palette.muted,
            "labelExpr": f"['round ' + datum.value, "
            f"utcFormat(1000 * ({starts} + {every} * datum.value), '{form}')]",
            "labelFontSize": 12,
            # Else the last one would reach out, and make the last panel narrower than the others.
            "labelFlush": _FLUSH,
            "labels": names,
            "labelOverlap": "greedy",
            "labelSeparation": 12,
            "tickColor": palette.edge,
            "tickCount": {"expr": f"min({rounds[1] - rounds[0] + 1}, max(2, floor(width / 100)))"},
            "tickMinStep": 1,
        },
    }


def _share(field: str, palette: Palette, scale: Scale) -> dict[str, Any]:
    places = max(0, math.ceil(-math.log10(scale.step * 100) - 1e-9))
    return {
        "field": field,
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [scale.low, scale.high], "nice": False, "zero": False},
        "axis": {
            "domain": False,
            "grid": True,
            "gridColor": palette.grid,
            "labelColor": palette.muted,
            "labelExpr": f"replace(format(datum.value, '.{places}%'), '%', '\u202f%')",
            "labelFontSize": 12,
            "maxExtent": _LABELS,
            "minExtent": _LABELS,
            # Else Vega thins them out.
            "tickCount": len(scale.lines),
            "ticks": False,
            "values": scale.lines,
        },
    }


_DRAWN: Final = [{"filter": "isValid(datum.estimate)"}]
_CLOSED: Final = [{"filter": "isValid(datum.estimate) && !datum.open"}]


def _gap(palette: Palette) -> dict[str, Any]:
    return {
        "transform": [
            {"filter": "datum.gap"},
            {"calculate": "datum.round - 0.5", "as": "from"},
            {"calculate": "datum.round + 0.5", "as": "to"},
        ],
        "mark": {"type": "rect", "color": palette.muted, "opacity": 0.16, "clip": True},
        "encoding": {
            "x": {"field": "from", "type": "quantitative"},
            "x2": {"field": "to"},
            "y": {"value": 0},
            "y2": {"value": "height"},
        },
    }


def _zero_line(palette: Palette, scale: Scale) -> dict[str, Any]:
    """Where the panel reaches it."""
    shown = scale.low <= 0 <= scale.high
    return {
        "mark": {"type": "rule", "color": palette.ink, "strokeWidth": 1.25 if shown else 0},
        "encoding": {
            "x": {"value": 0},
            "x2": {"value": "width"},
            "y": {"datum": 0 if shown else scale.low, "type": "quantitative"},
        },
    }


def _band(palette: Palette, scale: Scale) -> dict[str, Any]:
    return {
        "transform": _CLOSED,
        "mark": {"type": "area", "color": palette.accent, "opacity": 0.2},
        "encoding": {
            "y": _share("low", palette, scale),
            "y2": {"field": "high"},
            "detail": {"field": "segment", "type": "nominal"},
        },
    }


def _whisker(palette: Palette, scale: Scale) -> dict[str, Any]:
    """The band of one round: all there is to be seen of it between two gaps, or while open."""
    return {
        "transform": _DRAWN,
        "mark": {"type": "rule", "color": palette.accent, "strokeWidth": 1.5, "opacity": 0.8},
        "encoding": {"y": _share("low", palette, scale), "y2": {"field": "high"}},
    }


def _line(palette: Palette, scale: Scale) -> dict[str, Any]:
    return {
        "transform": _CLOSED,
        "mark": {"type": "line", "color": palette.accent, "strokeWidth": 2},
        "encoding": {
            "y": _share("estimate", palette, scale),
            "detail": {"field": "segment", "type": "nominal"},
        },
    }


def _point(palette: Palette, scale: Scale, size: int) -> dict[str, Any]:
    return {
        "transform": _DRAWN,
        "mark": {"type": "point", "opacity": 1, "strokeWidth": 1.75, "stroke": palette.accent},
        "encoding": {
            "y": _share("estimate", palette, scale),
            "fill": {
                "condition": {"test": "datum.open", "value": palette.paper},
                "value": palette.accent,
            },
            "size": {"condition": {"test": "datum.open", "value": 80}, "value": size},
            "tooltip": {"field": "tip", "type": "nominal"},
        },
    }


def _triangle(what: str, palette: Palette, scale: Scale) -> dict[str, Any]:
    """Above the band if it rose, and below if it fell."""
    up = what == "rose"
    return {
        "transform": [{"filter": f"datum.mark === '{what}'"}],
        "mark": {
            "type": "point",
            "shape": "triangle-up" if up else "triangle-down",
            "color": palette.ink,
            "fill": palette.ink,
            "opacity": 1,
            "size": 70,
            "yOffset": -10 if up else 10,
        },
        "encoding": {"y": _share("high" if up else "low", palette, scale)},
    }


def _revision_line(palette: Palette) -> dict[str, Any]:
    return {
        "transform": [{"filter": "datum.revision"}],
        "mark": {"type": "rule", "color": palette.muted, "strokeDash": [4, 3]},
        "encoding": {"y": {"value": 0}, "y2": {"value": "height"}},
    }


_RIGHT_HALF: Final = "datum.round > (domain('x')[0] + domain('x')[1]) / 2"


def _revision_name(palette: Palette) -> dict[str, Any]:
    return {
        "transform": [{"filter": "datum.revision"}],
        "mark": {
            "type": "text",
            "align": {
                "expr": "datum.round > (domain('x')[0] + domain('x')[1]) / 2 ? 'right' : 'left'"
            },
            "baseline": "top",
            "color": palette.muted,
            "dx": {"expr": f"{_RIGHT_HALF} ? -4 : 4"},
            "fontSize": 11,
        },
        "encoding": {"y": {"value": 2}, "text": {"field": "revision", "type": "nominal"}},
    }
