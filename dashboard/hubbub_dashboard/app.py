"""What all pages have around them, and the way from one to another.

Run by `python -m hubbub_dashboard`, again for every viewer and everything a viewer does.
"""

from pathlib import Path
from typing import Final

import streamlit as st

from hubbub_dashboard import frame, markup
from hubbub_dashboard.access.visitors import Standing
from hubbub_dashboard.views import compare, health, over_time, plan, privacy, shares, sign_in

_HERE: Final = Path(__file__).parent

_PAGES: Final = (
    st.Page(shares.page, title="Shares", url_path="shares", default=True),
    st.Page(over_time.page, title="Over time", url_path="over-time"),
    st.Page(compare.page, title="Compare", url_path="compare"),
    st.Page(plan.page, title="Plan", url_path="plan"),
    st.Page(privacy.page, title="Privacy", url_path="privacy"),
    st.Page(health.page, title="Health", url_path="health"),
)

# What they are for whoever may not read them: their links do not break, and that is all.
_CLOSED: Final = tuple(
    st.Page(sign_in.page, title="Hubbub", url_path=page.url_path or None, default=not page.url_path)
    for page in _PAGES
)


def main() -> None:
    st.set_page_config(page_title="Hubbub", page_icon=str(_HERE / "icon.svg"), layout="centered")
    st.html(_HERE / "style.css")
    reader = frame.visitor()
    if reader is not None and reader.standing is not Standing.READER:
        page = st.navigation(_CLOSED, position="hidden")
        st.html(markup.wordmark())
        page.run()
        return
    page = st.navigation(_PAGES, position="top")
    frame.turned_to(page.url_path)
    st.html(markup.wordmark())
    page.run()
    if reader is not None:
        sign_in.way_out(reader)


main()
