"""What pages share: the aggregator they read, how often they look, and what is chosen.

What lives in a fragment comes again at every tick; the rest only when the viewer does something.
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeVar

import streamlit as st

from hubbub_aggregator.connection import open_channel
from hubbub_dashboard.access import visitors
from hubbub_dashboard.access.visitors import SignOuts, Standing, Visitor
from hubbub_dashboard.palette import Theme
from hubbub_dashboard.reading.answers import Metric, Round, Target
from hubbub_dashboard.reading.source import Source
from hubbub_dashboard.settings import Settings, read_settings
from hubbub_dashboard.shares.selection import Order

# Seconds between two looks; None: only when the viewer does something.
_TICKS: Final[dict[str, float | None]] = {"2 s": 2, "5 s": 5, "15 s": 15, "paused": None}
# Live enough for figures that move by the hundred, and light on a phone.
_USUAL_TICK: Final = "5 s"

# Below the quickest tick, so that all viewers of a tick share one call to the aggregator.
_MAX_AGE: Final = 1.0

# Of a viewer: which page is shown, and which metric was chosen last, on which page.
_PAGE: Final = "page"
_CHOSEN: Final = "chosen metric"
_METRIC: Final = "metric"

_NEWEST: Final = "newest"

T = TypeVar("T")


@st.cache_resource(show_spinner=False)
def shared() -> tuple[Settings, Source]:
    """One channel and one memory of snapshots for all viewers of this process."""
    settings = read_settings(sys.argv[1:])
    channel = open_channel(settings.aggregator, settings.keys)
    return settings, Source(channel, max_age=_MAX_AGE, clock=time.time)


def turned_to(page: str) -> None:
    """Note which page is shown."""
    st.session_state[_PAGE] = page


@st.cache_resource(show_spinner=False)
def _sign_outs() -> SignOuts:
    return SignOuts()


def visitor() -> Visitor | None:
    """Who looks, as of now; None where nobody needs to sign in."""
    login = shared()[0].login
    if login is None:
        return None
    return visitors.visitor(st.user.to_dict(), login, _sign_outs(), time.time())


def sign_out() -> None:
    """End the viewer's sign-in here and in every other window that knows it."""
    _sign_outs().add(visitors.sign_in_of(st.user.to_dict()), time.time())
    st.logout()


def live(draw: Callable[[bool], None]) -> None:
    """Draw now, and again at every tick that the viewer chooses below; told if that is paused."""

    def look(paused: bool) -> None:
        # Ticks would go on for somebody who signed out in another window, or whose time is over.
        looks = visitor()
        if looks is not None and looks.standing is not Standing.READER:
            st.rerun()
        draw(paused)

    above = st.container()
    tick = choose_one("Look again every", list(_TICKS), _USUAL_TICK, key="every")
    every = _TICKS[tick]
    with above:
        st.fragment(look, run_every=every)(every is None)


def theme() -> Theme:
    """How the viewer's page looks."""
    return st.context.theme.type or "light"


def choose_one(
    label: str,
    options: Sequence[T],
    usual: T,
    *,
    key: str,
    named: Callable[[T], str] = str,
    label_visibility: Literal["visible", "collapsed"] = "visible",
) -> T:
    """Let the viewer choose one of a few options; the link says which."""
    chosen: T | None = st.segmented_control(
        label,
        options,
        default=usual,
        format_func=named,
        label_visibility=label_visibility,
        required=True,
        key=key,
        bind="query-params",
    )
    # A link that ends with `key=` chooses none, required or not.
    return usual if chosen is None else chosen


def target() -> Target:
    """Let the viewer choose whose shares are meant."""
    return choose_one(
        "Shares among", list(Target), Target.RESPONDENTS, key="among", named=lambda each: each.value
    )


def choose_metric(
    metrics: Sequence[Metric], *, key: str = _METRIC, label: str = "Metric"
) -> Metric:
    """Let the viewer choose one of the metrics; at first that of the page before."""
    # Those first that have figures to show.
    by_name = {each.name: each for each in sorted(metrics, key=lambda each: not each.values)}
    if key != _METRIC:
        return by_name[st.selectbox(label, list(by_name), key=key, bind="query-params")]
    here = st.session_state.get(_PAGE)
    page, before = st.session_state.get(_CHOSEN, (here, None))
    if page != here and before in by_name and key not in st.query_params:
        # The one for this run, the other for the link.
        st.session_state[key] = st.query_params[key] = before
    name: str = st.selectbox(label, list(by_name), key=key, bind="query-params")
    st.session_state[_CHOSEN] = here, name
    return by_name[name]


def choose_round(metric: Metric, *, key: str = "round", label: str = "Round") -> Round:
    """Let the viewer choose a round of a metric, where there is more than one."""
    if len(metric.rounds) < 2:
        return metric.newest
    rounds = {str(round_.number): round_ for round_ in reversed(metric.rounds)}
    chosen = st.selectbox(label, [_NEWEST, *rounds], key=key, bind="query-params", width=140)
    return rounds.get(chosen, metric.newest)


def order() -> Order:
    """Let the viewer choose the order of rows."""
    return choose_one(
        "Order",
        list(Order),
        Order.LISTED,
        key="order",
        named=lambda each: each.value,
        label_visibility="collapsed",
    )


def find() -> str:
    """Let the viewer search a domain that is too long to read."""
    wanted = st.text_input(
        "Find values",
        key="find",
        bind="query-params",
        placeholder="part of a name",
        width=240,
    )
    return wanted.strip()


def files(contents: Iterable[tuple[str, str, bytes]], name: Callable[[str], str]) -> None:
    """Offer files: what their kind is called, their suffix, and what is in them.

    Not made when one is asked for: by then a tick may have forgotten how.
    """
    with st.container(horizontal=True):
        for kind, suffix, content in contents:
            st.download_button(
                f"Download {kind}",
                content,
                name(suffix),
                on_click="ignore",
                key=f"download {suffix}",
            )
