"""A panel's rows, and the ends of its axis. Pure."""

import math
from typing import Any, Final, NamedTuple

import pyarrow

from hubbub_dashboard.over_time import sentences
from hubbub_dashboard.over_time.changes import change_at
from hubbub_dashboard.over_time.series import Kind, Point, Series
from hubbub_dashboard.reading.derived import derived

# Room above and below the bands, as a part of the panel's height: for the triangles.
_ROOM: Final = 0.14

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
