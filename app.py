"""The web application, `streamlit run app.py`: the server imports it for ``app``, and runs it to draw the page."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from ragqa.errors import AccessError
from ragqa.server.access.policy import Act
from ragqa.ui import access
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.ask import ask_page, check_page
from ragqa.ui.pages.audit import audit_page
from ragqa.ui.pages.compare import compare_page
from ragqa.ui.pages.dataset import dataset_page
from ragqa.ui.pages.evaluation.page import evaluation_page
from ragqa.ui.pages.library import library_page
from ragqa.ui.pages.reader import reader_page
from ragqa.ui.pages.records import records_page
from ragqa.ui.pages.sweep import sweep_page
from ragqa.ui.serving import lifespan, middleware, routes
from ragqa.ui.state.resources import ICON, style

READ = ":material/menu_book:"


def draw() -> None:
    """The page of this visit, as far as its person may see it."""
    st.set_page_config(page_title="ragqa", page_icon=str(ICON), layout="wide", initial_sidebar_state="collapsed")
    if not access.enter():
        st.html(style())
        st.stop()
    may = access.gate().may
    asks = may(Act.QUESTION)
    shown: Literal["visible", "hidden"] = "visible" if asks else "hidden"
    pages = [
        (Act.QUESTION, st.Page(ask_page, title="Ask", icon=":material/search:", default=True)),
        (Act.QUESTION, st.Page(ask_page, title="Ask", url_path="ask", visibility="hidden")),
        (Act.CHECK, st.Page(check_page, title="Check a text", icon=":material/fact_check:", url_path="check")),
        (Act.READ, st.Page(compare_page, title="Compare", icon=":material/compare:", url_path="compare")),
        (Act.SWEEP, st.Page(sweep_page, title="Sweep", icon=":material/grid_on:", url_path="sweep")),
        (Act.UPLOAD, st.Page(library_page, title="Library", icon=":material/library_books:", url_path="library")),
        (
            Act.READ,
            st.Page(reader_page, title="Read", icon=READ, url_path="read", visibility=shown),
        ),
        (Act.READ, st.Page(records_page, title="Records", icon=":material/history:", url_path="records")),
        (Act.EVALUATION, st.Page(evaluation_page, title="Evaluate", icon=":material/analytics:", url_path="evaluate")),
        (Act.EVALUATION, st.Page(dataset_page, title="Data set", icon=":material/dataset:", url_path="dataset")),
    ]
    if access.is_guarded():
        pages.append((Act.AUDIT, st.Page(audit_page, title="Audit", icon=":material/policy:", url_path="audit")))
    if not asks:  # the page that opens first is another one
        pages.insert(0, (Act.READ, st.Page(reader_page, title="Read", icon=READ, default=True)))
    page = st.navigation([page for act, page in pages if may(act)], position="top")
    st.session_state["came_from"], st.session_state["page"] = st.session_state.get("page"), page.url_path
    try:
        page.run()
    except AccessError as error:
        st.html(notice_html(str(error), "bad"))


if __name__ == "__main__":
    draw()
else:
    app = st.App(__file__, routes=routes(), middleware=middleware(), lifespan=lifespan)
