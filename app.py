"""The web application: `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from ragqa.ui.ask import ask_page, check_page
from ragqa.ui.compare_page import compare_page
from ragqa.ui.evaluation.page import evaluation_page
from ragqa.ui.library import library_page
from ragqa.ui.reader import reader_page
from ragqa.ui.records_page import records_page
from ragqa.ui.resources import ICON
from ragqa.ui.sweep_page import sweep_page

st.set_page_config(page_title="ragqa", page_icon=str(ICON), layout="wide", initial_sidebar_state="collapsed")
page = st.navigation(
    [
        st.Page(ask_page, title="Ask", icon=":material/search:", default=True),
        st.Page(ask_page, title="Ask", url_path="ask", visibility="hidden"),
        st.Page(check_page, title="Check a text", icon=":material/fact_check:", url_path="check"),
        st.Page(compare_page, title="Compare", icon=":material/compare:", url_path="compare"),
        st.Page(sweep_page, title="Sweep", icon=":material/grid_on:", url_path="sweep"),
        st.Page(library_page, title="Library", icon=":material/library_books:", url_path="library"),
        st.Page(reader_page, title="Read", icon=":material/menu_book:", url_path="read"),
        st.Page(records_page, title="Records", icon=":material/history:", url_path="records"),
        st.Page(evaluation_page, title="Evaluate", icon=":material/analytics:", url_path="evaluate"),
    ],
    position="top",
)
st.session_state["came_from"], st.session_state["page"] = st.session_state.get("page"), page.url_path
page.run()
