"""Over time: one metric's shares round by round, and what changed, live."""

import time
from collections.abc import Callable
from typing import Any, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hubbub.contract import Metric as Contract
from hubbub.errors import BundleError
from hubbub.schedule import Periodic
from hubbub_dashboard import frame, markup, parts, text
from hubbub_dashboard.over_time import files, line_chart, notes, panels, sentences, states, tables
from hubbub_dashboard.over_time.changes import MOST_PANELS, drawn, marked
from hubbub_dashboard.over_time.reading import Found, read
from hubbub_dashboard.over_time.series import Series
from hubbub_dashboard.reading.answers import Metric
from hubbub_dashboard.reading.memory import Reading
from hubbub_dashboard.reading.source import Source

# Rounds that are shown, to choose from.
_WINDOWS: Final = (12, 30, 100)

# A longer list is nothing to choose from: a name is searched.
_MOST_LISTED: Final = 1_024

_SOON: Final = 0.3


def page() -> None:
    frame.live(draw)


def draw(_: bool) -> None:
    """Read a metric's rounds, say what changed, and draw them."""
    settings, source = frame.shared()
    metrics = source.metrics()
    series: Series | None = None
    failed: Reading[Any] | None = None
    instead = ""
    if metrics.value:
        # Those first that have something to show.
        metric = frame.choose_metric(sorted(metrics.value, key=lambda each: len(each.rounds) < 2))
        contract = contract_of(source, metric)
        schedule = None if contract.value is None else contract.value.schedule
        if contract.value is None:
            failed = contract
        elif isinstance(schedule, Periodic) and metric.values and len(metric.rounds) > 1:
            series, failed = rounds(source, metric, schedule)
        else:
            st.html(markup.heading(metric.question, metric.name))
            instead = in_place_of_rounds(metric, periodic=isinstance(schedule, Periodic))
    else:
        st.html(markup.welcome())
    status = states.status(settings.aggregator, metrics, failed, series, time.time())
    if status is not None:
        st.html(markup.state(status))
    if instead:
        st.html(instead)
    if series is not None:
        figures(series)


def contract_of(source: Source, metric: Metric) -> Reading[Contract]:
    """Return a metric's contract; one that no device would take is as good as none."""
    try:
        return source.contract(metric)
    except BundleError as error:
        return Reading(failure=str(error))


def in_place_of_rounds(metric: Metric, *, periodic: bool) -> str:
    """Return what stands where the rounds would be, as HTML."""
    if not metric.values:
        return markup.open_domain(metric.name)
    return markup.notes(sentences.once(metric.name, periodic=periodic))


def rounds(source: Source, metric: Metric, schedule: Periodic) -> Found:
    """Let the viewer choose which rounds, and whose shares; read them."""
    with st.container(horizontal=True):
        target, most = frame.target(), window(metric)
    st.html(markup.heading(metric.question, metric.name))
    place = st.empty()
    found = read(source, metric, schedule, target=target, most=most, progress=shown_in(place))
    place.empty()
    return found


def window(metric: Metric) -> int:
    """Let the viewer choose how many rounds are shown, where there are many."""
    if len(metric.rounds) <= _WINDOWS[0]:
        return _WINDOWS[0]
    return frame.choose_one("Newest rounds", list(_WINDOWS), _WINDOWS[0], key="newest")


def shown_in(place: DeltaGenerator) -> Callable[[int, int], None]:
    """Return what shows how far a reading is, once it has taken a moment."""
    began = time.monotonic()

    def progress(done: int, calls: int) -> None:
        if time.monotonic() - began > _SOON:
            place.progress(done / calls, f"Reading rounds: {done * 100 // calls}\u202f%")

    return progress


def figures(series: Series) -> None:
    """Say what changed, draw it, and give the figures as tables."""
    wanted, find = choose_values(series)
    shown = drawn(series, wanted, find)
    st.html(
        parts.answer(
            sentences.answer(series, shown),
            *filter(
                None,
                (
                    sentences.limit(series),
                    sentences.before_that(series),
                    sentences.of_last_step(series),
                ),
            ),
        )
    )
    if series.drawn and shown:
        draw_panels(series, shown)
    st.html(
        markup.notes(
            notes.undrawn(series, shown, find),
            notes.beyond(series, shown) if shown and series.drawn else None,
            *notes.gaps(series),
            notes.earlier(series),
            notes.still_open(series),
            *notes.revisions(series),
            notes.sureness(series),
            notes.bands(),
            notes.whose(series.target),
        )
    )
    if not series.drawn:
        return
    changes = len(marked(series))
    if changes:
        st.html(parts.part("Changes that stand out") + tables.changes(series, shown))
        st.html(markup.notes(notes.cut(changes)))
    if shown:
        st.html(parts.part("Round by round") + tables.rounds(series, shown))
    everything(series, shown)


def choose_values(series: Series) -> tuple[tuple[str, ...], str]:
    """Let the viewer choose which values have a panel; by name, or by part of it."""
    if len(series.values) > _MOST_LISTED:
        return (), frame.find()
    usual = "those that changed most surely, and the largest"
    # Not "values", nor "rounds" above: the page Plan has numbers of these names.
    with frame.said("drawn", series.values, "values", usual):
        wanted = st.multiselect(
            "Values drawn",
            series.values,
            key="drawn",
            bind="query-params",
            max_selections=MOST_PANELS,
            placeholder=usual,
        )
    return tuple(wanted), ""


def draw_panels(series: Series, shown: tuple[int, ...]) -> None:
    theme = frame.theme()
    newest, _ = series.drawn[-1]
    rounds = series.points[0].number, series.points[-1].number
    scales = panels.scales(series, shown)
    for place, (value, scale) in enumerate(zip(shown, scales, strict=True), 1):
        st.html(parts.panel(series.values[value], sentences.share(series, newest, value)))
        st.vega_lite_chart(
            panels.rows(series, value),
            line_chart.specification(
                scale, rounds, series.schedule, theme, names=place == len(shown)
            ),
            alt=sentences.alternative(series, value),
        )


def everything(series: Series, shown: tuple[int, ...]) -> None:
    """Offer every value of every round, in a table to scroll and search, and as files."""
    total = len(series.values)
    if len(shown) < total:
        if not st.toggle(f"All {text.count(total)} values", key="every-value", bind="query-params"):
            return
        share = st.column_config.NumberColumn(format=f"%.{series.places}f\u202f%%")
        columns = tables.every_value(series)
        st.dataframe(
            columns,
            column_config={name: share for name in columns if isinstance(columns[name][0], float)},
            hide_index=True,
        )
    frame.files(
        (
            ("CSV", "csv", files.csv_file(series)),
            ("Parquet", "parquet", files.parquet_file(series)),
        ),
        lambda suffix: files.name(series, suffix),
    )
