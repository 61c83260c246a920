"""The page Compare: one question under two settings, or two stored answers, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

import streamlit as st

from ragqa.errors import RagqaError
from ragqa.pipeline import Pipeline, clean_question
from ragqa.plugins import registry
from ragqa.records.comparison import compare
from ragqa.records.differences import differences
from ragqa.records.view import View, from_record
from ragqa.retrieval.ranking import lacking_rankings
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.settings.presets import PRESETS
from ragqa.types import Question
from ragqa.ui import access
from ragqa.ui.html.compare import COMPARE, passages_html, sentences_html, summary_html
from ragqa.ui.html.render import RENDER, notice_html
from ragqa.ui.pages.model_choice import can_ask, model_names
from ragqa.ui.pages.notices import draw_no_index
from ragqa.ui.pages.settings import current_settings, preset_label
from ragqa.ui.state import resources
from ragqa.ui.state.run import Run
from ragqa.ui.state.settings_values import with_preset

NOW = "the settings now"
SIDES = ("a", "b")
RECORDS, SETTINGS = "Two stored answers", "Two settings"
_RUNS = "compared"  # the two runs of a session
POLL_SECONDS = 0.5


def compare_page() -> None:
    """Draws the choices and the comparison; ``?a=ID&b=ID`` or ``?record=ID&record=ID`` choose two records."""
    st.html(
        '<div class="rq-brand"><h1>Compare</h1><p>One question, two settings: what they find, what is written, '
        "how it scores.</p></div>"
    )
    paths = Paths.from_env()
    ticked = iter(st.query_params.get_all("record"))
    named = [st.query_params.get(side) or next(ticked, "") for side in SIDES]
    ways = (SETTINGS, RECORDS) if access.gate().may(Act.QUESTION) else (RECORDS,)
    first = RECORDS if any(named) else ways[0]
    what = st.segmented_control("Compare", ways, default=first, key="compare_what", label_visibility="collapsed")
    what = what or first
    if what == RECORDS:
        _records(named, paths)
        return
    names = resources.index_names(paths)
    if not names:
        draw_no_index(paths.indexes)
        return
    _settings(names, paths)


def kept_choice(
    label: str,
    options: list[str],
    first: str | None,
    key: str,
    words: Callable[[str], str],
    *,
    width: int | Literal["stretch"] = "stretch",
) -> str:
    """A selection that keeps its value for the session, as long as it is offered."""
    index = options.index(first) if first in options else 0
    return st.selectbox(label, options, index, key=key, format_func=words, persist_state="session", width=width)


# Two settings -----------------------------------------------------------------------------------------------------


def _settings(names: list[str], paths: Paths) -> None:
    st.text_area(
        *("Question", st.session_state.get("question", "")),
        key="compare_question",
        height=68,
        placeholder="A question to ask twice.",
        persist_state="session",
    )
    columns = st.columns(2, gap="medium")
    chosen = []
    for side, column in zip(SIDES, columns, strict=True):
        with column, st.container(horizontal=True):
            chosen.append(_side(side, names, paths))
    started = st.button("Ask both", type="primary", key="compare_ask")
    if started:
        _start(chosen, paths)
    runs = _compared()
    if runs is None:
        st.html(notice_html("Choose what differs between A and B, a preset, the corpus, or who writes, and ask both."))
        return
    changed = _changed_since(runs, chosen)
    if changed:
        st.html(notice_html(f"Changed since these results: {changed}. Ask both again.", "mixed"))
    is_running = any(run.view.running for run in runs)
    st.fragment(partial(_live, runs), run_every=POLL_SECONDS if is_running else None)()


def _side(side: str, names: list[str], paths: Paths) -> Config:
    """Draws the choices of one side; returns its settings."""
    defaults, letter = Config.from_env(), side.upper()
    titles, last = resources.corpus_titles(names, paths), st.session_state.get("kept_corpus")
    index = kept_choice(f"{letter}: corpus", names, last, f"compare_corpus_{side}", titles.__getitem__)
    rankings, encoder = resources.rankings_of(index, paths)
    own, _ = resources.own_presets(paths.presets)
    presets = {one.name: one for one in (*PRESETS, *own) if not lacking_rankings(one.fusion, rankings, encoder)}
    way = kept_choice(f"{letter}: ranking and filter", [NOW, *presets], NOW, f"compare_preset_{side}", preset_label)
    config = current_settings(index, defaults, rankings, encoder)
    if way != NOW:
        config = resources.fitted(with_preset(config, presets[way], rankings, encoder), paths)
    return _written(side, config, defaults)


def _written(side: str, config: Config, defaults: Config) -> Config:
    """The settings with this side's choice of writer and model."""
    letter = side.upper()
    parts = {part.name: part for part in registry.parts(registry.GENERATORS)}
    offered = [name for name in parts if can_ask() or not registry.needs_language_model(name)]
    now, key = config.generation.generator, f"compare_generator_{side}"
    name = kept_choice(f"{letter}: writer", offered, now, key, lambda one: parts[one].label)
    generation = replace(config.generation, generator=name)
    if registry.needs_language_model(name):
        models = model_names(defaults.generation)
        model, local = models[kept_choice(f"{letter}: model", list(models), "", f"compare_model_{side}", str)]
        generation = replace(generation, model=model, local_model=local)
    return replace(config, generation=generation)


def _start(chosen: list[Config], paths: Paths) -> None:
    """Starts two runs; B waits for A, so that they do not slow each other down."""
    first = None
    try:
        asked = clean_question(Question(st.session_state["compare_question"]))
        one, other = chosen
        first = resources.start_run(asked, one, partial(resources.pipeline, one, paths))
        second = resources.start_run(asked, other, partial(_after, first, partial(resources.pipeline, other, paths)))
    except RagqaError as error:
        if first:  # one run alone is of no use
            first.stop()
        st.html(notice_html(str(error), "mixed"))
        return
    _stop(st.session_state.get(_RUNS) or ())
    st.session_state[_RUNS] = (first, second)
    for run in (first, second):
        resources.runs().add(run)
    st.query_params.from_dict({f"run_{side}": run.id for side, run in zip(SIDES, (first, second), strict=True)})


def _compared() -> tuple[Run, Run] | None:
    """The two runs of this session, or those of the address if it names others that still exist."""
    known: tuple[Run, Run] | None = st.session_state.get(_RUNS)
    named = [st.query_params.get(f"run_{side}", "") for side in SIDES]
    if known and not any(named):
        st.query_params.from_dict({f"run_{side}": run.id for side, run in zip(SIDES, known, strict=True)})
    elif all(named) and named != [run.id for run in known or ()]:
        first, second = map(resources.find_run, named)
        known = st.session_state[_RUNS] = (first, second) if first and second else None
    return known


def _changed_since(runs: tuple[Run, Run], chosen: list[Config]) -> str:
    """The differences between the choices above and the settings of the results below; "" where there are none."""
    changed = [differences(run.view.config, config) for run, config in zip(runs, chosen, strict=True)]
    asked = str(st.session_state["compare_question"]).split()
    lines = [f"{side.upper()}: {row.words}" for side, rows in zip(SIDES, changed, strict=True) for row in rows]
    if asked != runs[0].view.question.split():
        lines.insert(0, "another question")
    return "; ".join(lines)


def _after(run: Run, load: Callable[[], Pipeline]) -> Pipeline:
    run.wait()
    return load()


def _live(runs: tuple[Run, Run]) -> None:
    if not all(access.gate().owns(run.owner) for run in runs):
        return
    views = [run.view for run in runs]
    working = next((n for n, view in enumerate(views) if view.running), None)
    with st.container():
        if working is not None:
            with st.container(key="progress", horizontal=True, vertical_alignment="center"):
                st.html(RENDER.progress(f"{SIDES[working].upper()}: {views[working].phase}", runs[0].seconds))
                st.button("Stop", on_click=_stop, args=(runs,), key="stop")
    for side, view in zip(SIDES, views, strict=True):
        if view.error:
            st.html(notice_html(f"{side.upper()}: {view.error}", "bad"))
    if views[0].selection or working is None:
        _draw(*views)
    if working is None and st.session_state.get("compare_finished") is not runs:
        st.session_state["compare_finished"] = runs
        st.rerun()


def _stop(runs: tuple[Run, ...]) -> None:
    for run in runs:
        run.stop()


def _draw(a: View, b: View) -> None:
    found = compare(a, b)
    st.html(summary_html(found, resources.corpus_titles([one.config.index for one in (a, b)], Paths.from_env())))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        st.markdown("##### Sentences")
        if found.sentences:
            st.html(sentences_html(found.sentences))
            st.caption(f"Verdicts of A: {found.verdicts[0]}. Of B: {found.verdicts[1]}.")
        else:
            st.html(notice_html("Neither has written anything."))
    with right:
        st.markdown("##### Scores")
        st.html(COMPARE.values(found.scores, "Scores"))
        if found.seconds:
            st.markdown("##### Seconds")
            st.html(COMPARE.values(found.seconds, "Seconds"))
    st.markdown("##### Passages")
    st.html(passages_html(found.passages))
    ids = [view.record_id for view in (a, b)]
    if all(ids) and not (a.running or b.running):
        st.caption(f"Both answers are in History. [A link to this comparison](compare?a={ids[0]}&b={ids[1]})")


# Two records ------------------------------------------------------------------------------------------------------


def _records(named: list[str], paths: Paths) -> None:
    store = resources.record_store(paths.records)
    try:
        known = {one.record_id: one for one in store.list()}
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))
        return
    if not known and not any(named):
        st.html(notice_html("No question has been answered on this machine yet. Ask two, and compare them here."))
        return
    chosen = []
    for side, column, name in zip(SIDES, st.columns(2, gap="medium"), named, strict=True):
        key = f"compare_record_{side}"
        options = list(dict.fromkeys((*filter(None, (name,)), *known)))
        if st.session_state.get(f"{key}_named") != name and name:  # the address names another than last time
            st.session_state[key] = st.session_state[f"{key}_named"] = name
        first = options[min(SIDES.index(side), len(options) - 1)]
        if st.session_state.setdefault(key, first) not in options:
            st.session_state[key] = first

        def label(one: str) -> str:
            summary = known.get(one)
            when = f" · {summary.created_at[:16].replace('T', ' ')} UTC, {summary.generator}" if summary else ""
            return f"{summary.question[:70] if summary else one}{when}"

        with column:
            chosen.append(st.selectbox(f"{side.upper()}: answer", options, key=key, format_func=label))
    views = []
    for side, name in zip(SIDES, chosen, strict=True):
        try:
            views.append(from_record(store.load(name)))
        except RagqaError as error:
            st.html(notice_html(f"{side.upper()}: {error}", "bad"))
    if len(views) == 2:
        _draw(*views)
