"""The parts of an answer on the page, in the order the work happens. They draw a `View` and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ragqa.config import Config
from ragqa.types import Evaluation, ObligationScore, Passage, Selection, SentenceScore
from ragqa.ui.charts import heat_map, score_curve
from ragqa.ui.render import answer_html, notice_html, passage_table_html, seconds_html, text_html
from ragqa.ui.render_scores import gauges_html, ledger_html, modes_html, sentence_table_html
from ragqa.ui.view import View, provisional, reselect

__all__ = ["download_record", "draw_outcome", "draw_passages", "draw_seconds"]

SHOWN_CANDIDATES = 30


def draw_passages(view: View, settings: Config) -> None:
    """What was retrieved and what ``settings`` keep of it; they may have moved on since the answer was written."""
    if view.rankings:
        _passages(view, reselect(view, settings.fusion, settings.filtering), settings)


def draw_outcome(view: View, settings: Config) -> None:
    """The answer so far and its scores so far, or what went wrong."""
    answer, scores = st.container(), st.container()  # always there: what comes in never moves what is there
    with answer:
        if view.rankings:
            _answer(view, reselect(view, settings.fusion, settings.filtering))
        elif view.error:
            _error(view)
    if view.answer:
        with scores:
            _scores(view, settings)


def _passages(view: View, current: Selection, settings: Config) -> None:
    n_kept, n_all = len(current.kept), len(current.kept) + len(current.dropped)
    st.subheader(f"Passages: kept {n_kept} of {n_all}", anchor="passages")
    if not n_all:
        st.html(notice_html("No passage shares a word or a meaning with this question in this corpus.", "mixed"))
        return
    table, curve = st.columns([5, 3], gap="medium")
    with table:
        st.html(passage_table_html(current, SHOWN_CANDIDATES))
        counts = ", ".join(f"{ranking.retriever} {len(ranking.hits)}" for ranking in view.rankings)
        st.caption(
            f"Retrieved: {counts}. Listed: the best {min(SHOWN_CANDIDATES, n_all)} of {n_all} fused candidates; open a "
            "passage for its text and the reason it was kept or dropped."
        )
    with curve:
        st.altair_chart(score_curve(current, settings.filtering, SHOWN_CANDIDATES), width="stretch")
    if n_kept == 1 and n_all > 1:
        text = "Only the best passage is left, which is always kept: an answer rests on it alone."
        st.html(notice_html(text, "mixed"))


def _answer(view: View, current: Selection) -> None:
    st.subheader("Answer", anchor="answer")
    written_from = view.selection
    if written_from is None:
        return
    if {c.passage.passage_id for c in current.kept} != {c.passage.passage_id for c in written_from.kept}:
        st.html(
            notice_html(
                f"This answer belongs to an earlier selection of {len(written_from.kept)} passages; the settings now "
                f"keep {len(current.kept)}. Ask again to answer from those.",
                "mixed",
            )
        )
    if view.answer is None:
        if view.text:
            st.html(f'<div class="rq-answer">{text_html(view.text)}</div>')
        if view.error:
            _error(view)
        return
    answer = view.answer
    model = f", {answer.model}" if answer.model else ""
    st.caption(f"Written by: {answer.generator}{model}. Numbers open the passage they cite.")
    if answer.text:
        st.html(answer_html(answer, written_from.passages, view.sentences))
    if answer.note:
        remarkable = answer.finish_reason != "stop" or answer.rejected_citations
        st.html(notice_html(answer.note, "mixed" if remarkable else "plain"))


def _scores(view: View, settings: Config) -> None:
    st.subheader("RePASs", anchor="repass")
    assert view.answer is not None  # noqa: S101 - for the type checker; the caller looked
    passages = view.selection.passages if view.selection else ()
    evaluation = view.scored.of(settings.scoring.mode) if view.scored else None
    repass = evaluation.repass if evaluation else provisional(view)
    mode = evaluation.mode if evaluation else view.config.scoring.mode
    gauges, rows, ledger, pairs = st.container(), st.container(), st.container(), st.container()
    if view.error:
        _error(view)
    if not view.answer.sentences:
        text = "The answer has no sentence, so there is nothing to score: E, C and OC are 0 by definition."
        st.html(notice_html(text))
        return
    if repass:
        gauges.html(gauges_html(repass, final=evaluation is not None, mode=mode))
    with rows:
        _sentences(view, evaluation.sentences if evaluation else view.sentences, passages, settings)
    obligations = evaluation.obligations if evaluation else view.obligations
    if evaluation or obligations:
        with ledger:
            _ledger(view, obligations, passages, settings)
    if evaluation and view.scored:
        with pairs:
            st.html(modes_html(view.scored.paper, view.scored.script))
            _matrix(evaluation)


def _sentences(view: View, scores: Sequence[SentenceScore], passages: Sequence[Passage], settings: Config) -> None:
    threshold = settings.scoring.verdict_threshold
    st.markdown(f"##### Answer sentences: {len(scores)} of {view.n_sentences} scored")
    if scores:
        st.html(sentence_table_html(scores, passages, threshold))
        st.caption(
            f"supported: E ≥ {threshold:.2f}; contradicted: C ≥ {threshold:.2f}; both or neither is named so. "
            "Open a row for the source sentence that decided."
        )


def _ledger(view: View, obligations: Sequence[ObligationScore], passages: Sequence[Passage], settings: Config) -> None:
    covered = sum(score.covered for score in obligations)
    st.markdown(f"##### Obligation ledger: {covered} of {view.n_obligations} covered")
    if obligations:
        st.html(ledger_html(obligations, passages, settings.scoring.coverage_threshold))
    else:
        text = "The kept passages hold no obligation, so coverage is 0 by definition and weighs nothing for or against."
        st.html(notice_html(text))


def _matrix(evaluation: Evaluation) -> None:
    if not evaluation.premises:
        return
    st.markdown("##### Every pair")
    options = ["entailment", "contradiction"]
    kind = st.segmented_control("Probability shown", options, default=options[0], key="matrix_kind") or options[0]
    st.altair_chart(heat_map(evaluation, kind), width="stretch")
    model = evaluation.entailment_model
    st.caption(
        f"{evaluation.n_pairs:,} pairs by {model.name} ({model.precision}, weights {model.fingerprint[:12]}); "
        f"obligations by {evaluation.obligation_model.name}; sentences by {evaluation.sentence_splitter}."
    )


def _error(view: View) -> None:
    st.html(notice_html(view.error, "bad"))


def draw_seconds(view: View) -> None:
    """Seconds per stage, once there are any."""
    if view.seconds:
        st.html(seconds_html(view.seconds))


def download_record(record_id: str, body: str) -> None:
    """A button that saves the record as a file; it does not disturb the page."""
    name = f"ragqa-{record_id}.json"
    st.download_button("Download the record (JSON)", body, name, "application/json", on_click="ignore")
