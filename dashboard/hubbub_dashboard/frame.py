"""What pages share: the aggregator they read, how often they look, and what is chosen.

What lives in a fragment comes again at every tick; the rest only when the viewer does something.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from hubbub_aggregator.connection import open_channel
from hubbub_dashboard.answers import Metric, Round, Target
from hubbub_dashboard.settings import Settings, read_settings
from hubbub_dashboard.source import Source

# Seconds between two looks; None: only when the viewer does something.
_TICKS: Final[dict[str, float | None]] = {"2 s": 2, "5 s": 5, "15 s": 15, "paused": None}
# A process draws some six pages a second, for all its viewers together.
_USUAL_TICK: Final = "5 s"

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
        default=_USUAL_TICK,
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


def choose_metric(
    metrics: Sequence[Metric], *, key: str = "metric", label: str = "Metric"
) -> Metric:
    """Let the viewer choose one of the metrics."""
    by_name = {metric.name: metric for metric in metrics}
    return by_name[st.selectbox(label, list(by_name), key=key, bind="query-params")]


def choose_round(metric: Metric, *, key: str = "round", label: str = "Round") -> Round:
    """Let the viewer choose a round of a metric, where there is more than one."""
    if len(metric.rounds) < 2:
        return metric.newest
    rounds = {str(round_.number): round_ for round_ in reversed(metric.rounds)}
    chosen = st.selectbox(label, [_NEWEST, *rounds], key=key, bind="query-params", width=140)
    return rounds.get(chosen, metric.newest)
