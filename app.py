"""The web application: `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from ragqa.ui.ask import ask_page
from ragqa.ui.evaluation.page import evaluation_page
from ragqa.ui.records_page import records_page
from ragqa.ui.resources import ICON

st.set_page_config(page_title="ragqa", page_icon=str(ICON), layout="wide", initial_sidebar_state="collapsed")
st.navigation(
    [
        st.Page(ask_page, title="Ask", icon=":material/search:", url_path="ask", default=True),
        st.Page(records_page, title="Records", icon=":material/history:", url_path="records"),
        st.Page(evaluation_page, title="Evaluate", icon=":material/analytics:", url_path="evaluate"),
    ],
    position="top",
).run()
