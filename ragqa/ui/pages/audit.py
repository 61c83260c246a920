"""The page Audit, for administrators: whether the audit log is intact, and its latest entries."""

from __future__ import annotations

from collections import deque

import streamlit as st

from ragqa.english.words import quantity
from ragqa.infra.cleaning import cell
from ragqa.server.access.policy import Act
from ragqa.ui import access
from ragqa.ui.html.render import notice_html

SHOWN = 200


def audit_page() -> None:
    """Draws the page; reads the whole log each time."""
    gate = access.gate()
    gate.demand(Act.AUDIT)
    st.title("Audit")
    if gate.audit is None:
        st.html(notice_html("Nobody signs in here, so nothing is logged; see ragqa/server/access/README.md."))
        return
    found = gate.audit.verify()
    if found.broken:
        st.html(notice_html(f"The log is not as it was written: {found.broken}.", "bad"))
    else:
        count = quantity(found.entries, "entry", "entries")
        st.html(notice_html(f"{count}, whole. Anchor: {found.entries}:{found.hash}", "good"))
    latest = reversed(deque(gate.audit.entries(), SHOWN))
    entries = [
        {name: cell(str(value)) for name, value in one.items() if name not in {"before", "hash"}} for one in latest
    ]
    names = dict.fromkeys(("n", "at", "act", "email", "corpus", *(name for one in entries for name in one)))
    rows = [{name: one.get(name, "") for name in names} for one in entries]
    st.dataframe(rows, hide_index=True, height="content" if len(rows) < SHOWN // 10 else 600)
    st.caption(f"The latest {quantity(len(rows), 'entry', 'entries')}; `ragqa audit show` lists all.")
