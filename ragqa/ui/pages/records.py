"""The page History: the list of records, one record as it was, and cases."""

from __future__ import annotations

from datetime import date
from functools import partial

import streamlit as st

from ragqa.english.words import cut
from ragqa.library.changes import stale_words
from ragqa.records.results import RESULTS
from ragqa.records.store import RecordStore
from ragqa.server.access.policy import GROUP, Act
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import RENDER, notice_html
from ragqa.ui.pages.cases import draw_add, draw_case, draw_cases
from ragqa.ui.pages.notices import error_shown
from ragqa.ui.pages.workspace import draw_record
from ragqa.ui.state import resources

PAGE = 50  # records at a time
_GONE = "record_gone"  # session key: id and title of the record deleted last
_WHAT, _RECORDS, _CASES = "history_what", "Records", "Cases"
_AFTER = "history_after"  # a plain session key: the number of newer records on the pages before


def records_page() -> None:
    """Draws the record of ``?record=ID``, else the list; with ``?compare=ID`` that record is ticked for comparison."""
    st.title("History")
    paths = Paths.from_env()
    record_id, case_id = st.query_params.get("record"), st.query_params.get("case")
    with error_shown():
        store = resources.record_store(paths.records)
        if record_id:
            record = store.load(record_id)
            when = record.created_at[:16].replace("T", " ")
            title = resources.corpus_titles([record.index], paths)[record.index]
            st.caption(f"Record {record.record_id}, {when} UTC, {plain_markdown(title)}.")
            changed = stale_words(resources.changes_since(record, paths))
            if changed:
                st.html(notice_html(changed, "mixed"))
            with st.container(horizontal=True, key="record_bar"):
                _sharing(record_id, store)
                _own(record_id, store, record.question.title)
                draw_add(f"record:{record_id}", paths)
            draw_record(record)
        elif case_id:
            draw_case(case_id, paths)
        elif _shows_cases():
            draw_cases(paths)
        elif _undo() or store.list(1):
            against = st.query_params.get("compare", "")
            if against:
                words = f"Ticked: “{store.load(against).question.title}”. Tick the record to compare it with."
                st.html(notice_html(words))
            _listed(store, paths, against)
        else:
            words = "No question has been answered on this machine yet. Ask one, and it is kept here."
            if access.gate().audit:
                words = "No record here is yours or shared with you."
            st.html(notice_html(words))


def _shows_cases() -> bool:
    """Whether cases are shown instead of records; ``?cases`` in the address says so, too."""
    st.session_state[_WHAT] = _CASES if "cases" in st.query_params else _RECORDS
    st.segmented_control("Shown", (_RECORDS, _CASES), key=_WHAT, label_visibility="collapsed", on_change=_switch)
    return st.query_params.get("cases") is not None


def _switch() -> None:
    if st.session_state[_WHAT] == _CASES:
        st.query_params["cases"] = "1"
    elif st.session_state[_WHAT] == _RECORDS:
        st.query_params.pop("cases", None)


def _own(record_id: str, store: RecordStore, title: str) -> None:
    """The note on one's own record, and the button that deletes it."""
    if not access.gate().may(Act.RECORD) or store.shared_with(record_id) is None:
        return
    note = store.note(record_id)
    with st.popover("Note" if not note else f"Note: {plain_markdown(cut(note, 40))}"):
        st.text_input("Note", note, key="record_note", max_chars=500)
        st.button("Keep", key="record_keep", on_click=_change, args=(record_id, "note"))
    st.button("Delete", key="record_delete", on_click=_change, args=(record_id, "delete", title))


def _change(record_id: str, what: str, title: str = "") -> None:
    """Sets the note on a record, deletes it, or restores it."""
    with access.told(), access.gate().doing(Act.RECORD, record=record_id, what=what):
        store = resources.record_store(Paths.from_env().records)
        if what == "note":
            store.set_note(record_id, str(st.session_state["record_note"]).strip())
        elif what == "delete":
            store.discard(record_id)
            st.session_state[_GONE] = (record_id, title)
            st.query_params.clear()
        else:
            store.restore(record_id)
            st.session_state.pop(_GONE, None)


def _undo() -> bool:
    """A notice with a button that restores the record deleted last; returns whether there is one."""
    gone: tuple[str, str] | None = st.session_state.get(_GONE)
    if gone:
        with st.container(horizontal=True, vertical_alignment="center", key="record_gone"):
            st.html(notice_html(f"Deleted: “{gone[1]}”. It can be restored for a day."))
            st.button("Undo", key="record_undo", on_click=_change, args=(gone[0], "restore"))
    return bool(gone)


def _listed(store: RecordStore, paths: Paths, against: str) -> None:
    """Fifty records at a time, filtered by words, corpus, result, author and days."""
    names = resources.index_names(paths)
    titles = {"": "Any corpus"} | resources.corpus_titles(names, paths)
    with st.container(horizontal=True, vertical_alignment="bottom", key="history_search"):
        words = st.text_input("Words of question or note", key="history_words", width=320, on_change=_first)
        index = st.selectbox(
            "Corpus", list(titles), format_func=titles.__getitem__, key="history_corpus", width=300, on_change=_first
        )
        choice = partial(st.selectbox, index=None, placeholder="Any", width=170, on_change=_first)
        wanted = {"result": choice("Result", RESULTS, key="history_result") or ""}
        if access.gate().audit:
            wanted["author"] = choice("Author", store.authors(), key="history_author") or ""
        for label, name in (("From", "since"), ("To", "until")):
            day = st.date_input(label, None, key=f"history_{name}", width=140, on_change=_first)
            wanted[name] = day.isoformat() if isinstance(day, date) else ""
    after = int(st.session_state.setdefault(_AFTER, 0))
    found = store.list(PAGE + 1, after=after, words=words, index=index or "", **wanted)
    records = found[:PAGE]
    if records:
        results = store.results([one.record_id for one in records])
        st.html(RENDER.records(records, resources.stale_records(records, store, paths), against, results, titles))
    else:
        st.html(notice_html("No record matches these filters."))
    with st.container(horizontal=True, vertical_alignment="center", key="history_pages"):
        st.button("‹ Newer", key="history_newer", disabled=not after, on_click=_step, args=(-PAGE,))
        st.button("Older ›", key="history_older", disabled=len(found) <= PAGE, on_click=_step, args=(PAGE,))
        st.caption(f"Records {after + 1} to {after + len(records)}" if records else "")


def _first() -> None:
    st.session_state[_AFTER] = 0


def _step(by: int) -> None:
    st.session_state[_AFTER] = max(0, st.session_state[_AFTER] + by)


def _sharing(record_id: str, store: RecordStore) -> None:
    """The form that shares one's own record, where people sign in."""
    gate = access.gate()
    if gate.audit is None or not gate.may(Act.SHARE):
        return
    shared = store.shared_with(record_id)
    if shared is None:
        return
    with st.popover(f"Shared with {len(shared)}" if shared else "Share"):
        with st.form("share", border=False, clear_on_submit=True):
            words = "An e-mail address as its owner signs in with, or group:NAME"
            st.text_input(words, key="share_with", max_chars=200)
            st.form_submit_button("Share", on_click=_share, args=(record_id, "", True))
        for who in shared:
            words = f"No longer with {plain_markdown(who)}"
            st.button(words, key=f"unshare_{who}", on_click=_share, args=(record_id, who, False))
        st.caption("A person who may not read the record's corpus does not see the record.")


def _share(record_id: str, who: str, shared: bool) -> None:
    who = who or str(st.session_state.get("share_with", "")).strip()[:200]
    who = who if who.startswith(GROUP) else who.casefold()
    if who:
        with access.told(), access.gate().doing(Act.SHARE, record=record_id, names=[who], shared=shared):
            resources.record_store(Paths.from_env().records).share(record_id, who, shared=shared)
