"""The page Sweep: varies settings over many questions, draws the results, and applies a chosen point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from ragqa.corpus.questions import GoldQuestion, GoldUnit, load_gold
from ragqa.english.words import quantity
from ragqa.evaluation.catalogue import benchmark_of
from ragqa.evaluation.sweep import FILTERS, WEIGHT, Axis, Sweep, axes_of, effective, name_of, present_value, swept
from ragqa.index import Index
from ragqa.pipeline import clean_question
from ragqa.plugins import registry
from ragqa.server.access.policy import Act
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Question
from ragqa.types.streams import returned
from ragqa.ui import access
from ragqa.ui.html.charts import MEASURES, sweep_lines, sweep_surface
from ragqa.ui.html.compare import COMPARE
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.compare import kept_choice
from ragqa.ui.pages.evaluation.form import files_for, fitting_indexes
from ragqa.ui.pages.notices import draw_no_index, error_shown
from ragqa.ui.pages.settings import apply_values, current_settings
from ragqa.ui.state import resources

FIRST = 20  # questions of a file
MOST = 200
LIMITS_WAY, WEIGHTS_WAY, TOP_K_WAY = "Threshold × max drop", "Two weights", "Top-k"
_VARIED = {LIMITS_WAY: ("threshold", "max_drop"), TOP_K_WAY: ("top_k",)}
_ASKED, _EXAMPLES = "The question asked last", "The example questions of the corpus"
_DONE = "swept"


def sweep_page() -> None:
    """Draws the choices, runs the sweep and draws its results."""
    st.html(
        '<div class="rq-brand"><h1>Sweep</h1><p>What the settings do to the passages that are kept, over many '
        "questions at once. Each question is retrieved once.</p></div>"
    )
    paths = Paths.from_env()
    names = resources.index_names(paths)
    if not names:
        draw_no_index(paths.indexes)
        return
    titles, last = resources.corpus_titles(names, paths), st.session_state.get("kept_corpus")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        index = kept_choice("Corpus", names, last, "sweep_corpus", titles.__getitem__, width=320)
        source = _source(index, paths)
        count = int(st.number_input("How many", 1, MOST, FIRST, key="sweep_count", width=120))
        way = st.selectbox("Settings varied", (LIMITS_WAY, WEIGHTS_WAY, TOP_K_WAY), key="sweep_way", width=220)
    rankings, encoder = resources.rankings_of(index, paths)
    config = current_settings(index, Config.from_env(), rankings, encoder)
    axes = _axes(way, config, rankings)
    if axes is None:
        return
    if st.button("Sweep", type="primary", key="sweep_go"):
        _run(config, axes, source or _ASKED, count, paths)
    found: tuple[Sweep, Config, float] | None = st.session_state.get(_DONE)
    if found is None or found[1].index != index:
        words = "Choose questions with gold passages to see recall and F2, or one question to see how many are kept."
        earlier = f" The last sweep was of {_title(found[1])}: choose that corpus to see it again." if found else ""
        st.html(notice_html(words + earlier))
        return
    _draw(*found, config)


def _source(index: str, paths: Paths) -> str | Path | None:
    """The choice of questions: the last one asked, the examples, a file of questions with gold; None without any."""
    asked = str(st.session_state.get("question") or "").strip()
    option = next(one for one in benchmark_of("retrieval").options if one.kind in {"file", "argument"})
    may_see = access.gate().may(Act.EVALUATION)  # the files are the server's
    files = {file.path: file.label for file in files_for(option, paths)} if may_see else {}
    offered: dict[str | Path, str] = {_ASKED: f"{_ASKED}: {asked[:50]}"} if asked else {}
    if resources.examples_of(index, paths):
        offered[_EXAMPLES] = _EXAMPLES
    for path, label in files.items():
        offered[path] = label
    key = f"sweep_source_{index}"  # the browser keeps the choice of a field that stays
    if st.session_state.get(key) not in offered:
        st.session_state.pop(key, None)
    first = next((n for n, one in enumerate(offered) if one == _EXAMPLES), 0)
    return st.selectbox(
        "Questions", list(offered), index=first, key=key, format_func=lambda one: offered[one], width=380
    )


def _axes(way: str, config: Config, rankings: Sequence[str]) -> tuple[Axis, ...] | None:
    if way in _VARIED:
        return axes_of(_VARIED[way], config)
    if len(rankings) < 2:
        st.html(notice_html("This corpus has one ranking: there is no weight to vary.", "mixed"))
        return None
    with st.container(horizontal=True):
        one = st.selectbox("Weight of", rankings, key="sweep_x", format_func=registry.label, width=220)
        other = st.selectbox("and of", rankings[::-1], key="sweep_y", format_func=registry.label, width=220)
    if one == other:
        st.html(notice_html("Choose two different rankings.", "mixed"))
        return None
    if config.reranking.model:
        st.html(notice_html("Weights are measured before the reranker reads: its scores are left out here."))
    return axes_of([WEIGHT + name for name in (one, other)], config)


def _run(config: Config, axes: Sequence[Axis], source: str | Path, count: int, paths: Paths) -> None:
    """Runs the sweep with a progress bar; after an error the earlier sweep stays on the page."""
    bar = st.progress(0.0, "Loading the models (once)")
    began = time.perf_counter()
    with error_shown():
        none = replace(config, generation=replace(config.generation, generator="none"))
        with access.gate().doing(Act.SWEEP, config.index):
            pipeline = resources.pipeline(none, paths)
        questions, unit = _questions(source, config.index, pipeline.index, paths)
        with_gold = [one for one in questions if one.gold] or list(questions)
        steps = swept(pipeline, pipeline.config, axes, with_gold[:count], unit, paths)
        found = returned(steps, lambda step: bar.progress(step[0] / step[1], f"Step {step[0]:,} of {step[1]:,}"))
        st.session_state[_DONE] = (found, config, time.perf_counter() - began)
    bar.empty()


def _questions(source: str | Path, name: str, index: Index, paths: Paths) -> tuple[Sequence[GoldQuestion], GoldUnit]:
    """The questions and the unit of their gold. Raises CorpusError, QuestionError."""
    if isinstance(source, Path):
        if name not in fitting_indexes(benchmark_of("retrieval"), source, paths):
            st.html(
                notice_html("The gold of this file is not in this corpus: only the kept passages are counted.", "mixed")
            )
            asked, _ = load_gold(source, index.passages)
            return [replace(one, gold=frozenset()) for one in asked], "passage"
        return load_gold(source, index.passages)
    if source == _EXAMPLES:
        return resources.example_gold(name, paths), "passage"
    asked_now = clean_question(Question(str(st.session_state.get("question", ""))))
    known = {one.question.text: one for one in resources.example_gold(name, paths)}
    return [known.get(asked_now.text, GoldQuestion(asked_now, frozenset()))], "passage"


def _title(config: Config) -> str:
    return resources.corpus_titles([config.index], Paths.from_env())[config.index]


# What came of it --------------------------------------------------------------------------------------------------


def _draw(found: Sweep, config: Config, seconds: float, now: Config) -> None:
    st.caption(
        f"{quantity(len(found.points), 'point')} over {quantity(found.n_questions, 'question')} of "
        f"{plain_markdown(_title(config))} in {seconds:.1f} s. F2 of what is kept: recall counts "
        "twice, since the writer can leave a passage out and cannot use one it never got."
    )
    chosen = {axis.name: st.session_state.get(f"sweep_at_{axis.name}") for axis in found.axes}
    marked: list[tuple[str, dict[str, Any]]] = [
        ("now", {axis.name: present_value(now, axis.name) for axis in found.axes})
    ]
    marked += [("chosen", chosen)] if None not in chosen.values() else []
    marked += [("best", found.best().values)] if found.has_gold else []
    measures = [name for name in MEASURES if found.has_gold or name == "kept"]
    names = {axis.name: name_of(axis.name) for axis in found.axes}
    if len(found.axes) == 2:
        measure = st.segmented_control(
            "Shown", measures, default=measures[0], key="sweep_measure", format_func=MEASURES.__getitem__
        )
        chart = sweep_surface(found, measure or measures[0], names, marked)
    else:
        chart = sweep_lines(found, names, marked)
    picture, words = st.columns([3, 2], gap="large")
    with picture:
        event = st.altair_chart(chart, width="stretch", on_select="rerun", key=f"sweep_chart_{id(found)}")
    clicked = event["selection"].get("point") or []
    with words:
        _choose(found, now, clicked[0] if clicked else None)


def _choose(found: Sweep, config: Config, clicked: dict[str, float] | None) -> None:
    """The chosen point beside the present settings and the best point, and a button that applies it."""
    if clicked and st.session_state.get("sweep_clicked") != (id(found), clicked):
        st.session_state["sweep_clicked"] = (id(found), clicked)
        for axis in found.axes:
            if axis.name in clicked:
                st.session_state[f"sweep_at_{axis.name}"] = min(
                    axis.values, key=lambda one: abs(one - clicked[axis.name])
                )
    now = {axis.name: present_value(config, axis.name) for axis in found.axes}
    best = found.best() if found.has_gold else found.present
    chosen = {}
    for axis in found.axes:
        key = f"sweep_at_{axis.name}"
        if st.session_state.get(key) not in axis.values:
            st.session_state[key] = best.values.get(axis.name, axis.values[0])
        chosen[axis.name] = st.select_slider(name_of(axis.name), axis.values, key=key)
    point = next(one for one in found.points if one.values == chosen)
    rows = [("chosen", point)]
    rows += [("the settings now", one) for one in (found.present, *found.points) if one.values == now][:1]
    if found.has_gold:
        rows.append((f"best F2: {best.words}", best))
    st.html(COMPARE.points(rows))
    st.button("Apply the chosen point", key="sweep_apply", on_click=_apply, args=(chosen,), type="primary")
    told = st.session_state.pop("sweep_told", "")
    if told:
        st.html(notice_html(told, "good"))


def _apply(chosen: dict[str, float]) -> None:
    values = {name: type(FILTERS[name].default)(value) if name in FILTERS else value for name, value in chosen.items()}
    apply_values(effective(values), Config.from_env())
    words = ", ".join(f"{name_of(name).lower()} {value:g}" for name, value in chosen.items())
    st.session_state["sweep_told"] = f"The settings have {words} now; the page Ask uses them."
