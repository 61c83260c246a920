"""A job of the library on the page: its progress, a button that stops it, and its result."""

from __future__ import annotations

from functools import partial
from typing import Final

import streamlit as st

from ragqa.english.words import duration_words
from ragqa.library.jobs import BackgroundJob
from ragqa.server.access.policy import Act
from ragqa.ui import access
from ragqa.ui.html.render import RENDER, notice_html

POLL_SECONDS: Final = 0.5


def draw_job(job: BackgroundJob, act: Act, corpus: str, *, busy: bool) -> None:
    """Draws the job's progress while it is ``busy``, for persons who may do this act, else its result."""
    if busy:
        st.fragment(partial(_progress, job, act, corpus), run_every=POLL_SECONDS)()
    else:
        _ended(job)


def _progress(job: BackgroundJob, act: Act, corpus: str) -> None:
    view = job.view
    if not view.running or not access.gate().may(act, corpus):
        st.rerun()
    with st.container(key="library_progress", horizontal=True, vertical_alignment="center"):
        file = f": {view.file}" if view.file else ""
        share = f", {min(1.0, view.done / view.total):.0%}" if view.total else ""
        left = f", {duration_words(view.seconds_left)} left" if view.seconds_left is not None else ""
        st.html(RENDER.progress(f"{view.phase}{file}{share}{left}", job.seconds))
        st.button(
            "Stopping" if job.is_stopping else "Stop", key="library_stop", on_click=_stop, args=(job, act, corpus)
        )
    for line in view.messages[-5:]:
        st.html(notice_html(line, "mixed"))


def _stop(job: BackgroundJob, act: Act, corpus: str) -> None:
    with access.told(), access.gate().doing(act, corpus, stopped=True):  # a click counts before the page asks who it is
        job.stop()


def _ended(job: BackgroundJob) -> None:
    view = job.view
    if view.error:
        st.html(notice_html(view.error, "bad"))
    elif view.stopped:
        st.html(notice_html("Stopped. What was done stays; continue at any time.", "mixed"))
    for line in view.messages if view.kind in {"index", "gaps"} else ():
        st.html(notice_html(line, "mixed"))
