"""The live page's chart, with the truth marked below each interval. Pure."""

from functools import lru_cache
from typing import Any, Final

import pyarrow

from hubbub_dashboard import interval_chart
from hubbub_dashboard.palette import PALETTES, Theme
from hubbub_dashboard.planning.made_up import Crowd
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares import share_chart

# Within a row, between an interval's end caps and the next row's line.
_BELOW: Final = 0.93


@derived
def rows(crowd: Crowd) -> pyarrow.Table:
    """The chart's data."""
    shares: pyarrow.Table = share_chart.rows(crowd.selection)
    return shares.append_column("truth", [[*crowd.truth]])


def domain(crowd: Crowd) -> tuple[float, float]:
    """The shares at the axis's ends. A truth is seldom outside all intervals, and never below 0."""
    low, high = share_chart.domain(crowd.selection)
    return low, max(high, *crowd.truth)


@lru_cache(maxsize=64)
def specification(row_count: int, ends: tuple[float, float], theme: Theme) -> dict[str, Any]:
    """The chart of shares and one mark more."""
    base = interval_chart.specification(row_count, ends, theme)
    truth = {
        "mark": {
            "type": "point",
            "shape": "triangle-up",
            "filled": True,
            "opacity": 1,
            "size": 45,
            "color": PALETTES[theme].ink,
        },
        "encoding": {
            "x": {**_axis_of(base), "field": "truth"},
            "y": {**base["encoding"]["y"], "bandPosition": _BELOW},
        },
    }
    return {**base, "layer": [*base["layer"], truth]}


def _axis_of(specification: dict[str, Any]) -> dict[str, Any]:
    """How estimates are placed along the axis of shares."""
    axes = (layer["encoding"].get("x", {}) for layer in specification["layer"])
    return next(axis for axis in axes if axis.get("field") == "estimate")


def alternative(crowd: Crowd, probability: float) -> str:
    """Say in a few sentences what the chart shows."""
    shown = share_chart.alternative(crowd.selection, probability)
    hits = f"{sum(crowd.inside)} of {len(crowd.inside)} true shares lie inside"
    return f"A made-up crowd. {shown} {hits}; the table below has them."
