"""The page of earlier answers: a list, and any one of them as it was."""

from __future__ import annotations

import streamlit as st

from ragqa.errors import RagqaError
from ragqa.paths import Paths
from ragqa.records import AnswerRecord, RecordSummary
from ragqa.ui import resources
from ragqa.ui.follow_up import origin_html
from ragqa.ui.render import notice_html, question_html, records_html
from ragqa.ui.sections import download_record, draw_outcome, draw_passages, draw_seconds
from ragqa.ui.view import from_record


def records_page() -> None:
    """Draws the record named by ``?record=ID``, else the newest fifty."""
    st.html(resources.style())
    st.title("Records")
    store = resources.record_store(Paths.from_env().records)
    record_id = st.query_params.get("record")
    try:
        if record_id:
            _one(store.load(record_id))
        else:
            _all(store.list())
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))


def _all(records: tuple[RecordSummary, ...]) -> None:
    if not records:
        st.html(notice_html("No question has been answered on this machine yet. Ask one, and it is kept here."))
        return
    st.html(records_html(records))


def _one(record: AnswerRecord) -> None:
    view = from_record(record)
    st.caption(f"Record {record.record_id}, {record.created_at[:16].replace('T', ' ')} UTC, corpus {record.index}.")
    st.html(question_html(view.question) + origin_html(view.follow_up))
    draw_passages(view, view.config)
    draw_outcome(view, view.config)
    draw_seconds(view)
    download_record(record.record_id, record.to_json())
