"""What the page's link asks for: the metric, what is chosen within it, and names there are not.

Choices of a few are bound to the link by Streamlit, which leaves out the usual ones and strikes
out what it does not know. Which metric, value or round is the usual one depends on what else is
chosen, and may change: these are written here, once chosen, whether they are the usual ones or not.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import streamlit as st

METRIC: Final = "metric"
"""In the link, and of a viewer also on pages that show none: the metric's name."""
CHOICE: Final = "chosen metric"
"""Of a viewer: what the page's choice shows."""

ROUND: Final = "round"
LEFT: Final = "left"
RIGHT: Final = "right"
OTHER_ROUND: Final = "other-round"
OTHER_METRIC: Final = "other-metric"
OTHER_METRIC_ROUND: Final = "other-metric-round"

COMPARED: Final = (LEFT, RIGHT, OTHER_ROUND, OTHER_METRIC, OTHER_METRIC_ROUND)
"""In the link: what says nothing once something else is compared."""

# Of a viewer: what the link asks for. A tick may tell of the link as it was before a choice.
_LINK: Final = "link"
# Of a viewer: whether anything was chosen on this page.
_CHOSEN: Final = "has chosen"
# Of a viewer: which page is shown, and for which metric the links to the others were drawn.
_PAGE: Final = "page"
_DRAWN_FOR: Final = "links drawn for"


def follow(page: str) -> None:
    """Note which page is shown, and the metric that its link names, if not that of the page before.

    All else runs again without it, at ticks: by then a link says nothing new.
    """
    if page != st.session_state.get(_PAGE):
        st.session_state[_PAGE] = page
        _forget_all(_asked(""))
        st.session_state[_CHOSEN] = False
    st.session_state[_LINK] = st.query_params.to_dict()
    if st.query_params.get(METRIC):
        st.session_state[METRIC] = st.query_params[METRIC]
    # Of another page, perhaps, or of another link.
    for key in (CHOICE, _DRAWN_FOR):
        st.session_state.pop(key, None)
    _forget_all(box(""))


def metric() -> str | None:
    """The name of the metric that is looked at, whether there is one of that name or not."""
    name: str | None = st.session_state.get(METRIC)
    return name


def to_others() -> dict[str, str]:
    """Return what links to other pages ask for, and note that it is drawn."""
    name = st.session_state[_DRAWN_FOR] = metric()
    return {METRIC: name} if name else {}


def keep(name: str) -> None:
    """See to it that the choice, the link, and the links to other pages name this metric."""
    st.session_state[METRIC] = name
    if st.session_state.get(CHOICE) != name:
        st.session_state[CHOICE] = name
    # Not at each look: each time is a step of the browser's way back.
    if st.query_params.get(METRIC) != name:
        st.query_params[METRIC] = name
    if st.session_state.get(_DRAWN_FOR, name) != name:
        st.rerun()


def turn() -> None:
    """The viewer has chosen another metric, which has rounds and values of its own."""
    name = st.session_state[METRIC] = st.session_state[CHOICE]
    _write({METRIC: name}, (ROUND, *COMPARED))


def box(key: str) -> str:
    """Of a viewer: what the box of a choice shows that is written here; `key`: in the link."""
    return f"box: {key}"


def asked(key: str) -> str | None:
    """What the link asks for."""
    link: dict[str, str] = st.session_state[_LINK]
    return link.get(key)


def show(key: str, name: str) -> None:
    """See to it that a choice's box shows this, and that no choice of the viewer's hides it."""
    if st.session_state.get(box(key)) != name:
        st.session_state[box(key)] = name
    if st.session_state[_CHOSEN] and asked(key) not in (None, name):
        _write({key: name}, ())


def choose(key: str, beside: Iterable[str] = (), ends: Iterable[str] = ()) -> None:
    """The viewer has chosen: the link says so.

    `beside`: it names what these show, too, so that they stay. `ends`: nothing is left of these.
    """
    name = st.session_state[box(key)]
    shown = {each: st.session_state.get(box(each)) for each in beside}
    stays = {each: other for each, other in shown.items() if other not in (None, name)}
    _write({**stays, key: name}, (*ends, *(shown.keys() - stays.keys())))


def chosen() -> None:
    """The viewer has chosen what Streamlit writes."""
    _write({}, ())


def _write(named: Mapping[str, str], ended: Iterable[str]) -> None:
    """Change the link in one step of the browser's way back; and nothing was asked for in vain."""
    st.session_state[_CHOSEN] = True
    for key in [key for key in st.session_state if str(key).startswith(_asked(""))]:
        st.session_state[key] = ""
    # An empty list leaves a key out. To delete it would be a step of the way back for itself.
    gone: dict[str, list[str]] = {key: [] for key in set(ended) & st.query_params.keys()}
    if gone or named:
        st.query_params.update({**gone, **named})
    st.session_state[_LINK] = {key: name for key, name in st.query_params.to_dict().items() if name}


def in_vain(key: str, names: Collection[str]) -> str | None:
    """What the link asks for that there is not, also after Streamlit has struck it out of the link.

    Empty once the viewer has chosen anything; None if it has never asked in vain.
    """
    name = asked(key)
    if name and name not in names and not st.session_state[_CHOSEN]:
        st.session_state[_asked(key)] = name
    before: str | None = st.session_state.get(_asked(key))
    return "" if before in names else before


def _forget_all(beginning: str) -> None:
    for key in [key for key in st.session_state if str(key).startswith(beginning)]:
        del st.session_state[key]


def _asked(key: str) -> str:
    return f"asked in vain: {key}"
