"""What pages share: the aggregator they read, how often they look, and what is chosen.

What lives in a fragment comes again at every tick; the rest only when the viewer does something.
"""

import sys
import time
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Final, Literal, TypeVar

import streamlit as st

from hubbub_aggregator.connection import open_channel
from hubbub_dashboard import links, markup, text
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

_NEWEST: Final = "newest"

T = TypeVar("T")


@st.cache_resource(show_spinner=False)
def shared() -> tuple[Settings, Source]:
    """One channel and one memory of snapshots for all viewers of this process."""
    settings = read_settings(sys.argv[1:])
    channel = open_channel(settings.aggregator, settings.keys)
    return settings, Source(channel, max_age=_MAX_AGE, clock=time.time)


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
    with said(key, [named(option) for option in options], "choices", named(usual)):
        chosen: T | None = st.segmented_control(
            label,
            options,
            default=usual,
            format_func=named,
            label_visibility=label_visibility,
            required=True,
            key=key,
            on_change=links.chosen,
            bind="query-params",
        )
    # A link that ends with `key=` chooses none, required or not.
    return usual if chosen is None else chosen


def choose_subject(label: str, names: Sequence[str], *, key: str, ends: Iterable[str]) -> str:
    """Let the viewer choose one of a few that other choices are about; at first the first.

    `ends`: choices of which another one leaves nothing, and that in one step of the way back.
    """
    asked = links.asked(key)
    chosen = names[0] if asked is None or asked not in names else asked
    links.show(key, chosen)
    with said(key, names, "choices", names[0]):
        st.segmented_control(
            label,
            names,
            required=True,
            key=links.box(key),
            on_change=links.choose,
            args=[key, (), ends],
        )
    return chosen


def choose_listed(
    label: str,
    options: Sequence[str],
    *,
    key: str,
    what: str,
    usual: str,
    beside: Iterable[str] = (),
    ends: Iterable[str] = (),
    width: int | Literal["stretch"] = "stretch",
) -> str:
    """Let the viewer choose one of many; the link says which. `what`: what they are, in words.

    `beside`, `ends`: choices that stay as they are once this one is made, or of which nothing does.
    """
    asked = links.asked(key)
    chosen = usual if asked is None or asked not in options else asked
    links.show(key, chosen)
    with said(key, options, what, usual, width):
        st.selectbox(
            label,
            options,
            key=links.box(key),
            on_change=links.choose,
            args=[key, beside, ends],
            width=width,
        )
    return chosen


def choose_named(label: str, *, key: str, usual: str, beside: Iterable[str] = ()) -> str:
    """Let the viewer name one of more than can be listed; the link says which."""
    chosen = links.asked(key) or usual
    links.show(key, chosen)
    st.text_input(label, key=links.box(key), on_change=links.choose, args=[key, beside])
    return chosen


@contextmanager
def said(
    key: str,
    options: Collection[str],
    what: str,
    instead: str,
    width: int | Literal["stretch"] = "stretch",
) -> Generator[None]:
    """Say below a choice that the link asks for something else than there is."""
    asked = links.in_vain(key, options)
    if asked is None:
        yield
        return
    with st.container(width=width):
        yield
        if asked:
            st.html(markup.notes(text.in_vain(asked, what, instead)))


def target() -> Target:
    """Let the viewer choose whose shares are meant."""
    return choose_one(
        "Shares among", list(Target), Target.RESPONDENTS, key="among", named=lambda each: each.value
    )


def choose_metric(metrics: Sequence[Metric]) -> Metric:
    """Let the viewer choose one of the metrics; at first that of the page before."""
    by_name = {each.name: each for each in _by_figures(metrics)}
    usual = next(iter(by_name))
    named = links.metric()
    with said(links.METRIC, by_name, "metrics", usual):
        links.keep(named if named in by_name else usual)
        st.selectbox("Metric", list(by_name), key=links.CHOICE, on_change=links.turn)
    return by_name[st.session_state[links.CHOICE]]


def choose_other_metric(metrics: Sequence[Metric], what: str) -> Metric:
    """Let the viewer choose a second metric. `what`: what they are, in words."""
    by_name = {each.name: each for each in _by_figures(metrics)}
    chosen = choose_listed(
        "and metric",
        list(by_name),
        key=links.OTHER_METRIC,
        what=what,
        usual=next(iter(by_name)),
        ends=[links.OTHER_METRIC_ROUND],
    )
    return by_name[chosen]


def _by_figures(metrics: Sequence[Metric]) -> Sequence[Metric]:
    """Those first that have figures to show."""
    return sorted(metrics, key=lambda each: not each.values)


def choose_round(metric: Metric, *, key: str = links.ROUND, beside: Iterable[str] = ()) -> Round:
    """Let the viewer choose a round of a metric, where there is more than one."""
    rounds = {str(round_.number): round_ for round_ in reversed(metric.rounds)}
    names = [_NEWEST, *rounds]
    if len(rounds) < 2:
        with said(key, names, "rounds", _NEWEST):
            return metric.newest
    chosen = choose_listed(
        "Round", names, key=key, what="rounds", usual=_NEWEST, beside=beside, width=140
    )
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
