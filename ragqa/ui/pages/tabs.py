"""The tabs below the panes: passages, scores, obligations, pairs, steps, record; one at a time is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from html import escape

import streamlit as st

from ragqa.english.words import quantity
from ragqa.index import Index
from ragqa.plugins import registry
from ragqa.records.limits import limits
from ragqa.records.memo import memo_of, settings_words
from ragqa.records.memo_files import memo_bytes
from ragqa.records.recorder import words_per_second
from ragqa.records.store import RecordStore
from ragqa.records.thread import records_back
from ragqa.records.view import Shown, View, provisional, reselect, shown, unread, weak_match
from ragqa.records.words import coverage_words, with_names
from ragqa.retrieval.analysis import matched_words
from ragqa.scoring.repass.explanation import provenance
from ragqa.server.access.desk import CaseDesk
from ragqa.settings.config import Config
from ragqa.settings.paths import Paths
from ragqa.types import Selection
from ragqa.ui.html.charts import growth_chart, path_chart
from ragqa.ui.html.curve import curve_html
from ragqa.ui.html.passages import passage_cards_html, passage_table_html
from ragqa.ui.html.render import RENDER, badge_html, in_corpus, notice_html, seconds_html
from ragqa.ui.html.scores import (
    doubted_cells,
    gauges_html,
    growth_html,
    modes_html,
    obligations_html,
    pairs_html,
    provenance_html,
    relevance_html,
    sentence_table_html,
)
from ragqa.ui.html.trace import has_tree, score_path, trace_html, tree_html
from ragqa.ui.pages.notes import draw_note
from ragqa.ui.state import resources
from ragqa.ui.state.desk import case_desk
from ragqa.ui.state.stale import stale

SHOWN_CANDIDATES = 30
_matched = lru_cache(maxsize=2_048)(matched_words)  # the same for every redraw of an answer
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
LONG = 12  # rows; longer lists offer a filter for rows with problems
_KEPT_RAW = "shows_raw"  # a plain session key, because a widget's value is lost when the page changes


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The data that every tab draws from."""

    view: View
    settings: Config
    index: Index | None
    record: str  # JSON, "" while there is none
    current: Selection  # the selection under the present settings
    found: Shown


def draw_tabs(view: View, settings: Config, index: Index | None = None, record: str = "") -> None:
    """The strip of tabs and the chosen tab, which is remembered.

    ``index`` is the index of the answer, if it still exists; it gives the neighbours of a passage.
    """
    current = reselect(view, settings.fusion, settings.filtering, settings.reranking)
    found = shown(view, settings.scoring.mode, raw=shows_raw(view))
    drawn = _Drawn(view, settings, index, record, current, found)
    strip = st.container(horizontal=True, vertical_alignment="center", key="strip")
    # The browser identifies a tab by its label. Labels never change, or a click at that moment would be lost.
    chosen = strip.segmented_control(
        "Details",
        list(_TABS),
        default="passages",
        required=True,
        format_func=str.capitalize,
        key="tab",
        label_visibility="collapsed",
        persist_state="session",
    )
    if view.verdicts:
        st.session_state.setdefault("raw_verdicts", st.session_state.get(_KEPT_RAW, False))
        raw = strip.toggle(
            "RePASs raw",
            key="raw_verdicts",
            help="Verdicts by two thresholds on the highest raw probabilities, as RePASs has them.",
        )
        if raw != st.session_state.get(_KEPT_RAW, False):
            st.session_state[_KEPT_RAW] = raw
            st.rerun()
    old = [one for one in stale(view, settings) if chosen != "passages" or one.of_passages]
    if old:
        st.html(" ".join(badge_html(one.label, "mixed") for one in old))
    _TABS[chosen](drawn)


def shows_raw(view: View) -> bool:
    """Whether raw verdicts are shown instead of the verdicts by rules; kept for the session."""
    return bool(view.verdicts) and bool(st.session_state.get(_KEPT_RAW, False))


def _passages(drawn: _Drawn) -> None:
    view, current, settings, index = drawn.view, drawn.current, drawn.settings, drawn.index
    n_kept, n_all = len(current.kept), len(current.kept) + len(current.dropped)
    if not n_all:
        st.html(notice_html("No passage shares a word or a meaning with this question in this corpus.", "mixed"))
        return
    not_read = unread(view, settings.fusion, settings.reranking) if view.selection else 0
    if not_read:
        words = f"Not yet read by the reranker: {not_read} of {settings.reranking.depth}. Ask again to read them."
        st.html(notice_html(words, "mixed"))
    counts = ", ".join(f"{registry.label(ranking.retriever)} {len(ranking.hits)}" for ranking in view.rankings)
    st.caption(
        f"Kept {n_kept} of {n_all}. Retrieved: {counts}. Listed: the best {min(SHOWN_CANDIDATES, n_all)}; "
        "choose one for its text and the reason it was kept or dropped. The bar: what each ranking adds to the score."
    )
    found = limits(current)
    if found:
        st.html(f'<p class="rq-binds">{escape(found.summary)}</p>')
    analyser = index.manifest.analyser if index else None
    matcher = partial(_matched, question=view.asked.query, analyser=analyser)
    st.html(curve_html(current, SHOWN_CANDIDATES))
    st.html(passage_table_html(current, SHOWN_CANDIDATES, matcher))
    cards = passage_cards_html(current, SHOWN_CANDIDATES, matcher, index.neighbours if index else None)
    st.html(in_corpus(cards, view.config.index))


def _scores(drawn: _Drawn) -> None:
    view, found = drawn.view, drawn.found
    evaluation, explanation, mode = found.evaluation, found.explanation, found.mode
    repass = evaluation.repass if evaluation else provisional(view)
    if not view.answer or not repass:
        st.html(notice_html("Scores appear here after scoring. A refusal is not scored."))
        return
    st.html(gauges_html(repass, final=evaluation is not None, mode=mode, explanation=explanation))
    if view.answer_relevance:
        st.markdown(f"### Answer relevance {view.answer_relevance.value:.2f}: whether it answers what was asked")
        st.html(relevance_html(view.answer_relevance))
    problems = _only_problems(found)
    rows = found.sentences_with_problems if problems else found.sentences
    st.markdown(f"### Sentences: {len(view.final_sentences)} of {view.n_sentences} final")
    if rows:
        passages = view.selection.passages if view.selection else ()
        judged = [replace(one, reason=with_names(one.reason, passages)) for one in found.verdicts]
        st.html(sentence_table_html(rows, judged, None if view.scored else view.final_sentences))
    elif found.sentences:
        st.html(notice_html("Every sentence is supported by what it cites.", "good"))
    if view.scored and not view.asked.given:
        draw_note(view.record_id, found)
    threshold = drawn.settings.scoring.verdict_threshold
    raw = f"supported: E ≥ {threshold:.2f}; contradicted: C ≥ {threshold:.2f}; both or neither has its own verdict."
    rules = "Verdicts are by rules that compare the words too; E and C are RePASs' raw maxima."
    st.caption(rules if found.verdicts else raw)
    if evaluation and view.scored:
        modes, growth = st.columns(2, gap="medium")
        with modes:
            st.markdown("### Both definitions")
            differences = view.explained.differences if view.explained else ()
            st.html(modes_html(view.scored.paper, view.scored.script, differences))
            st.markdown("### Where the numbers come from")
            st.html(provenance_html(provenance(evaluation)))
        if explanation:
            with growth:
                st.markdown("### With the 1, 2, … best passages")
                st.html(growth_html(explanation.growth))
                if len(explanation.growth) > 1:
                    st.altair_chart(growth_chart(explanation.growth), width="stretch")


def _only_problems(found: Shown) -> bool:
    if not found.evaluation or len(found.sentences) + len(found.obligations) <= LONG:
        return False
    chosen: bool = st.toggle(
        "Only problems",
        key="only_problems",
        help="Sentences that are not supported or wrongly cited, and obligations that are not covered in full.",
    )
    return chosen


def _obligations(drawn: _Drawn) -> None:
    view, found = drawn.view, drawn.found
    if not found.obligations:
        words = "Obligations of the kept passages appear here after scoring."
        if view.scored:
            words = "No sentence of the kept passages obliges anybody."
            if found.evaluation and not found.evaluation.obligations:
                words = "The kept passages hold no obligation: coverage is 0 by definition, RePASs at most 0.667."
        st.html(notice_html(words))
        return
    if weak_match(view) is not None:
        words = (
            "The corpus does not cover this: the obligations in its passages are on other subjects and are not listed."
        )
        st.html(notice_html(words, "mixed"))
        return
    so_far = "" if view.scored else f" so far, {len(view.final_obligations)} final"
    st.markdown(f"### The answer covers {coverage_words(view, found)}{so_far}")
    by_repass = found.evaluation.obligations if found.evaluation and found.obligation_verdicts else ()
    counts = sum(one.covered for one in by_repass), len(by_repass)
    if by_repass and counts != (len(found.obligations) - len(found.uncovered), len(found.obligations)):
        st.caption(f"RePASs counts {counts[0]} of {counts[1]}: by probability alone, and what obliges nobody, too.")
    rows = found.uncovered if _only_problems(found) else found.obligations
    if not rows:
        st.html(notice_html("Every obligation is covered.", "good"))
        return
    listed = obligations_html(
        rows,
        view.selection.passages if view.selection else (),
        drawn.settings.scoring.coverage_threshold,
        final=None if view.scored else view.final_obligations,
        explanation=found.explanation,
        verdicts=found.obligation_verdicts,
    )
    st.html(in_corpus(listed, view.config.index))


def _pairs(drawn: _Drawn) -> None:
    evaluation, selection = drawn.found.evaluation, drawn.view.selection
    if not evaluation or not evaluation.premises or not evaluation.sentences or not selection:
        st.html(notice_html("Pairs of a source sentence and an answer sentence appear here after scoring."))
        return
    options = ["entailment", "contradiction"]
    kind = st.segmented_control("Probability shown", options, default=options[0], key="matrix_kind") or options[0]
    st.html(in_corpus(pairs_html(evaluation, selection.passages, kind), drawn.view.config.index))
    words = f"{quantity(evaluation.n_pairs, 'pair')} compared. Choose a cell, or move with the arrow keys."
    if doubted_cells(evaluation, kind):
        words += " Hatched: a probability that reaches the threshold and that the verdict rejects."
    st.caption(words)


def _steps(drawn: _Drawn) -> None:
    """The steps of LOC, VRR or a fan-out, and the score path if there is one."""
    view = drawn.view
    if has_tree(view.trace):
        st.markdown("### What each sentence found" if view.asked.given else "### Sub-questions")
        st.html(tree_html(view.trace, view.selection.passages if view.selection else ()))
    steps, points = trace_html(view.trace), score_path(view.trace)
    if steps:
        st.html(steps)
    if len(points) > 1:
        st.altair_chart(path_chart(points), width="stretch")
    if not (steps or has_tree(view.trace)):
        st.html(notice_html("Written in one step, from the kept passages." if view.answer else "Nothing is written."))
    if view.seconds:
        pace = words_per_second(view.answer.raw, view.seconds) if view.answer else None
        st.html(seconds_html(view.seconds, pace))


def _record(drawn: _Drawn) -> None:
    record_id = drawn.view.record_id
    if not record_id or not drawn.record:
        st.html(notice_html("The record appears here when the answer is complete: settings, passages, scores, models."))
        return
    name, paths = f"ragqa-{record_id}", Paths.from_env()
    store, desk = resources.record_store(paths.records), case_desk(paths)
    with st.container(horizontal=True, key="record_files"):
        json = (drawn.record, f"{name}.json", "application/json")
        st.download_button("Download the record (JSON)", *json, on_click="ignore")
        st.download_button(
            "Memo (DOCX)", partial(_memo, store, desk, record_id), f"{name}.docx", _DOCX, on_click="ignore"
        )
    title = resources.corpus_titles([drawn.view.config.index], paths)[drawn.view.config.index]
    st.html(RENDER.settings({"Corpus": title} | settings_words(drawn.view.config)))


def _memo(store: RecordStore, desk: CaseDesk, record_id: str) -> bytes:
    """The memo on a record and the records that it follows; made after a click, in a thread without a session."""
    records = list(records_back(record_id, store))[::-1]
    signed = desk.signed([f"record:{one.record_id}" for one in records])
    return memo_bytes(memo_of(records, signed=signed), ".docx")


_TABS: dict[str, Callable[[_Drawn], None]] = {
    "passages": _passages,
    "scores": _scores,
    "obligations": _obligations,
    "pairs": _pairs,
    "steps": _steps,
    "record": _record,
}
