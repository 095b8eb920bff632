"""What all pages have around them, and the way from one to another.

Run by `python -m hubbub_dashboard`, again for every viewer and everything a viewer does.
"""

from pathlib import Path
from typing import Final

import streamlit as st

from hubbub_dashboard import frame, links, markup
from hubbub_dashboard.access.visitors import Standing
from hubbub_dashboard.navigation import ENTRIES, bar
from hubbub_dashboard.views import sign_in

_HERE: Final = Path(__file__).parent

# The first is at the page's own address, too. Streamlit would link to nothing from other pages.
_START: Final = st.Page(ENTRIES[0].draw, title=ENTRIES[0].title, default=True)
_PAGES: Final = tuple(st.Page(each.draw, title=each.title, url_path=each.path) for each in ENTRIES)

# What they are for whoever may not read them: their links do not break, and that is all.
_CLOSED: Final = tuple(
    st.Page(sign_in.page, title="Hubbub", url_path=page.url_path or None, default=not page.url_path)
    for page in (_START, *_PAGES)
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
    page = st.navigation([_START, *_PAGES], position="hidden")
    # At the page's own address it is that which the first link leads to.
    pages = _PAGES if page.url_path else (_START, *_PAGES[1:])
    here = pages.index(page)
    links.follow(ENTRIES[here].path)
    head = st.container(horizontal=True, key="bar")
    if not ENTRIES[here].of_metric:
        with head:
            bar(pages, here)
    page.run()
    if ENTRIES[here].of_metric:
        # Only now it is certain which metric the other pages are to show.
        with head:
            bar(pages, here)
    if reader is not None:
        sign_in.way_out(reader)


main()
