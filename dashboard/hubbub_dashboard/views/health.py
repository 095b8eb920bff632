"""Health: how the aggregator is doing."""

import streamlit as st


def page() -> None:
    st.write("health")
