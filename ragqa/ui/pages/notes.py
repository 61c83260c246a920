"""Readers' notes on the verdict of a sentence: what it should be, and why. Stored with the record."""

from __future__ import annotations

import streamlit as st

from ragqa.english.words import cut
from ragqa.errors import RagqaError
from ragqa.records.findings import findings_csv, findings_of
from ragqa.records.view import Shown, View, shown
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.types.scores import Verdict
from ragqa.ui import access
from ragqa.ui.state import resources

_SHOULD_BE = (Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNSUPPORTED)
_KEPT = "sentence_notes"  # session key: the hash and notes of the record shown last


def notes_of(record_id: str) -> dict[int, str]:
    """The notes on the sentences of this record, by index; the record is read again only where it has changed."""
    known: tuple[str, dict[int, str]] = st.session_state.get(_KEPT, ("", {}))
    if not record_id:
        return {}
    try:
        store = resources.record_store(Paths.from_env().records)
        sha256 = store.check(record_id)  # others note on a shared record, too
        if known[0] == sha256:
            return known[1]
        feedback = store.load(record_id, is_opened=False).feedback
    except RagqaError:
        return {}
    found = {one.index: one.why or f"should be {one.verdict}" for one in feedback}
    st.session_state[_KEPT] = (sha256, found)
    return found


def draw_note(record_id: str, found: Shown) -> None:
    """A form for a note on a sentence and for its right verdict."""
    if not (record_id and found.verdicts and access.gate().may(Act.FEEDBACK)):
        return
    with st.popover("Note on a sentence"):
        of = {one.index: one for one in found.verdicts}
        text = {one.index: one.sentence.text for one in found.sentences}
        index = st.selectbox(
            "Sentence", list(of), format_func=lambda n: f"{n + 1}. {cut(text.get(n, ''), 60)}", key="feedback_of"
        )
        now = of[index].verdict if of[index].verdict in _SHOULD_BE else Verdict.UNSUPPORTED
        at = _SHOULD_BE.index(now)
        st.radio("It is", _SHOULD_BE, at, format_func=str, key=f"feedback_is_{index}", horizontal=True)
        st.text_input("Note", key=f"feedback_why_{index}", max_chars=500)
        st.button("Keep", key="feedback_keep", on_click=_comment, args=(record_id, index))
        st.caption("`ragqa records feedback` exports these notes as claims for training a verifier.")


def _comment(record_id: str, index: int) -> None:
    verdict = st.session_state[f"feedback_is_{index}"]
    why = str(st.session_state.get(f"feedback_why_{index}", "")).strip()
    with access.told(), access.gate().doing(Act.FEEDBACK, record=record_id, sentence=index + 1, verdict=str(verdict)):
        resources.record_store(Paths.from_env().records).comment(record_id, index, verdict, why)
        st.toast(f"Kept with the record: sentence {index + 1} is {verdict}.")


def draw_findings_bar(view: View) -> None:
    """The bar above a checked text: download the findings, note on a sentence."""
    found = shown(view, view.config.scoring.mode)
    with st.container(horizontal=True, vertical_alignment="center", key="findings"):
        data = findings_csv(findings_of(view, found, notes_of(view.record_id)))
        name = f"ragqa-{view.record_id}.csv"
        st.download_button("Download the findings (CSV)", data, name, "text/csv", on_click="ignore")
        draw_note(view.record_id, found)
