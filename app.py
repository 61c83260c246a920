"""The web application, `streamlit run app.py`. The server imports ``app`` from it, and runs it to draw the page."""

from __future__ import annotations

from typing import Literal

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from ragqa.errors import RagqaError
from ragqa.server.access.policy import Act
from ragqa.ui import access
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.ask import ask_page, check_page
from ragqa.ui.pages.audit import audit_page
from ragqa.ui.pages.compare import compare_page
from ragqa.ui.pages.dataset import dataset_page
from ragqa.ui.pages.evaluation.page import evaluation_page
from ragqa.ui.pages.gaps import gaps_page
from ragqa.ui.pages.library import library_page
from ragqa.ui.pages.reader import reader_page
from ragqa.ui.pages.records import records_page
from ragqa.ui.pages.register import register_page
from ragqa.ui.pages.sweep import sweep_page
from ragqa.ui.serving import lifespan, middleware, routes
from ragqa.ui.state.resources import ICON, style

Visibility = Literal["visible", "hidden"]
READ, SEARCH = ":material/menu_book:", ":material/search:"


def draw() -> None:
    """Draws the page of this visit, with the parts that the person may use."""
    st.set_page_config(page_title="ragqa", page_icon=str(ICON), layout="wide", initial_sidebar_state="collapsed")
    st.html(style())
    if not access.enter():
        st.stop()
    may = access.gate().may
    asks = may(Act.QUESTION)
    reads = asks and not may(Act.UPLOAD)  # else documents are opened from the library
    shown: Visibility = "visible" if reads else "hidden"
    other: Visibility = "visible" if (st.context.url or "").endswith("/ask") else "hidden"
    own: Visibility = "hidden" if other == "visible" else "visible"
    first = [  # of the two addresses of Ask the one that is open is in the navigation, so that it is marked there
        (Act.QUESTION, st.Page(ask_page, title="Ask", icon=SEARCH, default=True, visibility=own)),
        (Act.QUESTION, st.Page(ask_page, title="Ask", icon=SEARCH, url_path="ask", visibility=other)),
        (Act.CHECK, st.Page(check_page, title="Check", icon=":material/fact_check:", url_path="check")),
        (Act.UPLOAD, st.Page(library_page, title="Library", icon=":material/library_books:", url_path="library")),
        (Act.READ, st.Page(reader_page, title="Read", icon=READ, url_path="read", visibility=shown)),
        (Act.READ, st.Page(register_page, title="Register", url_path="register", visibility="hidden")),
        (Act.READ, st.Page(gaps_page, title="Gaps", url_path="gaps", visibility="hidden")),
        (Act.READ, st.Page(records_page, title="History", icon=":material/history:", url_path="records")),
    ]
    measuring, making = "evaluate", "dataset"  # addresses stay when a page is renamed
    lab = [
        (Act.READ, st.Page(compare_page, title="Compare", icon=":material/compare:", url_path="compare")),
        (Act.SWEEP, st.Page(sweep_page, title="Sweep", icon=":material/grid_on:", url_path="sweep")),
        (
            Act.EVALUATION,
            st.Page(evaluation_page, title="Benchmarks", icon=":material/analytics:", url_path=measuring),
        ),
        (Act.EVALUATION, st.Page(dataset_page, title="Data sets", icon=":material/dataset:", url_path=making)),
    ]
    if access.is_guarded():
        first.append((Act.AUDIT, st.Page(audit_page, title="Audit", icon=":material/policy:", url_path="audit")))
    if not asks:  # then the Read page opens first
        first.insert(0, (Act.READ, st.Page(reader_page, title="Read", icon=READ, default=True)))
    sections = {name: [page for act, page in pages if may(act)] for name, pages in (("", first), ("Lab", lab))}
    page = st.navigation({name: pages for name, pages in sections.items() if pages}, position="top")
    st.session_state["came_from"], st.session_state["page"] = st.session_state.get("page"), page.url_path
    try:
        page.run()
        _bar(sections[""], sections["Lab"], page)
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))


def _bar(pages: list[StreamlitPage], lab: list[StreamlitPage], now: StreamlitPage) -> None:
    """The navigation at the bottom of a phone, where the one at the top is collapsed; both mark where one is."""
    where = "in_lab" if now in lab else "in_library" if now.visibility == "hidden" else None
    with st.container(key=where), st.container(key="phone", horizontal=True, gap="small"):
        for page in pages:
            if page.visibility == "visible":
                st.page_link(page)
        if lab:
            with st.popover("Lab", type="tertiary"):
                for page in lab:
                    st.page_link(page)


if __name__ == "__main__":
    draw()
else:
    app = st.App(__file__, routes=routes(), middleware=middleware(), lifespan=lifespan)
