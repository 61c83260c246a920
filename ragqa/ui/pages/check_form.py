"""The choice of a text to check: pasted, a document, an example, or one answer of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st

from ragqa.corpus.demo import CHECKED_EXAMPLES
from ragqa.corpus.documents import Reader
from ragqa.corpus.documents.kinds import kind_of
from ragqa.corpus.documents.process import MAX_ANSWERS_BYTES
from ragqa.corpus.documents.sheets import decoded
from ragqa.errors import RagqaError
from ragqa.pipeline import MAX_TEXT_CHARS
from ragqa.ui.pages.notices import error_shown

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

MOST_ITEMS = 2_000  # answers of a file that are offered
FILE = "from_file"  # session key: whether the popover for files is open
_READ = "checked_read"  # session key: a file's id and the texts read from it
_KINDS = ("pdf", "docx", "docm", "html", "htm", "txt", "md", "xlsx", "csv", "json", "jsonl")

Check = Callable[[str, str], None]  # called with a text and the question it answers


def check_form(ask: Callable[[], None]) -> None:
    """The form: the text, optionally the question it answers, and the button."""
    with st.form("check_form", border=False):
        st.text_area(
            "Text to check",
            key="text",
            height=96,
            placeholder="Paste an answer, a vendor's reply, a paragraph of a policy. Ctrl+Enter checks it.",
            label_visibility="collapsed",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.text_input(
                "The question it answers",
                key="text_question",
                placeholder="The question it answers, if there is one",
                label_visibility="collapsed",
            )
            st.form_submit_button("Check", type="primary", on_click=ask)


def file_choice(check: Check) -> None:
    """The choice of a document, or of one answer from a file."""
    with st.popover("From a file", key=FILE, on_change="rerun"):
        file = st.file_uploader(
            "A document, or answers as JSON", type=_KINDS, key="checked_file", max_upload_size=MAX_ANSWERS_BYTES >> 20
        )
        if file is None:
            words = "Answers: a list of {Question, RetrievedPassages, Answer}."
            st.caption(f"At most {MAX_TEXT_CHARS:,} characters. {words}")
            return
        with error_shown():
            texts = _texts(file)
            chosen = 0
            if len(texts) > 1:
                names = [f"{number}. {question or answer}"[:90] for number, question, answer in texts]
                chosen = st.selectbox("Answer", range(len(texts)), format_func=names.__getitem__, key="checked_item")
            _, question, answer = texts[chosen]
            st.button("Check it", key="check_file", on_click=check, args=(answer, question))


def _texts(file: UploadedFile) -> list[tuple[int, str, str]]:
    """(number, question, text) of each text in a file, which is read once. Raises CorpusError."""
    known = st.session_state.get(_READ)
    if known is None or known[0] != file.file_id:
        known = st.session_state[_READ] = (file.file_id, _read(file.name, file.getvalue()))
    texts: list[tuple[int, str, str]] | RagqaError = known[1]
    if isinstance(texts, RagqaError):
        raise texts
    return texts


def _read(name: str, content: bytes) -> list[tuple[int, str, str]] | RagqaError:
    with Reader(seconds=60) as reader:
        try:
            if name.lower().endswith(("json", "jsonl")):
                return reader.answers(content, name, MOST_ITEMS)
            if kind_of(name) == "text":
                return [(1, "", decoded(content))]
            return [(1, "", reader.text(content, name))]
        except RagqaError as error:
            return error


def checked_examples(index: str, heading: str, check: Check) -> bool:
    """Buttons for this corpus's example texts; returns whether one was chosen."""
    chosen = False
    examples = CHECKED_EXAMPLES.get(index, ())
    if examples:
        st.caption(heading)
    for example in examples:
        key, given = f"checked_{example.verdict}_{index}", (example.text, example.question)
        chosen |= st.button(f"“{example.text}”", key=key, on_click=check, args=given)
    return chosen
