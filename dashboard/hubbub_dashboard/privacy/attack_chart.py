"""The live page's chart, with what hostile reports could have done around each interval. Pure.

Solid is what the noise leaves open; dashed, with brackets of its own, what they would.
"""

from functools import lru_cache
from typing import Any, Final

import pyarrow

from hubbub_dashboard import interval_chart, text
from hubbub_dashboard.palette import PALETTES, Palette, Theme
from hubbub_dashboard.privacy.attack import Attack
from hubbub_dashboard.reading.derived import derived
from hubbub_dashboard.shares import share_chart

# Within a row, on either side of the interval's middle: taller than its end caps.
_MIDDLE: Final = 0.72
_BRACKET: Final = 0.2

_MAX_SPOKEN: Final = 8


@derived
def rows(attack: Attack) -> pyarrow.Table:
    """The chart's data."""
    shares: pyarrow.Table = share_chart.rows(attack.selection)
    for name, ends in zip(("least", "most"), zip(*attack.ends, strict=True), strict=True):
        shares = shares.append_column(name, [ends])
    return shares


def domain(attack: Attack) -> tuple[float, float]:
    """The shares at the axis's ends."""
    return interval_chart.ends(
        min(low for low, _ in attack.ends), max(high for _, high in attack.ends)
    )


@lru_cache(maxsize=64)
def specification(row_count: int, ends: tuple[float, float], theme: Theme) -> dict[str, Any]:
    """The chart of shares, with a dashed interval beneath each solid one."""
    base, palette = interval_chart.specification(row_count, ends, theme), PALETTES[theme]
    first_mark = next(
        place for place, layer in enumerate(base["layer"]) if _field(layer) is not None
    )
    around = [
        _dashes(base, palette),
        _bracket(base, palette, "least"),
        _bracket(base, palette, "most"),
    ]
    layers = [*base["layer"][:first_mark], *around, *base["layer"][first_mark:]]
    return {**base, "layer": layers}


def alternative(attack: Attack, probability: float) -> str:
    """Say in a few sentences what the chart shows."""
    selection, shown = attack.selection, attack.selection.values
    places = selection.places
    spoken = "; ".join(
        f"{value.label} {text.percent(value.estimate, places)} "
        f"({text.interval(selection.low(value), selection.high(value), places)}, "
        f"or {text.interval(low, high, places)})"
        for value, (low, high) in list(zip(shown, attack.ends, strict=True))[:_MAX_SPOKEN]
    )
    more = f"; and {len(shown) - _MAX_SPOKEN} more" if len(shown) > _MAX_SPOKEN else ""
    were = "was" if attack.hostile == 1 else "were"
    return (
        f"Estimated shares with {text.level(probability)} intervals, and in brackets around each "
        f"where its interval could be if {text.count(attack.hostile)} of "
        f"{text.counted(attack.n, 'report')} {were} hostile. {spoken}{more}."
    )


def _field(layer: dict[str, Any]) -> str | None:
    """What a layer places along the axis of shares."""
    field: str | None = layer["encoding"].get("x", {}).get("field")
    return field


def _axis(base: dict[str, Any]) -> dict[str, Any]:
    x: dict[str, Any] = next(
        layer["encoding"]["x"] for layer in base["layer"] if _field(layer) == "estimate"
    )
    return x


def _dashes(base: dict[str, Any], palette: Palette) -> dict[str, Any]:
    return {
        "mark": {
            "type": "rule",
            "strokeWidth": 1.25,
            "strokeDash": [4, 3],
            "color": palette.ink,
        },
        "encoding": {
            "x": {**_axis(base), "field": "least"},
            "x2": {"field": "most"},
            "y": {**base["encoding"]["y"], "bandPosition": _MIDDLE},
        },
    }


def _bracket(base: dict[str, Any], palette: Palette, field: str) -> dict[str, Any]:
    y = base["encoding"]["y"]
    return {
        "mark": {"type": "rule", "strokeWidth": 1.25, "strokeDash": [2, 2], "color": palette.ink},
        "encoding": {
            "x": {**_axis(base), "field": field},
            "y": {**y, "bandPosition": _MIDDLE - _BRACKET},
            "y2": {**y, "bandPosition": _MIDDLE + _BRACKET},
        },
    }
