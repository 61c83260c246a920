"""The page where a question is asked and its answer watched."""

from __future__ import annotations

from functools import partial

import streamlit as st

from ragqa.config import Config
from ragqa.corpus.demo import DEMOS
from ragqa.errors import RagqaError
from ragqa.paths import Paths
from ragqa.pipeline import clean_question
from ragqa.types import Question
from ragqa.ui import resources
from ragqa.ui.follow_up import PENDING
from ragqa.ui.model_choice import can_ask
from ragqa.ui.panes import Panes, draw_panes
from ragqa.ui.render import notice_html
from ragqa.ui.run import Run
from ragqa.ui.settings import settings_panel
from ragqa.ui.workspace import draw_run

FIRST_EXAMPLES = 3
PURPOSE = "Answers from your rules, each sentence beside the words that prove it or refute it."


def ask_page() -> None:
    """Draws the page; the running question lives in ``st.session_state["run"]``."""
    st.html(resources.style())
    st.html(f'<div class="rq-brand"><h1>ragqa</h1><p>{PURPOSE}</p></div>')
    paths, defaults = Paths.from_env(), Config.from_env()
    names = resources.index_names(paths)
    if not names:
        text = f"There is no index in {paths.indexes}. Build the demonstration ones with: make indexes"
        st.html(notice_html(text, "bad"))
        return
    _question_form()
    with st.container(horizontal=True, key="choices"):
        index = _corpus_choice(names, defaults)
        preset, examples = st.container(width=230), st.container(width=330)
    config = settings_panel(index, defaults, *resources.rankings_of(index, paths), place=preset)
    with examples:
        questions = _examples(index)
    with st.container():  # always there, so that a message here moves nothing below
        if st.session_state.pop("ask_now", False):
            _start(config, paths)
    run: Run | None = st.session_state.get("run")
    if run:
        draw_run(run, config, paths)
        _quote_anyway(run)
    else:
        draw_panes(Panes())
        _landing(index, questions)
    resources.warm_up(config, paths)


def _question_form() -> None:
    """The question and the button on one line; both end in ``ask_now``."""
    with st.form("question_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_area(
            "Question",
            key="question",
            height=68,
            placeholder="Ask in your own words. Ctrl+Enter asks.",
            label_visibility="collapsed",
        )
        st.form_submit_button("Ask", type="primary", on_click=_ask_now)


def _corpus_choice(names: list[str], defaults: Config) -> str:
    first = names.index(defaults.index) if defaults.index in names else 0
    titles: dict[str, str] = {name: DEMOS[name].title if name in DEMOS else name for name in names}
    chosen: str = st.selectbox(
        "Corpus",
        names,
        index=first,
        format_func=lambda name: f"Corpus: {titles[name]}",
        key="corpus",
        label_visibility="collapsed",
        width=360,
    )
    return chosen


def _examples(index: str) -> list[str]:
    """The example questions of this corpus, all of them in a list; one chosen is asked."""
    questions = [gold.question.text for gold in DEMOS[index].questions()] if index in DEMOS else []
    if questions:
        st.selectbox(
            "Examples",
            questions,
            index=None,
            placeholder=f"{len(questions)} example questions",
            key=f"examples_{index}",
            label_visibility="collapsed",
            on_change=_ask_chosen,
            args=(f"examples_{index}",),
        )
    return questions


def _landing(index: str, examples: list[str]) -> None:
    """Before the first question: a few to begin with, and what is asked of whom."""
    with st.container(key="examples", gap="small"):
        for number, example in enumerate(examples[:FIRST_EXAMPLES]):
            key = f"example_{index}_{number}"
            st.button(example, key=key, type="tertiary", on_click=_ask_example, args=(example,))
    if index in DEMOS:
        st.caption(DEMOS[index].description)
    if not can_ask():
        st.caption("No language model is configured: answers are quoted from the passages.")


def _ask_now() -> None:
    st.session_state["ask_now"] = True


def _ask_example(question: str) -> None:
    st.session_state["question"] = question
    _ask_now()


def _ask_chosen(key: str) -> None:
    if st.session_state[key]:
        _ask_example(st.session_state[key])


def _quote_anyway(run: Run) -> None:
    """Where the answer refuses: the nearest sentences all the same, at a click."""
    answer = run.view.answer
    if answer and answer.is_refusal and run.view.config.generation.generator == "direct" and not run.view.running:
        st.button("Quote the nearest sentences anyway", key="quote_now", on_click=_quote_now, args=(run,))


def _quote_now(run: Run) -> None:
    st.session_state["set_quote_anyway"] = True
    _ask_example(run.view.question)


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
    st.session_state["run"] = Run(question, config, load)
