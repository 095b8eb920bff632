"""A plan's tables. Pure; every text from outside is escaped."""

from collections.abc import Iterable
from html import escape

from hubbub.exact import charge_text
from hubbub_aggregator.commands.plan_text import percentage
from hubbub_aggregator.planning.choice import chosen
from hubbub_aggregator.planning.planner import Plan, Prospect
from hubbub_dashboard import text
from hubbub_dashboard.parts import Row, exact, kept_together, table
from hubbub_dashboard.planning.made_up import Crowd
from hubbub_dashboard.planning.reach import Step


def mechanisms(plan: Plan) -> str:
    """Every mechanism that fits, the one that "auto" picks marked."""
    memoised = plan.series.memo is not None
    columns = [
        "Mechanism",
        "Std error",
        f"± ({text.level(plan.level)})",
        "Detectable",
        "Bytes",
        "Influence",
        *(["Rows", "ε in all"] if memoised else []),
    ]
    rows = [_prospect(row, picked=place == 0) for place, row in enumerate(plan.prospects)]
    return table("Mechanisms", columns, rows)


def _prospect(row: Prospect, *, picked: bool) -> Row:
    parameters = ", ".join(
        f"{name} {text.count(number)}" for name, number in chosen(row.mechanism).items()
    )
    name = escape(row.mechanism.name) + (
        f" <small>{escape(parameters)}</small>" if parameters else ""
    )
    cells = [
        _share(row.std_error),
        _share(row.half_width),
        _share(row.detectable),
        text.count(row.mechanism.payload_size),
        _share(row.influence),
    ]
    if row.memory is not None:
        cells += [text.count(row.memory.rows), escape(charge_text(row.charge))]
    if picked:
        return Row(f"<b>{name}</b> <span>● picked</span>", cells, "picked")
    return Row(name, cells)


def reach(steps: Iterable[Step], planned: int, probability: float) -> str:
    """What more reports would show; the number that was asked about is marked."""
    rows: list[Row] = []
    for step in steps:
        cells = [_share(step.detectable), _share(step.half_width)]
        count = text.count(step.reports)
        if step.reports == planned:
            rows.append(Row(f"<b>{count}</b> <span>● planned</span>", cells, "picked"))
        else:
            rows.append(Row(count, cells))
    columns = ["Reports", "Detectable", f"± ({text.level(probability)})"]
    return table("What more reports would show", columns, rows)


def crowd(made_up: Crowd, probability: float) -> str:
    """The chart's figures beside the truth."""
    selection, places = made_up.selection, made_up.selection.places
    rows: list[Row] = []
    for value, truth, is_inside in zip(made_up.values, made_up.truth, made_up.inside, strict=True):
        low, high = selection.low(value), selection.high(value)
        cells = [
            exact(truth, text.percent(truth, places)),
            exact(value.estimate, text.percent(value.estimate, places)),
            f"{text.interval(low, high, places)}\u202f%",
            "inside" if is_inside else "outside",
            "● yes" if value.found else f"◇ {selection.doubt}",
        ]
        rows.append(Row(escape(value.label), cells, "" if value.found else "doubt"))
    interval = f"{text.level(probability)}{', all at once' if selection.simultaneous else ''}"
    columns = ["Value", "True share", "Estimate", interval, "Truth", "Above zero?"]
    return table("The made-up crowd", columns, rows)


def _share(share: float | None) -> str:
    """Three digits of a share, and all of it as the cell's machine-readable `value`."""
    if share is None:
        return "–"
    return exact(share, kept_together(percentage(share)))
