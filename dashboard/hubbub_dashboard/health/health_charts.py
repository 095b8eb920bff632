"""What came each second over the last minutes, as a chart. Pure."""

import math
from functools import lru_cache
from typing import Any, Final

import pyarrow

from hubbub_dashboard.health import health_text
from hubbub_dashboard.health.history import WINDOW, Interval, intervals
from hubbub_dashboard.palette import PALETTES, Theme
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.reading.source import AggregatorStatus

COUNTED: Final = "Reports counted each second"
REJECTED: Final = "Rejected each second"

# With title and axis.
_HEIGHT: Final = 150

# Pixels for the axis's figures, so that both charts begin at the same place.
_LABELS: Final = 52


@derived
def rates(status: AggregatorStatus, what: str) -> tuple[float, ...]:
    """What one of the charts shows, oldest first."""
    return tuple(
        interval.counted if what == COUNTED else interval.rejected for interval in lately(status)
    )


@derived
def lately(status: AggregatorStatus) -> tuple[Interval, ...]:
    """What there is to be drawn."""
    return intervals(status.history)


@derived
def rows(status: AggregatorStatus, what: str) -> pyarrow.Table:
    """Return a chart's data: minutes before this status, and what came each second."""
    shown, newest = lately(status), status.history[-1].moment
    return pyarrow.table(
        {
            "from": [(interval.begins - newest) / 60 for interval in shown],
            "to": [(interval.ends - newest) / 60 for interval in shown],
            "rate": list(rates(status, what)),
        }
    )


def top(highest: float) -> float:
    """Return the axis's end: 1, 2 or 5 times a power of ten, and 1 at least."""
    power = 10.0 ** math.floor(math.log10(max(highest, 1)))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= highest)


@derived
def alternative(status: AggregatorStatus, what: str) -> str:
    """Say in a sentence what a chart shows."""
    return health_text.alternative(what, lately(status), rates(status, what))


@lru_cache(maxsize=32)
def specification(what: str, end: float, theme: Theme) -> dict[str, Any]:
    """Return the Vega-Lite specification; the same object every time. `end`: the axis's."""
    palette = PALETTES[theme]
    minutes = {
        "field": "from",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [-WINDOW / 60, 0], "nice": False},
        "axis": {
            "domainColor": palette.edge,
            "grid": False,
            "labelColor": palette.muted,
            "labelExpr": "datum.value === 0 ? 'last look' : -datum.value + ' min earlier'",
            "labelFlush": True,
            "labelFontSize": 12,
            "tickColor": palette.edge,
            "values": [-15, -10, -5, 0],
        },
    }
    each_second = {
        "field": "rate",
        "type": "quantitative",
        "title": None,
        "scale": {"domain": [0, end], "nice": False},
        "axis": {
            "domain": False,
            "grid": True,
            "gridColor": palette.grid,
            "labelColor": palette.muted,
            "labelExpr": "format(datum.value, ',.4~r')",
            "labelFlush": False,
            "labelFontSize": 12,
            "maxExtent": _LABELS,
            "minExtent": _LABELS,
            "ticks": False,
            "values": [0, end / 2, end],
        },
    }
    line = {"type": "rule", "color": palette.accent, "strokeCap": "square", "strokeWidth": 2}
    return {
        "height": _HEIGHT,
        "config": {"view": {"stroke": None}},
        "title": {
            "text": what,
            "anchor": "start",
            "color": palette.ink,
            "fontSize": 14,
            "fontWeight": 600,
            "frame": "group",
            "offset": 8,
        },
        "encoding": {"x": minutes, "x2": {"field": "to"}, "y": each_second},
        "layer": [
            {
                "mark": {"type": "rect", "color": palette.accent, "opacity": 0.18},
                "encoding": {"y2": {"datum": 0}},
            },
            {"mark": line},
        ],
    }
