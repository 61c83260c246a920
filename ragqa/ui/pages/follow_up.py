"""A follow-up question to an answer: its rewritten form is shown, can be changed, and is asked."""

from __future__ import annotations

import streamlit as st

from ragqa.conversation import Turn, follow_up, thread_of
from ragqa.errors import RagqaError
from ragqa.fusion import by_number
from ragqa.library.next_questions import further_questions
from ragqa.plugins import registry
from ragqa.records.store import RecordStore
from ragqa.records.view import View
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import FollowUp
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import RENDER, notice_html
from ragqa.ui.pages.notices import error_shown
from ragqa.ui.state import resources
from ragqa.ui.state.related import related_to

ASKED = "follow_up_asked"  # prefix of the input's key, before the record id
PENDING = "follow_up"  # the question that is about to be asked, with its `FollowUp`
AT_ONCE = "follow_up_at_once"  # the `FollowUp` that is asked without a look at its rewriting


def draw_follow_up(view: View, config: Config, records: RecordStore) -> None:
    """The input for a follow-up to this finished answer, with its rewritten form.

    It is a fragment, so that typing redraws only this input and the answer does not move.
    """
    with st.container(key="follow_up"):
        _box(view, config, records)


def draw_choices(view: View) -> None:
    """Above the answer: the possible meanings of a vague question, or the question as it may be meant."""
    choices = view.answer.choices if view.answer and not view.running else ()
    if not choices or (view.selection and by_number(view.selection)):  # the documents stand above the rule itself
        return
    st.caption("Which one do you mean?" if len(choices) > 1 else "Did you mean:")
    with st.container(key="meanings"):
        for number, question in enumerate(choices):
            st.button(plain_markdown(question), key=f"next_{number}", on_click=_ask_next, args=(question,))


def draw_next(view: View) -> None:
    """After a refusal, a button that quotes or asks anyway; after an answer, questions that follow from its rules."""
    writing, answer = view.config.generation, view.answer
    corpus, paths = view.config.index, Paths.from_env()
    index = resources.corpus_or_none(corpus, paths)
    further = further_questions(view, lambda name: related_to(index, corpus, name, paths)) if index else ()
    with st.container(horizontal=True, vertical_alignment="center", key="next_questions"):
        if answer and answer.is_refusal and registry.takes(writing.generator, "quote_anyway"):
            if not writing.quote_anyway:
                what = "Quote the nearest sentences" if writing.generator == "direct" else "Ask the model"
                st.button(f"{what} anyway", key="quote_now", on_click=_quote_now, args=(view.question,))
        elif answer and answer.choices:
            return
        if further:
            st.caption("Ask next:", width="content")
        for number, question in enumerate(further):
            st.button(plain_markdown(question), key=f"further_{number}", on_click=_ask_next, args=(question,))


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
        is_new = place not in known
        if is_new:
            access.gate().demand(Act.QUESTION, view.config.index)
            with st.spinner("Rewriting it as a question that stands alone"):
                known[place] = follow_up(asked, view.record_id, records, config.generation)
        found = known[place]
        if is_new and found.rewritten == asked and not found.context:  # it stands alone
            st.session_state[AT_ONCE] = found
            st.rerun()
        key = f"rewriting_{view.record_id}_{asked}"
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input("Understood as", found.rewritten, key=key, help=f"Rewritten by {found.by}; change it freely.")
            if st.button(
                "Ask it", key="ask_follow_up", type="primary", on_click=lambda: _ask_next(st.session_state[key], found)
            ):
                st.rerun()
        if found.note:
            st.html(notice_html(found.note))


def _ask_next(question: str, found: FollowUp | None = None) -> None:
    st.session_state["question"], st.session_state["ask_now"] = question, "run"
    st.session_state[PENDING] = question, found


def take_up() -> None:
    """Asks the follow-up that was entered and stands alone; called before the question's field is drawn."""
    if found := st.session_state.pop(AT_ONCE, None):
        _ask_next(found.rewritten, found)


def _quote_now(question: str) -> None:
    st.session_state["set_quote_anyway"] = True
    _ask_next(question)


def draw_thread(found: FollowUp, records: RecordStore) -> None:
    """The earlier questions and answers of the conversation, oldest first, and the follow-up as it was typed."""
    known: dict[str, tuple[Turn, ...]] = st.session_state.setdefault("threads", {})
    if found.record_id not in known:
        try:
            known[found.record_id] = thread_of(found.record_id, records)
        except RagqaError:  # its record is gone, or not this person's
            known[found.record_id] = ()
    st.html(RENDER.turns([(one.question, one.answer) for one in known[found.record_id]], found.asked, found.record_id))
