"""Health: how the aggregator is doing, live."""

import time
from pathlib import Path
from typing import Final

import streamlit as st

from hubbub_dashboard import frame, markup, parts
from hubbub_dashboard.health import health_charts, health_markup, health_states, health_text
from hubbub_dashboard.reading.source import AggregatorStatus

_STYLE: Final = Path(__file__).parent.parent / "health" / "health.css"


def page() -> None:
    st.html(_STYLE)
    st.html(parts.title("How the aggregator is doing"))
    frame.live(draw)


def draw(paused: bool) -> None:
    """Ask how the aggregator is doing and draw it; the last answer if there is none now."""
    settings, source = frame.shared()
    reading, now = source.status(), time.time()
    status = health_states.status(settings.aggregator, reading, now)
    verdict = health_markup.verdict(status, health_states.known_troubles(reading))
    if reading.value is None or reading.answered is None:
        st.html(verdict)
        return
    age = None if paused else now - reading.answered
    facts = health_markup.facts(reading.value.record, age)
    st.html(f"{verdict}{facts}{health_markup.tiles(reading.value)}")
    # In a place of its own: what follows would else be there twice, for a moment, when the first
    # minutes have come.
    with st.container():
        lately(reading.value)
    st.html(health_markup.details(reading.value))


def lately(status: AggregatorStatus) -> None:
    """Draw what came over the last minutes, and offer it as a table."""
    intervals = health_charts.lately(status)
    if not intervals:
        st.html(markup.notes(health_text.NO_HISTORY))
        return
    theme = frame.theme()
    for what in (health_charts.COUNTED, health_charts.REJECTED):
        end = health_charts.top(max(health_charts.rates(status, what)))
        st.vega_lite_chart(
            health_charts.rows(status, what),
            health_charts.specification(what, end, theme),
            alt=health_charts.alternative(status, what),
        )
    st.html(
        markup.notes(
            health_text.history(len(status.record["bundle"]["metrics"])),
            health_text.WHAT_IS_REJECTED,
        )
    )
    if st.toggle("These minutes as a table", key="table", bind="query-params"):
        st.html(health_markup.history_table(intervals))
