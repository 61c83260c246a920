"""One run on the page: progress, figures beside published ones, all questions, one question, files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
import streamlit as st

from ragqa.english.words import duration_words, quantity
from ragqa.evaluation.benchmark import Benchmark
from ragqa.evaluation.report import Report, Row
from ragqa.infra.cleaning import cell
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.types import Passage
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import VERDICT_CLASS, notice_html
from ragqa.ui.pages.evaluation.render import EVALUATION, hits_html
from ragqa.ui.pages.evaluation.runs import BackgroundRun, EvaluationView
from ragqa.ui.state import resources

LATEST: Final = 5
OPENED: Final = "evaluation_opened"  # plain session key: the number of the open question, by run
LISTED: Final = 500  # questions in the selection list; the table has all
TABLE_HEIGHT: Final = 400  # pixels
ALL, WRONG, RIGHT = "all", "wrong", "right"


def draw_progress(run: BackgroundRun) -> None:
    """Draws the progress while the run is running; reruns the whole page when it has ended."""
    view = run.view
    if not view.running or not access.gate().may(Act.EVALUATION):
        st.rerun()
    status, button = st.columns([5, 1], vertical_alignment="center")
    phase = "Stopping after the requests in progress" if run.is_stopping else view.phase
    status.html(notice_html(f"{phase} …"))
    button.button("Stop", on_click=_stop, args=(run,), key="evaluate_stop", width="stretch", disabled=run.is_stopping)
    if view.total:
        left = f", {duration_words(view.seconds_left)} left" if view.seconds_left is not None else ""
        kept = f", {view.n_restored:,} of them restored" if view.n_restored else ""
        st.progress(
            min(1.0, view.done / view.total), text=f"{view.done:,} of {quantity(view.total, 'question')}{kept}{left}"
        )
    if view.rows:
        st.caption("So far:")
        st.html(EVALUATION.figures(view.report.figures))
        st.caption("The latest questions:")
        st.html(EVALUATION.latest(view.rows[-LATEST:], view.report.columns, run.benchmark))


def _stop(run: BackgroundRun) -> None:
    with access.told(), access.gate().doing(Act.EVALUATION, benchmark=run.benchmark.name, stopped=True):
        run.stop()


def draw_results(run_id: str, benchmark: Benchmark, view: EvaluationView, folder: Path, paths: Paths) -> None:
    """Draws the results of a run that has ended."""
    if view.report.notes:
        st.html(notice_html("\n".join(view.report.notes)))
    if view.report.figures:
        st.html(EVALUATION.figures(view.report.figures))
    draw_comparisons(view.report)
    if view.rows:
        st.subheader("Questions", anchor="questions")
        _questions(run_id, benchmark, view, paths)
    _downloads(view, folder)


def draw_comparisons(report: Report, heading: str = "Side by side") -> None:
    """The tables of a report, each under its title if it has one."""
    if report.comparisons:
        st.subheader(heading, anchor="published")
    for comparison in report.comparisons:
        if comparison.title:
            st.caption(plain_markdown(comparison.title))
        st.html(EVALUATION.comparison(comparison))


def _questions(run_id: str, benchmark: Benchmark, view: EvaluationView, paths: Paths) -> None:
    judged = any(row.right is not None for row in view.rows)
    names = {ALL: "all", WRONG: f"only “{benchmark.verdicts[1]}”", RIGHT: f"only “{benchmark.verdicts[0]}”"}
    if judged:
        wrong = sum(row.right is False for row in view.rows)
        right, bad = benchmark.verdicts
        st.caption(f"{wrong:,} of {len(view.rows):,} {bad}; “{right}” means that {benchmark.right}.")
    left, middle = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    shown = ALL
    if judged:
        key = f"evaluate_show_{run_id}"
        shown = left.segmented_control("Show", list(names), default=ALL, key=key, format_func=names.__getitem__) or ALL
    words = middle.text_input("Question contains", key=f"evaluate_words_{run_id}")
    rows = [row for row in view.rows if _is_shown(row, shown, words)]
    if not rows:
        st.html(notice_html("No question matches."))
        return
    _table(run_id, view, rows, f"{shown}_{words}")
    opened = _opened(run_id, rows)
    if opened is not None:
        _one(benchmark, view, opened, paths)


def _is_shown(row: Row, shown: str, words: str) -> bool:
    right = shown == ALL or row.right is (shown == RIGHT)
    return right and words.casefold().strip() in row.question.casefold()


def _table(run_id: str, view: EvaluationView, rows: list[Row], part: str) -> None:
    """The table of questions; a click on a heading sorts it, ticking a row opens its question."""
    marks = {True: "✓", False: "✗", None: ""}
    frame = pd.DataFrame(
        {
            "#": [row.number for row in rows],
            **({"": [marks[row.right] for row in rows]} if any(row.right is not None for row in rows) else {}),
            "question": [cell(row.question) for row in rows],  # escaped, because the table can be saved as CSV
            **{column.heading: [row.values.get(column.key) for row in rows] for column in view.report.columns},
        }
    )
    formats = {
        column.heading: st.column_config.NumberColumn(format=f"%.{column.decimals}f") for column in view.report.columns
    }
    config: dict[str, Any] = {"#": st.column_config.NumberColumn(width=50), "": st.column_config.Column(width=50)}
    key = f"evaluate_table_{run_id}_{part}"
    st.dataframe(
        frame,
        hide_index=True,
        key=key,
        height=min(TABLE_HEIGHT, 38 + 35 * len(rows)),
        column_config=config | {"question": st.column_config.Column(width=620)} | formats,
        on_select=partial(_open_selected, run_id, key, [row.number for row in rows]),
        selection_mode="single-row",
        alt="Questions of this run with their values",
        placeholder="–",
    )


def _open_selected(run_id: str, key: str, numbers: list[int]) -> None:
    selected = st.session_state[key]["selection"]["rows"]
    if selected:
        _open(run_id, numbers[selected[0]])


def _open(run_id: str, number: int | None) -> None:
    st.session_state.setdefault(OPENED, {})[run_id] = number
    st.session_state.pop(f"evaluate_open_{run_id}", None)


def _opened(run_id: str, rows: list[Row]) -> Row | None:
    """The open question, chosen by the list, the table or the buttons."""
    by_number = {row.number: row for row in rows}
    known = st.session_state.setdefault(OPENED, {})
    listed = list(by_number)[:LISTED]
    if known.get(run_id) in by_number and known[run_id] not in listed:
        listed.append(known[run_id])
    key = f"evaluate_open_{run_id}"
    if known.get(run_id) not in by_number:
        known[run_id] = None
    st.session_state[key] = known[run_id]
    chosen, before, after = st.columns([8, 1, 1], gap="small", vertical_alignment="bottom")
    number = chosen.selectbox(
        "Open a question",
        listed,
        index=None,
        key=key,
        format_func=lambda n: f"{n}. {by_number[n].question}" if n in by_number else str(n),
        placeholder="choose one here, or tick its row above",
        on_change=lambda: known.update({run_id: st.session_state[key]}),
    )
    order = list(by_number)
    place = order.index(number) if number in by_number else -1
    step = partial(_step, run_id, order, place)
    before.button(
        "Previous", key=f"evaluate_before_{run_id}", on_click=step, args=(-1,), disabled=place <= 0, width="stretch"
    )
    after.button(
        "Next",
        key=f"evaluate_after_{run_id}",
        on_click=step,
        args=(1,),
        disabled=place + 1 >= len(order),
        width="stretch",
    )
    return by_number.get(number) if number is not None else None


def _step(run_id: str, order: list[int], place: int, by: int) -> None:
    _open(run_id, order[place + by])


def _one(benchmark: Benchmark, view: EvaluationView, row: Row, paths: Paths) -> None:
    """One question: answer, reference, passages and steps."""
    options = [one for one in benchmark.options if one.name == "index"]
    corpora = [name for one in options for name in (view.settings.get(one.name), *one.choices) if name]
    with st.container(border=True):
        st.html(EVALUATION.question_head(row, view.report.columns, benchmark))
        if row.answer is not None:
            st.markdown("### Answer")
            st.html(EVALUATION.answer(row.answer, row.sentences, VERDICT_CLASS))
        if row.matches:
            st.markdown("### Reference")
            st.html(EVALUATION.matches(row))
        if row.hits or corpora:
            st.markdown("### Passages")
            st.html(hits_html(row, row_passages(row, corpora, paths)))
        if row.steps:
            st.html(EVALUATION.steps(row))


def row_passages(row: Row, corpora: list[str], paths: Paths) -> dict[str, Passage | None]:
    """The passages of hits and gold by id, in the first of these corpora that still has any of them."""
    names = {*(hit.passage_id for hit in row.hits), *row.gold}
    for corpus in filter(None, (resources.corpus_or_none(one, paths) for one in corpora)):
        places = {name: corpus.position_of.get(name) for name in names}
        if any(place is not None for place in places.values()):
            return {name: None if place is None else corpus.passages[place] for name, place in places.items()}
    return {}


def _downloads(view: EvaluationView, folder: Path) -> None:
    there = [one for one in view.report.files if (folder / one.name).is_file()]
    if not there:
        return
    st.subheader("Files", anchor="files")
    with st.container(horizontal=True):
        for one in there:
            read = (folder / one.name).read_bytes
            st.download_button(one.label, read, one.name, one.mime, on_click="ignore", key=f"evaluate_file_{one.name}")
