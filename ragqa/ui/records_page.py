"""The page of earlier answers: a list, and any one of them as it was."""

from __future__ import annotations

import streamlit as st

from ragqa.errors import RagqaError
from ragqa.library.changes import stale_words
from ragqa.paths import Paths
from ragqa.ui import resources
from ragqa.ui.render import notice_html, records_html
from ragqa.ui.workspace import draw_record


def records_page() -> None:
    """Draws the record named by ``?record=ID``, else the newest fifty; ``?compare=ID`` offers them beside that one."""
    st.html(resources.style())
    st.title("Records")
    paths = Paths.from_env()
    store = resources.record_store(paths.records)
    record_id = st.query_params.get("record")
    try:
        if record_id:
            record = store.load(record_id)
            when = record.created_at[:16].replace("T", " ")
            st.caption(f"Record {record.record_id}, {when} UTC, corpus {record.index}.")
            changed = stale_words(resources.changes_since(record, paths))
            if changed:
                st.html(notice_html(changed, "mixed"))
            draw_record(record)
        elif records := store.list():
            against = st.query_params.get("compare", "")
            if against:
                words = f"A: “{store.load(against).question.title}” Choose the record to compare it with."
                st.html(notice_html(words))
            st.html(records_html(records, resources.stale_records(records, store, paths), against))
        else:
            words = "No question has been answered on this machine yet. Ask one, and it is kept here."
            st.html(notice_html(words))
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))
