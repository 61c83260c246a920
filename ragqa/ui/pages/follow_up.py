"""A further question in the light of an answer: its rewriting is shown, may be changed, and is asked."""

from __future__ import annotations

from urllib.parse import quote

import streamlit as st

from ragqa.conversation import follow_up
from ragqa.errors import RagqaError
from ragqa.records.store import RecordStore
from ragqa.records.view import View
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config
from ragqa.types import FollowUp
from ragqa.ui import access
from ragqa.ui.html.render import notice_html
from ragqa.ui.html.template import text_html

ASKED = "follow_up_asked"  # what is typed, as a widget's key; the rewriting's has the record and the words after it
PENDING = "follow_up"  # the `FollowUp` of the question that is about to be asked


def draw_follow_up(view: View, config: Config, records: RecordStore) -> None:
    """A field for a follow-up to this finished answer and, once something is typed, its rewriting and a button."""
    asked = st.text_input(
        "Ask a follow-up",
        key=f"{ASKED}_{view.record_id}",
        placeholder="Ask a follow-up, as “And what if they do not?”",
        max_chars=1000,
        label_visibility="collapsed",
    ).strip()
    if not asked:
        return
    known: dict[tuple[str, str], FollowUp] = st.session_state.setdefault("rewritings", {})
    place = (view.record_id, asked)
    try:
        if place not in known:
            access.gate().demand(Act.QUESTION, view.config.index)
            with st.spinner("Making it stand alone"):
                known[place] = follow_up(asked, view.record_id, records, config.generation)
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))
        return
    found = known[place]
    key = f"rewriting_{view.record_id}_{asked}"
    st.text_input("Asked as", found.rewritten, key=key, help=f"Rewritten by {found.by}; change it freely.")
    if found.note:
        st.html(notice_html(found.note))
    st.button("Ask it", key="ask_follow_up", on_click=_ask, args=(key, found))


def _ask(key: str, found: FollowUp) -> None:
    st.session_state["question"] = st.session_state[key]
    st.session_state[PENDING] = found
    st.session_state["ask_now"] = "run"


def origin_html(found: FollowUp) -> str:
    """What a question follows, and how it was typed."""
    before = f'<a href="records?record={quote(found.record_id)}" target="_blank">the answer before</a>'
    return f'<p class="rq-fine">A follow-up to {before}, asked as “{text_html(found.asked)}”</p>'
