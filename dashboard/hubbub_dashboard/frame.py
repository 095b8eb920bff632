"""What pages share: the aggregator they read, how often they look, and what is chosen.

What lives in a fragment comes again at every tick; the rest only when the viewer does something.
"""

import sys
import time
from collections.abc import Callable
from typing import Final

import streamlit as st

from hubbub_aggregator.connection import open_channel
from hubbub_dashboard.settings import Settings, read_settings
from hubbub_dashboard.source import Metric, Round, Source, Target

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


def live(draw: Callable[[bool], None]) -> None:
    """Draw now, and again at every tick that the viewer chooses below; told if that is paused."""
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
        st.fragment(draw, run_every=every)(every is None)


def target() -> Target:
    """Let the viewer choose whose shares are meant."""
    chosen: Target = st.segmented_control(
        "Shares among",
        list(Target),
        default=Target.RESPONDENTS,
        format_func=lambda target: target.value,
        required=True,
        key="among",
        bind="query-params",
    )
    return chosen


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
