"""The pages Ask and Check: ask a question, or check a text, and follow the run."""

from __future__ import annotations

from functools import partial

import streamlit as st

from ragqa.corpus.demo import DEMOS
from ragqa.english.words import quantity
from ragqa.errors import ConfigError, RagqaError
from ragqa.pipeline import clean_question
from ragqa.records.thread import asked_before
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.check_form import FILE, check_form, checked_examples, file_choice
from ragqa.ui.pages.follow_up import PENDING, take_up
from ragqa.ui.pages.model_choice import can_ask, is_listed, model_names
from ragqa.ui.pages.notices import draw_no_index, error_shown
from ragqa.ui.pages.present import asked_in_address, draw_presentation, go_to, present_button, presenting
from ragqa.ui.pages.reader import draw_documents
from ragqa.ui.pages.settings import apply_values, settings_panel
from ragqa.ui.pages.workspace import draw_run
from ragqa.ui.panes import Panes, draw_panes
from ragqa.ui.state import resources
from ragqa.ui.state.address import RUN, Link, link_of
from ragqa.ui.state.links import apply_link, link_of_view, not_offered
from ragqa.ui.state.run import Run

FIRST_EXAMPLES = 3
OPENED = "opened_corpus"  # the corpus that another page opened this one with
PURPOSE = "Answers from your rules, each sentence beside the words that prove it or refute it."
_RUN = {False: "run", True: "checked"}  # the session key of the page's run, by whether it checks a text
FILLINGS = 3  # how often a question is put back into its field at most, see `_fill_again`
_FILLED = "filled"  # the run whose question was just put back into the field
_LINK = "link"  # the link of an address, until the drawn settings have been compared with it


def ask_page() -> None:
    """The page that answers a question."""
    _page(checking=False)


def check_page() -> None:
    """The page that checks a text; no answer is written."""
    _page(checking=True)


def _page(*, checking: bool) -> None:
    st.html(f'<div class="rq-brand"><h1>ragqa</h1><p>{PURPOSE}</p></div>')
    paths, defaults = Paths.from_env(), Config.from_env()
    names = resources.index_names(paths)
    if not names:
        draw_no_index(paths.indexes)
        return
    problem = _follow_address(checking, names)
    if checking:
        check_form(_check_now)
    else:
        take_up()
        _question_form()
    choices = st.container(horizontal=True, key="choices")
    with choices:
        index = _corpus_choice(names, defaults)
        preset = st.container(width=230)
        third = st.container(width=110 if checking else 330, key="file_choice" if checking else "question_examples")
    run: Run | None = st.session_state.get(_RUN[checking])
    view = run.view if run else None
    rankings = resources.rankings_of(index, paths)
    config = settings_panel(index, defaults, *rankings, place=preset, view=view, checking=checking)
    with third:
        if checking:
            file_choice(_check_example)
            questions = []
        else:
            questions = _examples(index)
    if not checking:
        with choices:
            _writer_choice(config, defaults)
            present_button()
        if presenting():
            draw_presentation(questions or asked_before(index, resources.record_store(paths.records)), _ask_example)
    with st.container():  # always drawn, so that a message does not move anything below
        if st.session_state.get("ask_now") == _RUN[checking]:
            del st.session_state["ask_now"]
            _start(config, paths, checking=checking, place=_place_of(asked_in_address()))
        elif not problem:
            problem = _offer_link(config, checking=checking)
        run = st.session_state.get(_RUN[checking])
        slow = resources.library_words(paths) if run is None or run.view.running else ""
        for words in filter(None, (problem, slow)):
            st.html(notice_html(words, "mixed"))
    if run:
        draw_run(run, config, paths)
    else:
        draw_panes(Panes())
        _landing(index, questions, checking=checking)
    resources.warm_up(config, paths)


def _follow_address(checking: bool, names: list[str]) -> str:
    """Follows the address: shows the run of ``?run=ID``, or fills in what a link asks; gives a problem in words.

    Without parameters, the page shows its last run if the visitor comes from another page. It is empty if they went
    back to before the run, or chose the page again.
    """
    key, query = _RUN[checking], asked_in_address()
    own: Run | None = st.session_state.get(key)
    if RUN in query:
        if own and own.id == query[RUN]:
            _fill_again(own)
            return ""
        found, words = resources.find_run(query[RUN]), ""
        try:
            if found is None:
                found, words = resources.kept_run(query[RUN], Paths.from_env().records)
        except RagqaError as error:
            words = str(error)
        if found:
            _show(found, key, names)
        else:
            st.session_state.pop(key, None)
        return words
    if query:
        return _follow_link(query, key, names)
    if own and st.session_state.get("came_from") != st.session_state.get("page"):
        st.query_params[RUN] = own.id
        _fill(own.view.asked)
    else:
        st.session_state.pop(key, None)
    return ""


def _follow_link(query: dict[str, str], key: str, names: list[str]) -> str:
    """Fills in what the address asks, once per session; when visited again, it shows the run that was made from it."""
    followed: dict[str, tuple[str, str]] = st.session_state.setdefault("followed", {})  # problem, run's id
    place = _place_of(query)
    if place in followed:
        problem, run_id = followed[place]
        found = resources.find_run(run_id)
        if found:
            _show(found, key, names)
        return problem
    st.session_state.pop(key, None)
    followed[place] = ("", "")
    try:
        link = link_of(query)
        if link.text and key == _RUN[False]:
            msg = "The address names a text: texts are checked on the page Check a text, as in check?text=…"
            raise ConfigError(msg)
        problem = apply_link(link, names)
    except ConfigError as error:
        problem = str(error)
    if problem:
        followed[place] = (problem, "")
        return problem
    _fill(Question(link.question, given=link.text))
    st.session_state[_LINK] = link
    return ""


def _place_of(query: dict[str, str]) -> str:
    return repr(sorted(query.items()))


def _offer_link(config: Config, *, checking: bool) -> str:
    """Draws a button that asks what the address says, so that a link never asks by itself in the visitor's name.

    Returns what the link needs and this server does not offer, in words.
    """
    place = _place_of(asked_in_address())
    link: Link | None = st.session_state.pop(_LINK, None)
    if st.session_state.get("followed", {}).get(place) != ("", ""):
        return ""
    if link and (unmet := not_offered(link, config)):
        st.session_state["followed"][place] = (unmet, "")
        return unmet
    wanted = link_of(asked_in_address())
    if wanted.text if checking else wanted.question:
        what = "checks this text" if checking else "asks this question"
        st.html(notice_html(f"The link {what}, with the settings above. Nothing happens until you press the button."))
        label, ask = ("Check what the link says", _check_now) if checking else ("Ask what the link says", _ask_now)
        st.button(label, key="ask_link", type="primary", on_click=ask)
    return ""


def _show(run: Run, key: str, names: list[str]) -> None:
    """Makes this run the session's own, and restores its question and settings."""
    st.session_state[key], st.session_state[_FILLED] = run, (run.id, FILLINGS)
    _fill(run.view.asked)
    if run.view.config.index in names:
        apply_link(link_of_view(run.view), names)


def _fill_again(run: Run) -> None:
    """Fills the field again, because an immediate rerun may have dropped its value before it reached the browser."""
    run_id, left = st.session_state.pop(_FILLED, ("", 0))
    asked, now = run.view.asked, st.session_state.get("text" if run.view.asked.given else "question")
    if run_id == run.id and left and now in (None, "", asked.given or asked.text):
        st.session_state[_FILLED] = (run_id, left - 1)
        _fill(asked)


def _fill(asked: Question) -> None:
    """Puts the question or text back into its fields."""
    st.session_state["text_question" if asked.given else "question"] = asked.text
    if asked.given:
        st.session_state["text"] = asked.given


def _question_form() -> None:
    """The question field and its button, which both set ``ask_now``."""
    with st.form("question_form", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_area(
            "Question",
            st.session_state.get("question", ""),
            key="question",
            height=68,
            placeholder="Ask in your own words. Enter asks.",
            label_visibility="collapsed",
        )
        st.form_submit_button("Ask", type="primary", on_click=_ask_now)


def _corpus_choice(names: list[str], defaults: Config) -> str:
    wanted = st.session_state.pop(OPENED, st.query_params.get("corpus"))
    if wanted in names and st.session_state.get("linked_corpus") != wanted:
        st.session_state["linked_corpus"] = st.session_state["corpus"] = wanted
    titles = resources.corpus_titles(names, Paths.from_env())
    kept = st.session_state.get("kept_corpus")  # a widget's own value is lost when the page changes
    if kept in names:
        st.session_state.setdefault("corpus", kept)
    now = st.session_state.get("corpus", defaults.index)
    first = names.index(now) if now in names else 0
    chosen: str = st.selectbox(
        "Corpus",
        names,
        index=first,
        format_func=lambda name: f"Corpus: {titles[name]}",
        key="corpus",
        label_visibility="collapsed",
        width=360,
    )
    st.session_state["kept_corpus"] = chosen
    return chosen


def _examples(index: str) -> list[str]:
    """A list of this corpus's example questions; choosing one asks it."""
    questions = resources.examples_of(index, Paths.from_env())
    if questions:
        st.selectbox(
            "Examples",
            questions,
            index=None,
            placeholder=quantity(len(questions), "example question"),
            key=f"examples_{index}",
            label_visibility="collapsed",
            on_change=_ask_chosen,
            args=(f"examples_{index}",),
        )
    return questions


def _writer_choice(config: Config, defaults: Config) -> None:
    """The choice of the writer: quotations, or one of the configured language models."""
    if not can_ask():
        return
    models, writing = model_names(defaults.generation), config.generation
    asks = writing.asks_model
    named = ((label, local, model) for label, (model, local) in models.items())
    now = next(
        (label for label, local, model in named if local == writing.local_model and (local or model == writing.model)),
        "",
    )
    st.session_state["writer"] = now if asks else ""

    def words(label: str) -> str:
        if not label:
            return "Quoted, no language model"
        is_there = models[label][1] or is_listed(label, defaults.generation)
        return f"Written by {label}" + ("" if is_there else ", not listed by the server")

    st.selectbox(
        "Who writes",
        ["", *models],
        key="writer",
        format_func=words,
        label_visibility="collapsed",
        width=260,
        on_change=_write_by,
        args=(models,),
    )


def _write_by(models: dict[str, tuple[str, str]]) -> None:
    chosen = st.session_state["writer"]
    if not chosen:
        apply_values({"generator": "direct"}, Config.from_env())
        return
    model, local = models[chosen]
    apply_values({"generator": "llm", "model": model, "local_model": local}, Config.from_env())
    st.session_state["set_model"] = chosen


def _landing(index: str, examples: list[str], *, checking: bool) -> None:
    """The page before the first question: examples, the corpus's description, and a note on language models."""
    if examples:
        with st.container(key="examples", gap="small"):
            for number, example in enumerate(examples[:FIRST_EXAMPLES]):
                key = f"example_{index}_{number}"
                st.button(plain_markdown(example), key=key, on_click=_ask_example, args=(example,))
    if presenting():  # what follows would leave the presentation
        return
    chosen = checked_examples(index, "Try it" if checking else "Or check a text", _check_example)
    if chosen and not checking:
        st.switch_page(st.Page(check_page, url_path="check"))
    if index in DEMOS:
        st.caption(DEMOS[index].description)
    elif not examples:
        draw_documents(index, Paths.from_env())
    if access.gate().may(Act.UPLOAD):
        st.html('<a class="rq-read" href="library" target="_self">Add your documents</a>')
    if not (checking or can_ask()):
        st.caption("No language model is configured: answers are quoted from the passages.")  # the drawer tells how


def _ask_now() -> None:
    st.session_state["ask_now"] = _RUN[False]


def _check_now() -> None:
    st.session_state["ask_now"] = _RUN[True]


def _ask_example(question: str) -> None:
    st.session_state["question"] = question
    _ask_now()


def _check_example(text: str, question: str) -> None:
    st.session_state["text"], st.session_state["text_question"] = text, question
    st.session_state[FILE] = False
    _check_now()


def _ask_chosen(key: str) -> None:
    if st.session_state[key]:
        _ask_example(st.session_state[key])


def _start(config: Config, paths: Paths, *, checking: bool, place: str = "") -> None:
    """Starts a new run in place of the earlier one, which stays on the page if the new one cannot be started."""
    if checking:
        asked = Question(st.session_state["text_question"], given=st.session_state["text"] or " ")
    else:
        question = st.session_state["question"]
        pending, found = st.session_state.get(PENDING, ("", None))
        asked = Question(question, follow_up=found if pending == question else None)
    with error_shown("mixed"):
        run = resources.start_run(clean_question(asked), config, partial(resources.pipeline, config, paths))
        before: Run | None = st.session_state.get(_RUN[checking])
        if before:
            before.stop()
        st.session_state.pop(PENDING, None)  # not before: where the queue is full, it is asked again
        resources.runs().add(run)
        st.session_state[_RUN[checking]] = run
        if place in st.session_state.get("followed", {}):
            st.session_state["followed"][place] = ("", run.id)
        go_to({RUN: run.id})
