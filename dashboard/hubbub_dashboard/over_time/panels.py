"""A panel's rows, and the ends of its axis. Pure."""

import math
from collections.abc import Iterable
from statistics import median_high
from typing import Any, Final, NamedTuple

import pyarrow

from hubbub_dashboard.over_time import sentences
from hubbub_dashboard.over_time.changes import change_at
from hubbub_dashboard.over_time.series import Kind, Point, Series
from hubbub_dashboard.reading.derived import derived

# Room above and below the bands, as a part of the panel's height: for the triangles.
_ROOM: Final = 0.14

# Times the middle one's width, from which on a band is wide.
_MUCH_WIDER: Final = 3
# Times the others' room, up to which wide bands may take what they need.
_MOST_EMPTY: Final = 2
# Less than this is no width, but what rounding left of none.
_LEAST_SPAN: Final = 1e-7

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
    def room(self) -> float:
        """How much of either end is left for the triangles."""
        return _ROOM * (self.high - self.low)

    @property
    def lines(self) -> list[float]:
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        return [round(line * self.step, 9) for line in range(first, last + 1)]


@derived
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


@derived
def scales(series: Series, drawn: tuple[int, ...]) -> tuple[Scale, ...]:
    """Return a scale for each value that is drawn; all span equally many points.

    They hold every share. Bands much wider than is usual would make all else a flat line: where
    they would, the scales are those of the others, and a wide band ends at the panel's edge.
    """
    usual = _usual(series, drawn)
    whole, fitted = ([_ends(series, value, among) for value in drawn] for among in (None, usual))
    ends = whole if _span(whole) <= _MOST_EMPTY * _span(fitted) else fitted
    span = _span(ends)
    if span < _LEAST_SPAN:
        # Nothing has a width: a point is drawn around it.
        span = 0.01
    span /= 1 - 2 * _ROOM
    step = _step(span)
    return tuple(_scale(low, high, span, step) for low, high in ends)


@derived
def beyond(series: Series, drawn: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of the rounds of which a band ends at a panel's edge, and goes on."""
    panels = list(zip(drawn, scales(series, drawn), strict=True))
    return tuple(
        point.number
        for point, shares in series.drawn
        if any(
            shares.low[value] < scale.low or shares.high[value] > scale.high
            for value, scale in panels
        )
    )


def _usual(series: Series, drawn: tuple[int, ...]) -> set[int]:
    """Numbers of the rounds whose bands are not much wider than the middle one's.

    The middle one of two is the wider: where half are wide, wide is usual.
    """
    widths = {
        point.number: max(float(shares.high[value] - shares.low[value]) for value in drawn)
        for point, shares in series.drawn
    }
    most = _MUCH_WIDER * median_high(widths.values())
    return {number for number, width in widths.items() if width <= most}


def _ends(series: Series, value: int, among: set[int] | None) -> tuple[float, float]:
    """The lowest and the highest of a value's shares, and of its bands in these rounds."""
    found = [float(shares.estimate[value]) for _, shares in series.drawn]
    for point, shares in series.drawn:
        if among is None or point.number in among:
            found += float(shares.low[value]), float(shares.high[value])
    return min(found), max(found)


def _span(ends: Iterable[tuple[float, float]]) -> float:
    return max(high - low for low, high in ends)


def _step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that there are 3 to 7 lines."""
    power = 10.0 ** math.floor(math.log10(span / 3))
    return next((power * size for size in (5, 2) if power * size <= span / 3), power)


def _scale(low: float, high: float, span: float, step: float) -> Scale:
    start = (low + high - span) / 2
    return Scale(round(start, 9), round(start + span, 9), step)
