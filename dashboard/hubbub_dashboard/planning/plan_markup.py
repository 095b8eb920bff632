"""The plan's own HTML. Pure; every text from outside is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from hubbub.exact import charge_text
from hubbub_aggregator.commands.plan_text import percentage
from hubbub_aggregator.planning.choice import chosen
from hubbub_aggregator.planning.planner import Plan, Prospect
from hubbub_dashboard import text
from hubbub_dashboard.planning.made_up import Crowd
from hubbub_dashboard.planning.reach import Step


def heading(title: str, purpose: str) -> str:
    """The page's name, and what it is for."""
    return f'<header class="hubbub"><h1>{escape(title)}</h1><p>{escape(purpose)}</p></header>'


def answer(sentence: str, *more: str) -> str:
    """The answer, large, and what else follows from the same figures."""
    rest = "".join(f"<p>{_narrow(escape(said))}</p>" for said in more if said)
    return (
        f'<section class="hubbub plan-answer" aria-live="polite">'
        f"<p><strong>{_narrow(escape(sentence))}</strong></p>{rest}</section>"
    )


def section(title: str, *sentences: str) -> str:
    """A part's heading, and what is said below it."""
    said = "".join(f"<p>{_narrow(escape(sentence))}</p>" for sentence in sentences)
    return f'<section class="hubbub plan-part"><h2>{escape(title)}</h2>{said}</section>'


def sentence(said: str) -> str:
    """One sentence by itself."""
    return f'<p class="hubbub plan-sentence" aria-live="polite">{_narrow(escape(said))}</p>'


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
    return _table("Mechanisms", columns, rows)


def _prospect(row: Prospect, *, picked: bool) -> tuple[str, list[str], str]:
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
        return f"<b>{name}</b> <span>● picked</span>", cells, "picked"
    return name, cells, ""


def reach(steps: Iterable[Step], planned: int, probability: float) -> str:
    """What more reports would show; the number that was asked about is marked."""
    rows: list[tuple[str, list[str], str]] = []
    for step in steps:
        cells = [_share(step.detectable), _share(step.half_width)]
        count = text.count(step.reports)
        if step.reports == planned:
            rows.append((f"<b>{count}</b> <span>● planned</span>", cells, "picked"))
        else:
            rows.append((count, cells, ""))
    columns = ["Reports", "Detectable", f"± ({text.level(probability)})"]
    return _table("What more reports would show", columns, rows)


def crowd(made_up: Crowd, probability: float) -> str:
    """The chart's figures beside the truth."""
    selection, places = made_up.selection, made_up.selection.places
    rows: list[tuple[str, list[str], str]] = []
    for value, truth, is_inside in zip(made_up.values, made_up.truth, made_up.inside, strict=True):
        low, high = selection.low(value), selection.high(value)
        cells = [
            f'<data value="{truth!r}">{text.percent(truth, places)}</data>',
            f'<data value="{value.estimate!r}">{text.percent(value.estimate, places)}</data>',
            f"{text.interval(low, high, places)}\u202f%",
            "inside" if is_inside else "outside",
            "● yes" if value.found else f"◇ {selection.doubt}",
        ]
        rows.append((escape(value.label), cells, "" if value.found else "doubt"))
    interval = f"{text.level(probability)}{', all at once' if selection.simultaneous else ''}"
    columns = ["Value", "True share", "Estimate", interval, "Truth", "Above zero?"]
    return _table("The made-up crowd", columns, rows)


def _table(name: str, columns: Sequence[str], rows: Iterable[tuple[str, list[str], str]]) -> str:
    """Rows are a heading, cells and a class, as HTML."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join(
        f'<tr class="{kind}"><th scope="row" dir="auto">{first}</th>'
        f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for first, cells, kind in rows
    )
    return (
        f'<div class="hubbub scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _share(share: float | None) -> str:
    """Three digits of a share, and all of it as the cell's machine-readable `value`."""
    if share is None:
        return "–"
    return f'<data value="{share!r}">{_narrow(percentage(share))}</data>'


def _narrow(said: str) -> str:
    """Keep a number and what it belongs to on one line, with the page's space before a unit."""
    return said.replace(" %", "\u202f%").replace("ε = ", "ε\u00a0=\u00a0")
