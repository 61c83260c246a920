"""A follow-up question to an answer: its rewritten form is shown, can be changed, and is asked."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ragqa.conversation import Turn, follow_up, thread_of
from ragqa.errors import RagqaError
from ragqa.library.document import section_question
from ragqa.records.store import RecordStore
from ragqa.records.view import View
from ragqa.records.words import cut
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config
from ragqa.types import FollowUp
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import RENDER, notice_html
from ragqa.ui.pages.notices import error_shown

ASKED = "follow_up_asked"  # prefix of the input's key, before the record id
SUGGESTED = 3
PENDING = "follow_up"  # the `FollowUp` of the question that is about to be asked


def draw_follow_up(view: View, config: Config, records: RecordStore) -> None:
    """The input for a follow-up to this finished answer, with its rewritten form.

    It is a fragment, so that typing redraws only this input and the answer does not move.
    """
    with st.container(key="follow_up"):
        _box(view, config, records)


def draw_next(view: View) -> None:
    """The possible meanings of a vague question, else questions about the sections of the evidence."""
    asked = [section_question(one) for one in (view.selection.passages if view.selection else ())]
    further: Sequence[str] = [one for one in dict.fromkeys(asked) if one and one != view.question][:SUGGESTED]
    if view.answer and view.answer.choices:
        further = view.answer.choices
        st.caption("The question can mean several things. Which one do you mean?")
    with st.container(horizontal=True, key="next_questions"):
        for number, question in enumerate(further):
            label = plain_markdown(cut(question, 80))
            st.button(label, key=f"next_{number}", type="tertiary", on_click=_ask_next, args=(question,))


def _box(view: View, config: Config, records: RecordStore) -> None:
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
    with error_shown():
        if place not in known:
            access.gate().demand(Act.QUESTION, view.config.index)
            with st.spinner("Rewriting it as a question that stands alone"):
                known[place] = follow_up(asked, view.record_id, records, config.generation)
        found = known[place]
        key = f"rewriting_{view.record_id}_{asked}"
        st.text_input("Understood as", found.rewritten, key=key, help=f"Rewritten by {found.by}; change it freely.")
        if found.note:
            st.html(notice_html(found.note))
        if st.button("Ask it", key="ask_follow_up", on_click=_ask, args=(key, found)):
            st.rerun()


def _ask_next(question: str) -> None:
    st.session_state["question"], st.session_state["ask_now"] = question, "run"


def _ask(key: str, found: FollowUp) -> None:
    st.session_state["question"] = st.session_state[key]
    st.session_state[PENDING] = found
    st.session_state["ask_now"] = "run"


def draw_thread(found: FollowUp, records: RecordStore) -> None:
    """The earlier questions and answers of the conversation, oldest first, and the follow-up as it was typed."""
    known: dict[str, tuple[Turn, ...]] = st.session_state.setdefault("threads", {})
    if found.record_id not in known:
        try:
            known[found.record_id] = thread_of(found.record_id, records)
        except RagqaError:  # its record is gone, or not this person's
            known[found.record_id] = ()
    st.html(RENDER.turns([(one.question, one.answer) for one in known[found.record_id]], found.asked, found.record_id))
