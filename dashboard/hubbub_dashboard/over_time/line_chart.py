"""A value over the rounds, as a constant Vega-Lite specification. Pure.

Line and band are broken where a round has no figures. An open round is hollow, and stands apart.
A change that stands out is a triangle at the round that it came with. A band that goes on beyond
the panel's edge has an open arrow there.
"""

import math
from functools import lru_cache
from typing import Any, Final

from hubbub.schedule import Periodic
from hubbub_dashboard.over_time.panels import Scale
from hubbub_dashboard.palette import PALETTES, Palette, Theme

_HEIGHT: Final = 130
# Pixels more below the last panel, which alone says which rounds they are.
_NAMES: Final = 36
# Pixels for the figures beside the panel, so that all begin at the same place.
_LABELS: Final = 52
_DAY: Final = 86_400

# Pixels from the panel's ends within which a round's name begins or ends there.
_FLUSH: Final = 48
# Pixels from one round that is named to the next: more than a name is wide, since the first one
# begins where it stands, and the next one has it in its middle.
_APART: Final = 120
# More are not named, however wide the panel is.
_MOST_NAMED: Final = 8

# An arrow without a shaft, that points up; and in pixels, how far its middle is from the edge.
_ARROW: Final = "M-1,0.35L0,-0.35L1,0.35"
_ARROW_INSIDE: Final = 6

# Above so many rounds, points are smaller.
_AIRY: Final = 30


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
        # Marks are not named one by one: the chart is told as a whole, and has a table.
        "config": {"view": {"stroke": None}, "mark": {"aria": False}},
        "encoding": {"x": _rounds_axis(rounds, schedule, palette, names=names)},
        "layer": [
            _gap(palette),
            _zero_line(palette, scale),
            _band(palette, scale),
            _whisker(palette, scale),
            _line(palette, scale),
            _point(palette, scale, 22 if many else 50),
            _arrow("up", palette, scale),
            _arrow("down", palette, scale),
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
            # Left to Vega, those that do not fit are dropped wherever they are.
            "labelOverlap": False,
            "tickColor": palette.edge,
            "values": {
                "expr": f"{[named(*rounds, most) for most in range(1, _MOST_NAMED + 1)]}"
                f"[clamp(floor(width / {_APART}), 1, {_MOST_NAMED}) - 1]"
            },
        },
    }


def named(first: int, last: int, most: int) -> list[int]:
    """The rounds that are named where there is room for so many: equally far apart, the last one
    always, and the first where that costs no more than half of the names."""
    steps = last - first
    least = max(1, math.ceil((steps + 1) / most))
    both_ends = (step for step in range(least, 2 * least + 1) if step <= steps and not steps % step)
    step = next(both_ends, least)
    return list(range(last, first - 1, -step))[::-1]


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
        "mark": {"type": "area", "color": palette.accent, "opacity": 0.2, "clip": True},
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
        "mark": {
            "type": "rule",
            "clip": True,
            "color": palette.accent,
            "strokeWidth": 1.5,
            "opacity": 0.8,
        },
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
    """Above the band if it rose, and below if it fell; of a band that goes on, inside it."""
    up = what == "rose"
    highest, lowest = scale.high - scale.room, scale.low + scale.room
    place = f"min(datum.high, {highest})" if up else f"max(datum.low, {lowest})"
    return {
        "transform": [
            {"filter": f"datum.mark === '{what}'"},
            {"calculate": place, "as": "place"},
        ],
        "mark": {
            "type": "point",
            "shape": "triangle-up" if up else "triangle-down",
            "color": palette.ink,
            "fill": palette.ink,
            "opacity": 1,
            "size": 70,
            "yOffset": -10 if up else 10,
        },
        "encoding": {"y": _share("place", palette, scale)},
    }


def _arrow(where: str, palette: Palette, scale: Scale) -> dict[str, Any]:
    """Where a band goes on beyond the panel's edge."""
    up = where == "up"
    beyond = f"datum.high > {scale.high}" if up else f"datum.low < {scale.low}"
    return {
        "transform": [{"filter": f"isValid(datum.estimate) && {beyond}"}],
        "mark": {
            "type": "point",
            "shape": _ARROW,
            "angle": 0 if up else 180,
            "fill": None,
            "opacity": 1,
            "size": 130,
            "stroke": palette.accent,
            "strokeWidth": 2,
            "yOffset": _ARROW_INSIDE if up else -_ARROW_INSIDE,
        },
        "encoding": {"y": {"value": 0 if up else "height"}},
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
