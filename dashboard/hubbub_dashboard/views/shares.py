"""Shares: one metric's newest snapshot, live."""

import time

import streamlit as st

from hubbub_dashboard import downloads, frame, interval_chart, markup, states, text
from hubbub_dashboard.reading.answers import Estimates, RoundState
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.shares import findings, share_chart
from hubbub_dashboard.shares.selection import (
    MAX_ROWS,
    SHARE_COLUMNS,
    Order,
    Selection,
    every_value,
    select,
)


def page() -> None:
    frame.live(draw)


def draw(paused: bool) -> None:
    """Read the newest snapshot and draw it."""
    settings, source = frame.shared()
    metrics = source.metrics()
    estimates: Reading[Estimates] = Reading()
    rounds = 1
    if metrics.value:
        with st.container(horizontal=True):
            metric = frame.choose_metric(metrics.value)
            round_ = frame.choose_round(metric)
        rounds = len(metric.rounds)
        target = frame.target()
        estimates = source.estimates(metric, round_, target)
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
        st.html(markup.notes(text.seen_by_aggregator(estimates.value.epsilon, rounds)))


def figures(estimates: Estimates) -> None:
    """Draw a snapshot's chart, say what it means, and give the figures as a table."""
    st.html(markup.findings(estimates))
    order, whole, find = views(estimates)
    selection = select(estimates, order, whole=whole, find=find)
    shown = len(selection.values)
    left_out = text.left_out(shown, selection.matches, selection.total, find)
    if not shown:
        st.html(markup.notes(left_out))
        return
    final = estimates.state is RoundState.CLOSED
    theme = frame.theme()
    st.vega_lite_chart(
        share_chart.rows(selection),
        interval_chart.specification(
            shown, share_chart.domain(selection), theme, whole=selection.whole
        ),
        alt=share_chart.alternative(selection, estimates.level),
    )
    st.html(
        markup.notes(
            left_out,
            findings.of_match(selection, find),
            *(said_of_parts() if whole else said_of_intervals(estimates, selection, final=final)),
            text.whose(estimates.target, estimates.n),
        )
    )
    st.html(markup.table(selection, estimates.level))
    if shown == selection.total or everything(estimates, selection.places):
        frame.files(
            (
                ("CSV", "csv", downloads.csv_file(estimates)),
                ("Parquet", "parquet", downloads.parquet_file(estimates)),
            ),
            lambda suffix: downloads.name(estimates, suffix),
        )


def views(estimates: Estimates) -> tuple[Order, bool, str]:
    """Let the viewer choose the order, or search, and whether shares are parts of a whole."""
    order, find = Order.LARGEST, ""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(estimates.values) <= MAX_ROWS:
            order = frame.order()
        else:
            find = frame.find()
        whole = st.toggle("As parts of a whole", key="whole", bind="query-params")
    return order, whole, find


def said_of_parts() -> list[str | None]:
    return [text.parts_of_a_whole()]


def said_of_intervals(
    estimates: Estimates, selection: Selection, *, final: bool
) -> list[str | None]:
    return [
        text.interval_meaning(estimates.level, simultaneous=selection.simultaneous),
        text.doubt_explained(selection.values, final=final),
        None if final else text.watching(estimates.level),
        text.below_zero(selection.values),
    ]


def everything(estimates: Estimates, places: int) -> bool:
    """Offer every value of a large domain, to scroll and search; whether that is wanted."""
    wanted: bool = st.toggle(
        f"All {text.count(len(estimates.values))} values", key="every-value", bind="query-params"
    )
    if not wanted:
        return False
    share = st.column_config.NumberColumn(format=f"%.{places}f\u202f%%")
    st.dataframe(
        every_value(estimates),
        column_config=dict.fromkeys(SHARE_COLUMNS, share),
        hide_index=True,
    )
    return True
