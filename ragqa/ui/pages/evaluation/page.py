"""The page Benchmarks: choose and run a benchmark, follow it, and view or download its results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from ragqa.english.words import quantity
from ragqa.evaluation import catalogue
from ragqa.evaluation.benchmark import Benchmark
from ragqa.evaluation.two_runs import compared, paired, turned
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.evaluation.form import settings_form
from ragqa.ui.pages.evaluation.render import EVALUATION
from ragqa.ui.pages.evaluation.results import draw_comparisons, draw_progress, draw_results
from ragqa.ui.pages.evaluation.runs import EvaluationRuns, EvaluationView
from ragqa.ui.pages.notices import draw_notices, error_kept, error_shown
from ragqa.ui.shared import shared

POLL_SECONDS = 0.5
LISTED_RUNS = 50
_CHOSEN, _SHOWN, _LINKED = "evaluation_benchmark", "evaluation_shown", "evaluation_linked"  # plain keys
_PROBLEM = "evaluation_problem"


@shared()
def all_runs(paths: Paths) -> EvaluationRuns:
    """The evaluations of this RAGQA_HOME, shared by all sessions."""
    return EvaluationRuns(paths, offered())


def offered() -> Mapping[str, Benchmark]:
    """The benchmarks of the page by name."""
    return {name: one for name, one in catalogue.benchmarks().items() if one.on_page}


def evaluation_page() -> None:
    """Draws the page. ``?run=ID`` shows that run, two of them are compared; a running one is shown without it."""
    st.title("Benchmarks")
    paths = Paths.from_env()
    access.gate().demand(Act.EVALUATION)
    runs = all_runs(paths)
    ticked = st.query_params.get_all("run")
    if len(ticked) > 1:
        _draw_two(ticked[1::-1], runs)  # the older one is further down in the list, and A
        return
    _follow_link(runs)
    benchmark = offered()[_choice(runs)]
    st.caption(benchmark.description)
    settings = settings_form(benchmark, paths)
    _run_button(benchmark, settings, runs)
    draw_notices(_PROBLEM)
    shown = st.session_state.setdefault(_SHOWN, {}).get(benchmark.name)
    if shown:
        _show(shown, benchmark, runs, paths)
    elif benchmark.published:
        draw_comparisons(benchmark.published(settings or benchmark.settings()), "Published figures")
    _earlier(runs)


def _follow_link(runs: EvaluationRuns) -> None:
    """Shows the run of the address (once for each address), else the one that is running."""
    linked = st.query_params.get("run")
    shown = st.session_state.setdefault(_SHOWN, {})
    if linked and st.session_state.get(_LINKED) != linked:
        st.session_state[_LINKED] = linked
        with error_kept(_PROBLEM):
            name = runs.view(linked).benchmark
            shown[name] = linked
            _choose(name)
    current = runs.current
    if current and not linked and _CHOSEN not in st.session_state:
        shown[current.benchmark.name] = current.run_id
        _choose(current.benchmark.name)


def _choose(name: str) -> None:
    st.session_state[_CHOSEN] = name
    st.session_state.pop("evaluate_benchmark", None)


def _choice(runs: EvaluationRuns) -> str:
    key, titles = "evaluate_benchmark", {name: one.title for name, one in offered().items()}
    st.session_state.setdefault(key, st.session_state.get(_CHOSEN, next(iter(titles))))
    found: str = st.radio(
        *("Benchmark", list(titles)),
        key=key,
        format_func=titles.__getitem__,
        horizontal=True,
        on_change=lambda: _address(st.session_state[_SHOWN].get(st.session_state[key], "")),
    )
    st.session_state[_CHOSEN] = found
    current = runs.current
    if current and current.benchmark.name != found:
        view = current.view
        words = f"{current.benchmark.title} is running: {view.done:,} of {quantity(view.total, 'question')}."
        st.html(notice_html(f"{words} One runs at a time."))
    return found


def _run_button(benchmark: Benchmark, settings: Mapping[str, Any] | None, runs: EvaluationRuns) -> None:
    st.button(
        "Run",
        type="primary",
        key="evaluate_run",
        disabled=settings is None or runs.current is not None,
        on_click=partial(_start, benchmark, settings or {}, runs),
    )


def _start(benchmark: Benchmark, settings: Mapping[str, Any], runs: EvaluationRuns, *, restart: bool = False) -> None:
    """Starts the run and puts its id into the address, so that it can be found again and shared."""
    with error_kept(_PROBLEM):
        with access.gate().doing(Act.EVALUATION, benchmark=benchmark.name):
            started = runs.start(benchmark.name, settings, restart=restart)
        st.session_state.setdefault(_SHOWN, {})[benchmark.name] = started.run_id
        _address(started.run_id)


def _address(run_id: str) -> None:
    """Puts this run into the address, or removes it."""
    st.session_state[_LINKED] = run_id
    if run_id:
        st.query_params["run"] = run_id
    else:
        st.query_params.pop("run", None)


def _show(run_id: str, benchmark: Benchmark, runs: EvaluationRuns, paths: Paths) -> None:
    st.divider()
    with error_shown():
        view = runs.view(run_id)
        st.html(EVALUATION.run_head(benchmark, view.settings))
        live = runs.live(run_id)
        if live and view.running:
            st.fragment(partial(draw_progress, live), run_every=POLL_SECONDS)()
            return
        _ended(run_id, benchmark, view, runs)
        draw_results(run_id, benchmark, view, runs.folder / run_id, paths)


def _ended(run_id: str, benchmark: Benchmark, view: EvaluationView, runs: EvaluationRuns) -> None:
    """How the run ended, and buttons that continue it or start it again."""
    if view.error:
        st.html(notice_html(view.error, "bad" if view.phase != "Interrupted" else "mixed"))
    elif view.stopped:
        of = quantity(view.total, "question")
        words = f"Stopped after {view.done:,} of {of}." if view.total else "Stopped while loading."
        st.html(notice_html(f"{words} What was done is stored: continue when you like.", "mixed"))
    else:
        restored = f", {view.n_restored:,} of them restored" if view.n_restored else ""
        st.html(notice_html(f"Done: {quantity(view.done, 'question')}{restored}.", "good"))
    if view.failed:
        words = f"{quantity(view.failed, 'question')} got no answer or no score; continue to try them once more."
        st.html(notice_html(words, "mixed"))
    busy, start = runs.current is not None, partial(_start, benchmark, view.settings, runs)
    with st.container(horizontal=True):
        if not view.complete:
            st.button("Continue", key=f"evaluate_on_{run_id}", on_click=start, disabled=busy)
        explanation = "Throws away what this run has stored."
        anew = partial(start, restart=True)
        st.button("Run from the start", key=f"evaluate_anew_{run_id}", on_click=anew, disabled=busy, help=explanation)


def _draw_two(run_ids: list[str], runs: EvaluationRuns) -> None:
    """Two runs of one benchmark side by side, and the questions whose result turned."""
    st.html('<a class="rq-read" href="evaluate" target="_self">All benchmarks</a>')
    with error_shown():
        a, b = map(runs.view, run_ids)
        benchmark, pairs = offered()[a.benchmark], paired(a.rows, b.rows)
        for letter, view in zip("AB", (a, b), strict=True):
            st.html(EVALUATION.run_head(offered()[view.benchmark], view.settings, f"{letter}: "))
        if a.benchmark != b.benchmark or not pairs:
            st.html(notice_html("These runs have no question in common: tick two of one benchmark.", "mixed"))
            return
        st.html(EVALUATION.comparison(compared(pairs, a.report.columns)))
        both = turned(pairs)
        st.subheader(f"{quantity(len(both), 'question')} turned", anchor=False)
        if both:
            st.html(EVALUATION.turned(both, benchmark))


def _earlier(runs: EvaluationRuns) -> None:
    found = runs.list()
    if found:
        st.divider()
        st.subheader("Earlier runs", anchor="earlier")
        st.html(EVALUATION.runs(found[:LISTED_RUNS]))
