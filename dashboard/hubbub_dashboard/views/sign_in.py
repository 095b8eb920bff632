"""Signing in: what those see who may not read, or not yet, and the way out for those who may."""

import streamlit as st

from hubbub_dashboard import frame, markup
from hubbub_dashboard.access import sign_in_text
from hubbub_dashboard.access.visitors import Standing, Visitor


def page() -> None:
    """Ask to sign in, or say why that was not enough. Tells nothing of what is inside."""
    found = frame.visitor() or Visitor(Standing.NOBODY)
    st.html(markup.welcome())
    st.html(markup.state(sign_in_text.status(found)))
    if found.standing in (Standing.NOBODY, Standing.ENDED):
        st.button("Sign in", key="sign in", on_click=st.login)
    else:
        st.button("Sign out", key="sign out", on_click=frame.sign_out)


def way_out(reader: Visitor) -> None:
    """Say who is signed in, below everything else."""
    with st.container(horizontal=True, vertical_alignment="center", key="way-out"):
        st.html(markup.signed_in_as(reader.address), width="content")
        st.button("Sign out", type="tertiary", key="sign out", on_click=frame.sign_out)
