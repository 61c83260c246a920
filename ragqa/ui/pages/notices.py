"""Notices of a page: shown at once, or kept under a session key until the page is drawn next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st

from ragqa.errors import RagqaError
from ragqa.ui.html.render import notice_html

Notices = list[tuple[str, str]]  # (text, kind) of messages that are shown once


def keep_notices(key: str, *notices: tuple[str, str]) -> None:
    """Keeps these notices under the session key, after those that are there."""
    st.session_state.setdefault(key, []).extend(notices)


def draw_notices(key: str) -> None:
    """Shows the kept notices once, in a container that is always drawn, so that a message does not move the rest."""
    with st.container():
        for text, kind in st.session_state.pop(key, []):
            st.html(notice_html(text, kind))


@contextmanager
def error_kept(key: str) -> Iterator[None]:
    """Ends the block at an error of ragqa's and keeps the error as a notice."""
    try:
        yield
    except RagqaError as error:
        keep_notices(key, (str(error), "bad"))


@contextmanager
def error_shown(kind: str = "bad") -> Iterator[None]:
    """Ends the block at an error of ragqa's and shows the error in its place."""
    try:
        yield
    except RagqaError as error:
        st.html(notice_html(str(error), kind))


def draw_no_index(indexes: Path) -> None:
    """Says that there is nothing to ask in this folder, and how to fill it."""
    st.html(notice_html(f"There is no index in {indexes}. Build the demonstration ones with: make indexes", "bad"))
