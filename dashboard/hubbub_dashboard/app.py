"""The page: one metric's newest snapshot, live. Run by `python -m hubbub_dashboard`."""

import sys
import time
from pathlib import Path
from typing import Final

import streamlit as st

from hubbub_aggregator.connection import open_channel
from hubbub_dashboard import charts, markup, states, text
from hubbub_dashboard.palette import Theme
from hubbub_dashboard.selection import MAX_ROWS, SHARE_COLUMNS, Order, every_value, select
from hubbub_dashboard.settings import Settings, read_settings
from hubbub_dashboard.source import Estimates, Metric, Reading, Round, RoundState, Source

_HERE: Final = Path(__file__).parent

# Seconds between two looks; None: only when the viewer does something.
_TICKS: Final[dict[str, float | None]] = {"2 s": 2, "5 s": 5, "15 s": 15, "paused": None}

# Below the quickest tick, so that all viewers of a tick share one call to the aggregator.
_MAX_AGE: Final = 1.0

_NEWEST: Final = "newest"


@st.cache_resource(show_spinner=False)
def shared() -> tuple[Settings, Source]:
    """One channel and one memory of snapshots for all viewers of this process."""
    settings = read_settings(sys.argv[1:])
    channel = open_channel(settings.aggregator, settings.keys)
    return settings, Source(channel, max_age=_MAX_AGE, clock=time.time)


def page() -> None:
    """Lay the page out. What lives in the fragment comes again at every tick."""
    st.set_page_config(page_title="Hubbub", page_icon=str(_HERE / "icon.svg"), layout="centered")
    st.html(_HERE / "style.css")
    st.html(markup.wordmark())
    above = st.container()
    tick = st.segmented_control(
        "Look again every",
        list(_TICKS),
        default=next(iter(_TICKS)),
        required=True,
        key="every",
        bind="query-params",
    )
    every = _TICKS[tick]
    with above:
        st.fragment(live, run_every=every)(paused=every is None)


def live(*, paused: bool) -> None:
    """Read the newest snapshot and draw it."""
    settings, source = shared()
    metrics = source.metrics()
    estimates: Reading[Estimates] = Reading()
    if metrics.value:
        metric, round_ = choose(metrics.value)
        estimates = source.estimates(metric, round_)
        st.html(markup.heading(metric.question, metric.name))
    else:
        st.html(markup.welcome())
    now = time.time()
    status = states.status(settings.aggregator, metrics, estimates, now)
    st.html(markup.status_line(status, estimates.value, now, paused=paused))
    if estimates.value is not None:
        if estimates.value.values:
            figures(estimates.value)
        elif estimates.value.n:
            st.html(markup.open_domain(estimates.value.metric))
        st.html(markup.provenance(estimates.value))
        st.html(markup.notes(text.seen_by_aggregator(estimates.value.epsilon)))


def choose(metrics: tuple[Metric, ...]) -> tuple[Metric, Round]:
    """Let the viewer choose a metric, and a round where there is more than one."""
    by_name = {metric.name: metric for metric in metrics}
    with st.container(horizontal=True):
        name = st.selectbox("Metric", list(by_name), key="metric", bind="query-params")
        metric = by_name[name]
        if len(metric.rounds) < 2:
            return metric, metric.newest
        rounds = {str(round_.number): round_ for round_ in reversed(metric.rounds)}
        chosen = st.selectbox(
            "Round", [_NEWEST, *rounds], key="round", bind="query-params", width=140
        )
    return metric, rounds.get(chosen, metric.newest)


def figures(estimates: Estimates) -> None:
    """Draw a snapshot's chart, say what it means, and give the figures as a table."""
    order = Order.LISTED
    if len(estimates.values) <= MAX_ROWS:
        order = st.segmented_control(
            "Order",
            list(Order),
            default=order,
            format_func=lambda order: order.value,
            label_visibility="collapsed",
            required=True,
            key="order",
            bind="query-params",
        )
    selection = select(estimates, order)
    final = estimates.state is RoundState.CLOSED
    theme: Theme = st.context.theme.type or "light"
    st.vega_lite_chart(
        charts.rows(selection),
        charts.specification(len(selection.values), charts.domain(selection), theme),
        alt=charts.alternative(selection, estimates.level),
    )
    st.html(
        markup.notes(
            text.cut(len(selection.values), selection.total),
            text.interval_meaning(estimates.level, simultaneous=selection.simultaneous),
            text.doubt_explained(selection.values, final=final),
            None if final else text.watching(estimates.level),
            text.below_zero(selection.values),
            text.respondents(estimates.n),
        )
    )
    st.html(markup.table(selection, estimates.level))
    if len(selection.values) < selection.total:
        everything(estimates, selection.places)


def everything(estimates: Estimates, places: int) -> None:
    """Offer every value of a large domain, to scroll and search."""
    if not st.toggle(f"All {text.count(len(estimates.values))} values", key="all"):
        return
    share = st.column_config.NumberColumn(format=f"%.{places}f\u202f%%")
    st.dataframe(
        every_value(estimates),
        column_config=dict.fromkeys(SHARE_COLUMNS, share),
        hide_index=True,
    )


page()
