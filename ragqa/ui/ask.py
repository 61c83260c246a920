"""The page where a question is asked and its answer watched."""

from __future__ import annotations

import time
from functools import partial

import streamlit as st

from ragqa.config import Config
from ragqa.corpus.demo import DEMOS
from ragqa.errors import RagqaError
from ragqa.paths import Paths
from ragqa.pipeline import clean_question
from ragqa.types import Question
from ragqa.ui import resources
from ragqa.ui.follow_up import PENDING, draw_follow_up, origin_html
from ragqa.ui.model_choice import can_ask
from ragqa.ui.render import notice_html, question_html, record_link_html
from ragqa.ui.run import Run
from ragqa.ui.sections import download_record, draw_outcome, draw_passages, draw_seconds
from ragqa.ui.settings import settings_panel
from ragqa.ui.view import View

POLL_SECONDS = 0.25
WAIT_SECONDS = 0.5  # between two looks at a breakdown that waits for its last pairs; the look itself lasts as long
REDRAW_SECONDS = 3.0  # while every row has a score and some may still change
FIRST_EXAMPLES = 3


def ask_page() -> None:
    """Draws the page; the running question lives in ``st.session_state["run"]``."""
    st.html(resources.style())
    st.title("Ask")
    paths, defaults = Paths.from_env(), Config.from_env()
    names = resources.index_names(paths)
    if not names:
        text = f"There is no index in {paths.indexes}. Build the demonstration ones with: make indexes"
        st.html(notice_html(text, "bad"))
        return
    index = _corpus_choice(names, defaults)
    config = settings_panel(index, defaults, *resources.rankings_of(index, paths))
    _question_form(index)
    if not can_ask():
        st.caption("No language model is configured: answers are quoted from the passages.")
    with st.container():  # always there, so that a message here moves nothing below
        if st.session_state.pop("ask_now", False):
            _start(config, paths)
    run: Run | None = st.session_state.get("run")
    if run:
        _results(run, config, paths)
    resources.warm_up(config, paths)


def _corpus_choice(names: list[str], defaults: Config) -> str:
    first = names.index(defaults.index) if defaults.index in names else 0
    titles: dict[str, str] = {name: DEMOS[name].title if name in DEMOS else name for name in names}
    chosen: str = st.selectbox("Corpus", names, index=first, format_func=titles.__getitem__, key="corpus")
    if chosen in DEMOS:
        st.caption(DEMOS[chosen].description)
    return chosen


def _question_form(index: str) -> None:
    """The question box and the examples of this corpus; both end in ``ask_now``."""
    with st.form("question_form", border=False):
        st.text_area("Question", key="question", height=90, placeholder="Ask in your own words. Ctrl+Enter asks.")
        st.form_submit_button("Ask", type="primary", on_click=_ask_now)
    examples = [gold.question.text for gold in DEMOS[index].questions()] if index in DEMOS else []
    if not examples:
        return
    if "run" not in st.session_state and not st.session_state.get("ask_now"):
        with st.container(key="examples", gap="small"):
            for number, example in enumerate(examples[:FIRST_EXAMPLES]):
                key = f"example_{index}_{number}"
                st.button(example, key=key, type="tertiary", on_click=_ask_example, args=(example,))
    st.selectbox(
        "Examples",
        examples,
        index=None,
        placeholder=f"…or choose one of {len(examples)} example questions",
        key=f"examples_{index}",
        label_visibility="collapsed",
        on_change=_ask_chosen,
        args=(f"examples_{index}",),
    )


def _ask_now() -> None:
    st.session_state["ask_now"] = True


def _ask_example(question: str) -> None:
    st.session_state["question"] = question
    _ask_now()


def _ask_chosen(key: str) -> None:
    if st.session_state[key]:
        _ask_example(st.session_state[key])


def _start(config: Config, paths: Paths) -> None:
    """A new run in place of the one before; a question that cannot be asked leaves that one on the page."""
    try:
        question = clean_question(Question(st.session_state["question"], follow_up=st.session_state.pop(PENDING, None)))
    except RagqaError as error:
        st.html(notice_html(str(error), "mixed"))
        return
    before: Run | None = st.session_state.get("run")
    if before:
        before.stop()
    load = partial(resources.pipeline, config, paths)
    st.session_state["run"] = Run(question.text, config, load, question.follow_up)


def _results(run: Run, config: Config, paths: Paths) -> None:
    """The question and its passages, drawn once; below them what changes while the question runs."""
    view = run.view
    st.divider()
    st.html(question_html(view.question) + origin_html(view.follow_up))
    with st.container():  # always there, so that what follows keeps its place
        draw_passages(view, config, resources.corpus_or_none(view.config.index, paths) if view.rankings else None)
    if view.running and view.has_every_score:
        st.fragment(partial(_waiting, run, time.monotonic()), run_every=WAIT_SECONDS)()
        draw_outcome(view, config)
        return
    if not view.running:
        st.session_state["finished"] = run  # all of it is drawn here, nothing needs to be drawn again
    outcome = partial(_outcome, run, config, paths, passages_shown=bool(view.rankings))
    st.fragment(outcome, run_every=POLL_SECONDS if view.running else None)()


def _waiting(run: Run, drawn_at: float) -> None:
    """The line above a breakdown that is complete but for what may still rise: nothing else is redrawn meanwhile.

    Drawing takes from the processor what scoring needs, so this seldom draws, and waits for the end where that comes
    soon. A long scoring is redrawn now and then, at ``drawn_at`` last (seconds of `time.monotonic`).
    """
    _status(run, run.view)
    elapsed = time.monotonic() - drawn_at
    view = run.wait(WAIT_SECONDS) if elapsed > WAIT_SECONDS / 2 else run.view  # at first the rest is still to be drawn
    if not view.running:
        st.session_state["finished"] = run
    if not view.running or elapsed > REDRAW_SECONDS:
        st.rerun()


def _status(run: Run, view: View) -> None:
    """What the run does, and the button that stops it; an empty place once it is over."""
    with st.container():
        if view.running:
            status, button = st.columns([5, 1], vertical_alignment="center")
            status.html(notice_html(view.phase + " …"))
            button.button("Stop", on_click=run.stop, key="stop", width="stretch")


def _outcome(run: Run, config: Config, paths: Paths, *, passages_shown: bool) -> None:
    """Redrawn every now and then while the question runs; asks for the whole page when that has more to show."""
    view = run.view
    _status(run, view)
    draw_outcome(view, config)
    if (view.rankings and not passages_shown) or (view.running and view.has_every_score):
        st.rerun()
    if view.running:
        return
    if st.session_state.get("finished") is not run:
        st.session_state["finished"] = run
        st.rerun()
    draw_seconds(view)
    if view.record_id:
        draw_follow_up(view, config, resources.record_store(paths.records))
        _record_links(view.record_id, paths)


def _record_links(record_id: str, paths: Paths) -> None:
    try:
        body = resources.record_store(paths.records).load(record_id).to_json()
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))
        return
    download_record(record_id, body)
    st.html(record_link_html(record_id))
