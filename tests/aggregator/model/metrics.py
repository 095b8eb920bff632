"""The metrics that the machine asks: one of each kind."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from hubbub.contract import parse_metric
from tests.aggregator.model.modelled import Asked, reader
from tests.bundles import make_metric

START: Final = 1_000_000
HOUR, DAY = 3_600, 86_400


@cache
def metrics() -> Mapping[str, Asked]:
    """One of each kind, by name."""
    rounds = {"every": HOUR, "rounds": 4, "grace": 600}
    five = [*"abcde"]
    return {
        "once": _asked("once", mechanism="optimised-unary", values=[*"abcdefghij"]),
        "short": _asked(
            "short", ends=START + 2 * DAY, retain=True, mechanism="randomised-response"
        ),
        "hourly": _asked("hourly", **rounds, retain=True, mechanism="optimised-unary", values=five),
        "memo": _asked(
            "memo", **rounds, mechanism="memoised-optimised-unary", values=five, permanent="2"
        ),
        "open": _asked("open", open=True),
        "sets": _asked("sets", mechanism="subset-selection", values=[*"abcdefg"], epsilon="0.5"),
    }


def _asked(name: str, **options: Any) -> Asked:
    schedule = {name: options.pop(name, 0) for name in ("every", "rounds", "grace")}
    periodic = tuple(schedule.values()) if schedule["every"] else None
    contract = make_metric(name, source=name, starts=START, periodic=periodic, **options)
    metric = parse_metric(contract)
    cells, read = reader(metric)
    return Asked(
        metric,
        metric.mechanism.payload_size,
        cells,
        read,
        starts=START,
        rounds=schedule["rounds"] or 1,
        ends=options.get("ends"),
        every=schedule["every"],
        grace=schedule["grace"],
        retain=metric.retain,
    )
