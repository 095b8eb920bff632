"""Shares: one metric's newest snapshot, live."""

import time

import streamlit as st

from hubbub_dashboard import charts, downloads, frame, markup, states, text
from hubbub_dashboard.answers import Estimates, RoundState
from hubbub_dashboard.memory import Reading
from hubbub_dashboard.palette import Theme
from hubbub_dashboard.selection import (
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
    if metrics.value:
        with st.container(horizontal=True):
            metric = frame.choose_metric(metrics.value)
            round_ = frame.choose_round(metric)
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
        st.html(markup.notes(text.seen_by_aggregator(estimates.value.epsilon)))


def files(estimates: Estimates) -> None:
    """Offer the snapshot as files.

    Not made when one is asked for: by then a tick may have forgotten how.
    """
    with st.container(horizontal=True):
        for label, suffix, make in (
            ("CSV", "csv", downloads.csv_file),
            ("Parquet", "parquet", downloads.parquet_file),
        ):
            st.download_button(
                f"Download {label}",
                make(estimates),
                downloads.name(estimates, suffix),
                on_click="ignore",
                key=f"download {suffix}",
            )


def figures(estimates: Estimates) -> None:
    """Draw a snapshot's chart, say what it means, and give the figures as a table."""
    order, whole = views(estimates)
    selection = select(estimates, order, whole=whole)
    final = estimates.state is RoundState.CLOSED
    theme: Theme = st.context.theme.type or "light"
    st.vega_lite_chart(
        charts.rows(selection),
        charts.specification(
            len(selection.values), charts.domain(selection), theme, whole=selection.whole
        ),
        alt=charts.alternative(selection, estimates.level),
    )
    st.html(
        markup.notes(
            text.cut(len(selection.values), selection.total),
            *(said_of_parts() if whole else said_of_intervals(estimates, selection, final=final)),
            text.whose(estimates.target, estimates.n),
        )
    )
    st.html(markup.table(selection, estimates.level))
    if len(selection.values) == selection.total or everything(estimates, selection.places):
        files(estimates)


def views(estimates: Estimates) -> tuple[Order, bool]:
    """Let the viewer choose the order, and whether shares are drawn as parts of a whole."""
    order = Order.LISTED
    with st.container(horizontal=True, vertical_alignment="center"):
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
        whole = st.toggle("As parts of a whole", key="whole", bind="query-params")
    return order, whole


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
    wanted: bool = st.toggle(f"All {text.count(len(estimates.values))} values", key="all")
    if not wanted:
        return False
    share = st.column_config.NumberColumn(format=f"%.{places}f\u202f%%")
    st.dataframe(
        every_value(estimates),
        column_config=dict.fromkeys(SHARE_COLUMNS, share),
        hide_index=True,
    )
    return True
