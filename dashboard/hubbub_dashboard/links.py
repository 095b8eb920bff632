"""What the page's link asks for: the metric, and names that there are not.

Most choices are bound to the link by Streamlit, which leaves out the usual ones and strikes out
what it does not know. Which metric is the usual one may change, so the link always names it.
"""

from collections.abc import Collection
from typing import Final

import streamlit as st

METRIC: Final = "metric"
"""In the link, and of a viewer also on pages that show none: the metric's name."""
CHOICE: Final = "chosen metric"
"""Of a viewer: what the page's choice shows."""

# Of a viewer: which page is shown, and for which metric the links to the others were drawn.
_PAGE: Final = "page"
_DRAWN_FOR: Final = "links drawn for"


def follow(page: str) -> None:
    """Note which page is shown, and the metric that its link names, if not that of the page before.

    All else runs again without it, at ticks: by then a link says nothing new.
    """
    if page != st.session_state.get(_PAGE):
        st.session_state[_PAGE] = page
        for key in [key for key in st.session_state if str(key).startswith(_asked(""))]:
            del st.session_state[key]
    if st.query_params.get(METRIC):
        st.session_state[METRIC] = st.query_params[METRIC]
    # Of another page, perhaps, or of another link.
    for key in (CHOICE, _DRAWN_FOR):
        st.session_state.pop(key, None)


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
    """The viewer has chosen another metric."""
    st.session_state[METRIC] = st.query_params[METRIC] = st.session_state[CHOICE]
    forget(METRIC)


def in_vain(key: str, names: Collection[str]) -> str | None:
    """What the link asks for that there is not, also after Streamlit has struck it out of the link.

    Empty once the viewer has chosen; None if it has never asked in vain.
    """
    asked = st.query_params.get(key)
    if asked and asked not in names:
        st.session_state[_asked(key)] = asked
    before: str | None = st.session_state.get(_asked(key))
    return "" if before in names else before


def forget(key: str) -> None:
    """The viewer has chosen: what was asked for in vain no longer matters."""
    if _asked(key) in st.session_state:
        st.session_state[_asked(key)] = ""


def _asked(key: str) -> str:
    return f"asked in vain: {key}"
