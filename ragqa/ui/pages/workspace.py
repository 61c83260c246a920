"""A running question or a stored answer on the page: progress bar, panes, and the tabs below."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from ragqa.corpus.asked_items import alike
from ragqa.fusion import by_number
from ragqa.index import Index
from ragqa.library.related import merged
from ragqa.records.record import AnswerRecord
from ragqa.records.view import View, from_record
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Passage
from ragqa.ui import access
from ragqa.ui.html.answer import panes_of
from ragqa.ui.html.reader import also_html, rule_html
from ragqa.ui.html.render import RENDER
from ragqa.ui.pages.follow_up import draw_choices, draw_follow_up, draw_next, draw_thread
from ragqa.ui.pages.notes import draw_findings_bar, notes_of
from ragqa.ui.pages.notices import error_shown
from ragqa.ui.pages.settings import PANES, TABS, with_moved_filter
from ragqa.ui.pages.tabs import draw_tabs, shows_raw
from ragqa.ui.panes import draw_panes
from ragqa.ui.state import resources
from ragqa.ui.state.address import address_of
from ragqa.ui.state.links import link_of_view
from ragqa.ui.state.related import related_to
from ragqa.ui.state.run import Run

FOLLOW = "follow"
POLL_SECONDS = 0.25
TAB_SECONDS = 1.0  # longer than for the panes, because the tabs take longer to draw


def draw_run(run: Run, settings: Config, paths: Paths) -> None:
    """Draws the run; while it is running, panes and tabs are redrawn periodically."""
    view = run.view
    if not view.running:
        st.session_state["finished"] = run
    poll, slow = (POLL_SECONDS, TAB_SECONDS) if view.running else (None, None)
    if view.asked.follow_up:
        draw_thread(view.asked.follow_up, resources.record_store(paths.records))
    with st.container():  # also drawn while empty
        draw_choices(view)
    st.fragment(partial(_live, run, settings, view), run_every=poll, key=PANES)()
    with st.container(key="after"):  # also drawn while empty, else the tabs would move and be redrawn at the end
        if view.record_id and not view.running and not view.asked.given:
            draw_next(view)
            st.fragment(partial(draw_follow_up, view, settings, resources.record_store(paths.records)), key=FOLLOW)()
    index = resources.corpus_or_none(view.config.index, paths) if view.rankings else None
    st.fragment(partial(_tabs, run, settings, index, paths), run_every=slow, key=TABS)()


def _live(run: Run, settings: Config, at_first: View) -> None:
    """Draws progress and panes. When the run has ended it reruns the whole page, which stops the polling.

    It does not rerun in the script run that began the run (``at_first`` is its view): that would lose the new address.
    """
    if not access.gate().owns(run.owner):  # the sign-in has ended since the page was drawn
        return
    is_first = st.session_state.get("drawn") is not at_first
    st.session_state["drawn"] = at_first
    view, settings = at_first if is_first else run.view, with_moved_filter(settings)
    with st.container():
        if view.running:
            with st.container(key="progress", horizontal=True, vertical_alignment="center"):
                st.html(RENDER.progress(view.phase, run.seconds))
                st.button("Stop", on_click=run.stop, key="stop")
    again = "" if view.running else _asks_again(view)
    notes = {}
    if view.asked.given and view.scored and not view.running:
        draw_findings_bar(view)
        notes = notes_of(view.record_id)
    also = None if view.running else partial(_also, view.config.index)
    panes = panes_of(view, settings, run.id, raw=shows_raw(view), again=again, notes=notes, also=also, rule=_rule(view))
    draw_panes(panes)
    if not view.running and st.session_state.get("finished") is not run:
        st.session_state["finished"] = run
        st.rerun()


def _also(corpus: str, passage: Passage) -> str:
    """HTML on what is related to a source; "" where the corpus or the passage is gone."""
    paths = Paths.from_env()
    index = resources.corpus_or_none(corpus, paths)
    found = related_to(index, corpus, passage.passage_id, paths) if index else None
    return also_html(found, corpus) if found else ""


def _rule(view: View) -> str:
    """HTML of the rule that is asked for by its number; "" where there is none."""
    named = by_number(view.selection) if view.selection else ()
    corpus, paths = view.config.index, Paths.from_env()
    index = resources.corpus_or_none(corpus, paths) if named else None
    if index is None:
        return ""
    others = alike(view.asked.query, named, index.passages)
    found = [one for passage in named if (one := related_to(index, corpus, passage.passage_id, paths))]
    return rule_html(named, others, merged(named, found), corpus, view.asked.query)


def _asks_again(view: View) -> str:
    """The address that asks this again; cached for the answer, because it compares every preset."""
    kept: tuple[View, str] | None = st.session_state.get("again")
    if kept is None or kept[0] is not view:
        kept = st.session_state["again"] = (view, address_of(link_of_view(view)))
    return kept[1]


def _tabs(run: Run, settings: Config, index: Index | None, paths: Paths) -> None:
    view, record = run.view, ""
    if not access.gate().owns(run.owner):
        return
    if view.record_id and not view.running:
        with error_shown():
            record = resources.record_json(view.record_id, paths.records)
    if view.rankings or view.error:
        draw_tabs(view, with_moved_filter(settings), index, record)


def draw_record(record: AnswerRecord) -> None:
    """A stored answer as it was."""
    view = from_record(record)
    if view.asked.follow_up:
        draw_thread(view.asked.follow_up, resources.record_store(Paths.from_env().records))
    link = link_of_view(view)
    todays = replace(link, preset="", changed={})
    st.html(RENDER.again(address_of(link), address_of(todays), record.record_id))
    if view.asked.given and view.scored:
        draw_findings_bar(view)
    notes = notes_of(record.record_id)
    also, rule = partial(_also, record.index), _rule(view)
    draw_panes(panes_of(view, view.config, record.record_id, raw=shows_raw(view), notes=notes, also=also, rule=rule))
    draw_tabs(view, view.config, record=record.to_json())
