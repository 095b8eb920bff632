"""The pages there are, and the way from one to another."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from hubbub_dashboard import links, markup
from hubbub_dashboard.views import compare, health, over_time, plan, privacy, shares


class Entry(NamedTuple):
    """A page: what it is called, its path, what draws it, and whether that is of one metric."""

    title: str
    path: str
    draw: Callable[[], None]
    of_metric: bool = True


ENTRIES: Final = (
    Entry("Shares", "shares", shares.page),
    Entry("Over time", "over-time", over_time.page),
    Entry("Compare", "compare", compare.page),
    Entry("Plan", "plan", plan.page, of_metric=False),
    Entry("Privacy", "privacy", privacy.page),
    Entry("Health", "health", health.page, of_metric=False),
)


def bar(pages: Sequence[StreamlitPage], here: int) -> None:
    """Whose page it is, and a link to the page of each entry; `here`: the one that is shown.

    Streamlit's own navigation hides its links behind a drawer on a narrow screen, where it stays
    open over the page that was chosen.
    """
    st.html(markup.wordmark(), width="content")
    query = links.to_others()
    with st.container(horizontal=True, key="pages"):
        for entry, page in zip(ENTRIES, pages, strict=True):
            st.page_link(page, width="content", query_params=query if entry.of_metric else None)
        st.html(markup.landmark(here), width="content", unsafe_allow_javascript=True)
