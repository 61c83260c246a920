"""The page Data sets: make a data set from a corpus, edit its stages, let experts label it, and use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final

import streamlit as st

from ragqa.corpus.files import read_utf8
from ragqa.english.words import quantity
from ragqa.errors import CorpusError, RecordError
from ragqa.evaluation.catalogue import benchmark_of
from ragqa.infra.cleaning import cell
from ragqa.infra.files import write_whole
from ragqa.infra.journal import read_stamp, translated
from ragqa.lab.dataset.benchmark import CARD, MAKE
from ragqa.lab.dataset.review import (
    ADJUDICATOR,
    KINDS,
    LABELS,
    MEANINGS,
    Labels,
    Pair,
    agreement,
    decision,
    give,
    labels_in,
    pairs_of,
    read_given,
)
from ragqa.lab.dataset.stages import FILES, SPLIT, STAGES, TOPICS, Stages, rows_in, topics_in
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.types import Passage
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown
from ragqa.ui.html.render import notice_html
from ragqa.ui.html.template import Templates
from ragqa.ui.pages.evaluation.form import MAX_UPLOAD_MB, settings_form
from ragqa.ui.pages.evaluation.page import POLL_SECONDS, all_runs
from ragqa.ui.pages.evaluation.render import EVALUATION
from ragqa.ui.pages.evaluation.results import draw_comparisons, draw_progress
from ragqa.ui.pages.evaluation.runs import EvaluationRuns
from ragqa.ui.pages.notices import draw_notices, error_kept, error_shown
from ragqa.ui.shared import shared
from ragqa.ui.state import resources

_TEMPLATES: Final = Templates("dataset.html")


def pair_html(row: Mapping[str, Any], passage_id: str, passage: Passage | None, told: Sequence[str]) -> str:
    """The question, its kind and the passage; ``told`` are the labels that two reviewers gave, without names."""
    kinds = " · ".join(str(row[key]) for key in ("kind", "persona", "form") if row.get(key))
    return _TEMPLATES.pair(row, passage_id, passage, kinds, told)


MAKING, LOOKING, LABELLING, USING = "Make", "Stages", "Review", "Use"
SHOWN_ROWS = 300
# plain keys: those of widgets vanish when the page changes
_SET, _PROBLEM, _TAKEN, _WHO = "dataset_chosen", "dataset_problem", "dataset_taken", "dataset_who"


@shared()
def _making(paths: Paths) -> EvaluationRuns:
    return EvaluationRuns(paths, {MAKE.name: MAKE})


def dataset_page() -> None:
    """Draws the page; ``?set=ID`` names the data set."""
    access.gate().demand(Act.EVALUATION)
    words = "Questions with gold passages, made from one of your corpora and checked by experts."
    st.html(f'<div class="rq-brand"><h1>Data sets</h1><p>{words}</p></div>')
    paths = Paths.from_env()
    runs = _making(paths)
    names = _sets(runs.folder)
    views = (MAKING, LOOKING, LABELLING, USING) if names else (MAKING,)
    st.session_state.setdefault("dataset_view", st.query_params.get("view", MAKING))
    if st.session_state["dataset_view"] not in views:
        st.session_state["dataset_view"] = MAKING
    view = MAKING
    if names:
        view = st.radio("View", views, key="dataset_view", horizontal=True, label_visibility="collapsed")
    draw_notices(_PROBLEM)
    if view == MAKING:
        _make(runs, paths)
        return
    folder = runs.folder / _chosen(names, runs)
    draw: Mapping[str, Callable[[], None]] = {
        LOOKING: partial(_stages, folder, runs),
        LABELLING: partial(_review, folder),
        USING: partial(_use, folder, paths),
    }
    with error_shown():
        draw[view]()


def _sets(folder: Path) -> list[str]:
    """The data sets whose corpus this person may read, the newest first."""
    found = [path.parent for path in folder.glob(f"{MAKE.name}-*/{STAGES}")]
    ordered = sorted(found, key=lambda path: -path.stat().st_mtime)
    return [path.name for path in ordered if _may_see(_index_of(path))]


def _may_see(index: str) -> bool:
    return access.gate().may(Act.READ, index) if index else not access.is_guarded()


def _chosen(names: list[str], runs: EvaluationRuns) -> str:
    words = {one.run_id: f"{one.words}, {one.state}" for one in runs.list()}
    current = st.session_state.get(_SET) or st.query_params.get("set")
    found = st.selectbox(
        *("Data set", names, names.index(current) if current in names else 0),
        format_func=lambda name: f"{words.get(name, 'made on the command line')} ({name.rpartition('-')[2]})",
    )
    st.session_state[_SET] = st.query_params["set"] = found
    return str(found)


# Make ---------------------------------------------------------------------------------------------------------------


def _make(runs: EvaluationRuns, paths: Paths) -> None:
    st.caption(MAKE.description)
    settings = settings_form(MAKE, paths)
    busy = runs.current is not None
    start = partial(_start, runs, settings or {})
    st.button("Make", type="primary", key="dataset_make", disabled=settings is None or busy, on_click=start)
    run_id = runs.current.run_id if runs.current else st.session_state.get(_SET)
    if run_id not in {one.run_id for one in runs.list()}:
        return
    live, view = runs.live(run_id), runs.view(run_id)
    if live and view.running:
        st.fragment(partial(draw_progress, live), run_every=POLL_SECONDS)()
        return
    words = view.error or (
        "Stopped; what was done is stored." if view.stopped else "Done. Stages, Review and Use are above."
    )
    st.html(notice_html(words, "bad" if view.error else "mixed" if view.stopped else "good"))
    if not view.complete:
        st.button("Continue", key="dataset_on", on_click=partial(_start, runs, view.settings), disabled=busy)
    st.html(EVALUATION.figures(view.report.figures))
    draw_comparisons(view.report, "Result")


def _start(runs: EvaluationRuns, settings: Mapping[str, object]) -> None:
    with error_kept(_PROBLEM), access.gate().doing(Act.EVALUATION, benchmark=MAKE.name):
        st.session_state[_SET] = runs.start(MAKE.name, settings).run_id


# Stages -------------------------------------------------------------------------------------------------------------


def _stages(folder: Path, runs: EvaluationRuns) -> None:
    """One stage's file: its rows, which can be downloaded, edited and uploaded again."""
    stages = Stages(folder)
    there = [name for name in FILES if (folder / name).is_file()]
    name = st.radio("Stage", there, key="dataset_stage", format_func=FILES.__getitem__, horizontal=True)
    if not name:
        st.html(notice_html("No stage is done yet."))
        return
    text = read_utf8(folder / name, name)
    if stages.is_edited(name):
        st.html(notice_html("Edited. Make the set again, and the next stages go on from this.", "mixed"))
    if name == TOPICS:
        topics = topics_in(text, name)
        rows = [{"topic": cell(topic), "key terms": cell(", ".join(terms))} for topic, terms in topics.items()]
    else:
        found = rows_in(text, name, ("id",))
        rows = [{key: cell(_told(value)) for key, value in row.items()} for row in found[:SHOWN_ROWS]]
        st.caption(quantity(len(found), "row") + (f", the first {SHOWN_ROWS} shown" if len(found) > SHOWN_ROWS else ""))
    st.dataframe(rows, hide_index=True, height=420)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.download_button("Download", text, name, key=f"dataset_take_{name}")
        if (folder / CARD).is_file():
            st.download_button("Data card", read_utf8(folder / CARD, CARD), CARD, key="dataset_card")
        listed = {one.run_id for one in runs.list()}
        if folder.name in listed:
            again = partial(_start, runs, runs.view(folder.name).settings) if not runs.current else None
            st.button("Make again from here", key="dataset_again", on_click=again, disabled=again is None)
    n = st.session_state.setdefault(_TAKEN, 0)
    file = st.file_uploader(
        "The same file, edited", ["json", "jsonl"], key=f"dataset_put_{name}_{n}", max_upload_size=MAX_UPLOAD_MB
    )
    if file is not None:
        edited = _text(file.getvalue(), name)
        (topics_in if name == TOPICS else partial(rows_in, keys=("id",)))(edited, name)
        with access.gate().doing(Act.EVALUATION, files=[name]), translated(folder):
            write_whole(folder / name, [edited])
        st.session_state[_TAKEN] = n + 1  # an empty field for the next one
        st.rerun()


def _text(content: bytes, name: str) -> str:
    """The text of an uploaded file. Raises CorpusError where it is not in UTF-8: its letters would be lost."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"{name}: expected UTF-8, found a byte that is not at {error.start:,}; save it as UTF-8, upload it again"
        raise CorpusError(msg) from error


def _told(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


# Review -------------------------------------------------------------------------------------------------------------


def _review(folder: Path) -> None:
    """One pair at a time. A reviewer does not see other labels, except when settling disagreements."""
    pairs, labels = pairs_of(folder), labels_in(folder)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        reviewer = _reviewer()
        settling = st.toggle("Settle disagreements", key="dataset_settling")
    disputed = [pair for pair in pairs if len(labels.get(pair.key, {})) > 1 and not decision(labels[pair.key])]
    _standing(pairs, labels, len(disputed))
    if not reviewer or reviewer == ADJUDICATOR:
        st.html(notice_html("Enter your name: two reviewers label without seeing each other's labels.", "mixed"))
        return
    who = ADJUDICATOR if settling else reviewer
    left = disputed if settling else [pair for pair in pairs if reviewer not in labels.get(pair.key, {})]
    last = st.session_state.get("dataset_last")
    if st.session_state.pop("dataset_back", False) and last:
        left = [pair for pair in pairs if pair.key == last]
    if not left:
        st.html(
            notice_html("Nothing is left to settle." if settling else f"{reviewer} has labelled every pair.", "good")
        )
    else:
        _pair(folder, left[0], who, labels if settling else {})
    _labels_in_and_out(folder)


def _reviewer() -> str:
    """The reviewer's name. Once it is given, a button replaces the field, so that keys choose labels."""
    known: str = st.session_state.setdefault(_WHO, access.gate().person.email)
    if known:
        st.button(
            f"Reviewer: {plain_markdown(known)}",
            key="dataset_other",
            type="tertiary",
            help="Choose another name.",
            on_click=st.session_state.update,
            args=({_WHO: ""},),
        )
        return known
    typed = st.text_input("Reviewer", key="dataset_reviewer", width=260, placeholder="Your name, then Enter").strip()
    if typed:
        st.session_state[_WHO] = typed
        st.rerun()
    return typed


def _standing(pairs: list[Pair], labels: Labels, n_disputed: int) -> None:
    """The progress of the reviewers, and their agreement."""
    decided = sum(bool(decision(labels.get(pair.key, {}))) for pair in pairs)
    by_two = sum(len(labels.get(pair.key, {})) > 1 for pair in pairs)
    st.progress(
        decided / (len(pairs) or 1),
        text=f"{decided:,} of {len(pairs):,} pairs decided, {by_two:,} labelled twice, {n_disputed:,} disputed",
    )
    found = agreement(labels)
    if found.n:
        cohen, alpha = ("–" if value is None else f"{value:.2f}" for value in (found.cohen, found.krippendorff))
        st.caption(
            f"Agreement: {found.same:,} of {found.n:,} the same; Cohen's kappa {cohen}, Krippendorff's alpha {alpha}."
        )


def _pair(folder: Path, pair: Pair, who: str, labels: Labels) -> None:
    index = _index_of(folder)
    corpus = resources.corpus_or_none(index, Paths.from_env()) if index else None
    passage = None
    if corpus is not None and pair.passage in corpus.position_of:
        passage = corpus.passages[corpus.position_of[pair.passage]]
    told = [label for name, label in labels.get(pair.key, {}).items() if name != ADJUDICATOR]
    st.html(pair_html(pair.row, pair.passage, passage, told))
    with st.container(horizontal=True):
        for number, label in enumerate(KINDS, start=1):
            st.button(
                label.capitalize(),
                key=f"dataset_label_{label}",
                shortcut=str(number),
                help=MEANINGS[label],
                on_click=partial(_label, folder, pair, who, label),
            )
        if st.session_state.get("dataset_last"):
            st.button("Back", key="dataset_undo", shortcut="Backspace", on_click=_back, type="tertiary")


def _index_of(folder: Path) -> str:
    """The corpus of the data set; empty where it is not known."""
    try:
        return str(read_stamp(folder).get("input", ""))
    except RecordError:
        return ""


def _label(folder: Path, pair: Pair, who: str, label: str) -> None:
    with error_kept(_PROBLEM), access.gate().doing(Act.EVALUATION, label=label):
        give(folder, [(pair.key, who, label)])
        st.session_state["dataset_last"] = pair.key


def _back() -> None:
    st.session_state["dataset_back"] = True


def _labels_in_and_out(folder: Path) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if (folder / LABELS).is_file():
            st.download_button("Download the labels", read_utf8(folder / LABELS, LABELS), LABELS, key="dataset_labels")
        with st.popover("Upload labels"):
            n = st.session_state.setdefault(_TAKEN, 0)
            file = st.file_uploader(
                "Labels, as they are downloaded", ["jsonl"], key=f"dataset_given_{n}", max_upload_size=MAX_UPLOAD_MB
            )
            if file is not None:
                st.session_state[_TAKEN] = n + 1
                with access.gate().doing(Act.EVALUATION, files=[file.name]):
                    taken = read_given(folder, _text(file.getvalue(), file.name), file.name)
                st.toast(f"{quantity(taken, 'label')} uploaded")
                st.rerun()


# Use ----------------------------------------------------------------------------------------------------------------


def _use(folder: Path, paths: Paths) -> None:
    """The uses of a finished set: benchmarks that run here, and commands for long work."""
    if not (folder / SPLIT).is_file():
        st.html(notice_html("The set is not finished yet.", "mixed"))
        return
    index, parts = _index_of(folder), folder / "export" / "obliqa"
    runs = all_runs(paths)
    with st.container(horizontal=True):
        for label, name, settings in (
            ("Evaluate", "retrieval", {"questions": str(parts / "test.json"), "index": index}),
            ("Error rates", "verdicts", {"index": index}),
        ):
            start = partial(_evaluate, runs, name, settings)
            st.button(label, key=f"dataset_{name}", type="primary", on_click=start, disabled=runs.current is not None)
    if current := runs.current:
        st.html(notice_html(f"{current.benchmark.title} is running; the page Benchmarks shows it."))
        st.html(f'<p><a href="evaluate?run={current.run_id}" target="_self">Open it</a></p>')
    st.caption("These take minutes to hours; run them in a terminal:")
    train, dev = (quote(str(parts / name)) for name in ("train.json", "dev.json"))
    given = f"--index {quote(index)} --questions {train}"
    for label, command in (
        ("Tune", f"ragqa tune {given}"),
        ("Train ranker", f"ragqa train ranker {given} --out RANKER"),
        ("Train retriever", f"ragqa train retriever {given} --test {dev} --out ADAPTER"),
    ):
        st.markdown(f"**{label}**")
        st.code(command, language="bash")
    st.caption("Each command prints its figures before and after; the last one on held-out questions.")


def _evaluate(runs: EvaluationRuns, name: str, settings: Mapping[str, object]) -> None:
    with error_kept(_PROBLEM), access.gate().doing(Act.EVALUATION, benchmark=name):
        runs.start(name, benchmark_of(name).settings(**settings))
