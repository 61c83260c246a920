"""The page where a benchmark is chosen, run, watched, looked into and taken away."""

from __future__ import annotations

from functools import partial

import streamlit as st

from ragqa.errors import RagqaError
from ragqa.paths import Paths
from ragqa.ui import resources
from ragqa.ui.benchmarks.answers import answers_work
from ragqa.ui.benchmarks.fanoutqa import fanoutqa_work, leaderboard_of
from ragqa.ui.benchmarks.inputs import request_form
from ragqa.ui.benchmarks.pandachat import pandachat_work
from ragqa.ui.benchmarks.render import comparison_html, run_head_html, runs_html
from ragqa.ui.benchmarks.request import BENCHMARKS, Request
from ragqa.ui.benchmarks.results import draw_progress, draw_results
from ragqa.ui.benchmarks.retrieval import retrieval_work
from ragqa.ui.benchmarks.runs import Runs
from ragqa.ui.benchmarks.view import View
from ragqa.ui.render import notice_html

POLL_SECONDS = 0.5
_CHOSEN, _SHOWN, _LINKED = "evaluation_benchmark", "evaluation_shown", "evaluation_linked"  # plain keys
_PROBLEM = "evaluation_problem"
_WORK = {
    "retrieval": retrieval_work,
    "answers": answers_work,
    "pandachat": pandachat_work,
    "fanoutqa": fanoutqa_work,
}


@st.cache_resource(show_spinner=False)
def all_runs(paths: Paths) -> Runs:
    """The evaluations of this home, shared by every session."""
    return Runs(paths, _WORK)


def evaluation_page() -> None:
    """Draws the page. ``?run=ID`` shows that run; one that is under way is found again without it."""
    st.html(resources.style())
    st.title("Evaluate")
    paths = Paths.from_env()
    runs = all_runs(paths)
    _follow_link(runs)
    benchmark = BENCHMARKS[_choice(runs)]
    st.caption(benchmark.description)
    request = request_form(benchmark, paths)
    _run_button(request, runs)
    with st.container():  # always there, so that a message here moves nothing below
        problem = st.session_state.pop(_PROBLEM, "")
        if problem:
            st.html(notice_html(problem, "bad"))
    shown = st.session_state.setdefault(_SHOWN, {}).get(benchmark.name)
    if shown:
        _show(shown, runs, paths)
    elif benchmark.name == "fanoutqa":
        st.subheader("Published figures", anchor="published")
        setting = (request and request.setting) or st.session_state["evaluation"].get("setting", "closed-book")
        st.html(comparison_html(leaderboard_of(Request("fanoutqa", "", setting=setting))))
    _earlier(runs)


def _follow_link(runs: Runs) -> None:
    """Takes over the run that the address names, once; else the one that is under way."""
    linked = st.query_params.get("run")
    shown = st.session_state.setdefault(_SHOWN, {})
    if linked and st.session_state.get(_LINKED) != linked:
        st.session_state[_LINKED] = linked
        try:
            request = runs.view(linked).request
        except RagqaError as error:
            st.session_state[_PROBLEM] = str(error)
        else:
            shown[request.benchmark] = linked
            _choose(request.benchmark)
    current = runs.current
    if current and not linked and _CHOSEN not in st.session_state:
        shown[current.view.request.benchmark] = current.run_id
        _choose(current.view.request.benchmark)


def _choose(name: str) -> None:
    st.session_state[_CHOSEN] = name
    st.session_state.pop("evaluate_benchmark", None)


def _choice(runs: Runs) -> str:
    key = "evaluate_benchmark"
    st.session_state.setdefault(key, st.session_state.get(_CHOSEN, next(iter(BENCHMARKS))))
    titles = {name: one.title for name, one in BENCHMARKS.items()}
    found: str = st.radio(
        *("Benchmark", list(BENCHMARKS)),
        key=key,
        format_func=titles.__getitem__,
        horizontal=True,
        on_change=lambda: _address(st.session_state[_SHOWN].get(st.session_state[key], "")),
    )
    st.session_state[_CHOSEN] = found
    current = runs.current
    if current and current.view.request.benchmark != found:
        words = f"{titles[current.view.request.benchmark]} is under way: {current.view.done:,} of "
        st.html(notice_html(f"{words}{current.view.total:,} questions. One runs at a time."))
    return found


def _run_button(request: Request | None, runs: Runs) -> None:
    st.button(
        "Run",
        type="primary",
        key="evaluate_run",
        disabled=request is None or runs.current is not None,
        on_click=partial(_start, request, runs),
    )


def _start(request: Request | None, runs: Runs, *, restart: bool = False) -> None:
    """Starts the run and puts it into the address, so that it can be found again and shared."""
    if request is None:
        return
    try:
        run = runs.start(request, restart=restart)
    except RagqaError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state.setdefault(_SHOWN, {})[request.benchmark] = run.run_id
    _address(run.run_id)


def _address(run_id: str) -> None:
    """Names this run in the address, or none."""
    st.session_state[_LINKED] = run_id
    if run_id:
        st.query_params["run"] = run_id
    else:
        st.query_params.pop("run", None)


def _show(run_id: str, runs: Runs, paths: Paths) -> None:
    st.divider()
    try:
        view = runs.view(run_id)
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))
        return
    st.html(run_head_html(view))
    live = runs.live(run_id)
    if live and view.running:
        st.fragment(partial(draw_progress, live), run_every=POLL_SECONDS)()
        return
    _ended(run_id, view, runs)
    draw_results(run_id, view, runs.folder / run_id, paths)


def _ended(run_id: str, view: View, runs: Runs) -> None:
    """What became of the run, and the buttons that go on with it or begin it anew."""
    if view.error:
        st.html(notice_html(view.error, "bad" if view.phase != "Interrupted" else "mixed"))
    elif view.stopped:
        words = f"Stopped after {view.done:,} of {view.total:,} questions. They are kept: go on when you like."
        st.html(notice_html(words, "mixed"))
    else:
        kept = f", {view.n_kept:,} of them kept from before" if view.n_kept else ""
        st.html(notice_html(f"Done: {view.done:,} questions{kept}.", "good"))
    busy = runs.current is not None
    with st.container(horizontal=True):
        if not view.complete:
            on, words = partial(_start, view.request, runs), "Go on"
            st.button(words, key=f"evaluate_on_{run_id}", on_click=on, disabled=busy)
        anew = partial(_start, view.request, runs, restart=True)
        explanation = "Throws away what this run has kept."
        st.button("Begin anew", key=f"evaluate_anew_{run_id}", on_click=anew, disabled=busy, help=explanation)


def _earlier(runs: Runs) -> None:
    found = runs.list()
    if found:
        st.divider()
        st.subheader("Earlier runs", anchor="earlier")
        st.html(runs_html(found[:50]))
