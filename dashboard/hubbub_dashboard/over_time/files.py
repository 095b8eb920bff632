"""Everything over the rounds as files: a row for each round and value. Pure."""

from collections.abc import Iterator
from typing import Any

from hubbub_aggregator.arrow import parquet_of
from hubbub_aggregator.status_record import instant
from hubbub_dashboard.downloads import csv_of
from hubbub_dashboard.over_time.changes import change_at
from hubbub_dashboard.over_time.series import LEVEL, Series, level_of_step
from hubbub_dashboard.reading.derived import derived


def rows(series: Series) -> Iterator[dict[str, Any]]:
    """Every figure, with all its digits; of a change, only between rounds that are closed."""
    steps = {step.after.number: step for step in series.steps}
    level = level_of_step(len(series.steps))
    for point, shares in series.drawn:
        step = steps.get(point.number)
        found = None if step is None else step.changes
        for value, label in enumerate(series.values):
            yield {
                "metric": series.metric,
                "round": point.number,
                "begins": instant(point.begins),
                "state": point.kind.value,
                "n": shares.n,
                "target": series.target.value,
                "value": label,
                "estimate": float(shares.estimate[value]),
                "std_error": float(shares.std_error[value]),
                "level": LEVEL,
                "simultaneous_low": float(shares.low[value]),
                "simultaneous_high": float(shares.high[value]),
                "since_round": None if step is None else step.before.number,
                "change": None if found is None else float(found.estimate[value]),
                "change_level": level,
                "change_low": None if found is None else float(found.low[value]),
                "change_high": None if found is None else float(found.high[value]),
                "changed": change_at(step, value),
            }


@derived
def csv_file(series: Series) -> bytes:
    """As UTF-8 with the mark by which spreadsheets know it."""
    return csv_of(next(rows(series)), rows(series))


@derived
def parquet_file(series: Series) -> bytes:
    """With types."""
    return parquet_of(list(rows(series)))


def name(series: Series, suffix: str) -> str:
    """What the file is called: metric, and the first and the last round."""
    return f"{series.metric}-{series.points[0].number}-to-{series.points[-1].number}.{suffix}"
