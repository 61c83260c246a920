"""The parts of an answer on the page, in the order the work happens. They draw a `View` and compute nothing.

Whatever may come later has a container of its own from the start, which stays empty until then: Streamlit knows
elements by their position, so that one put in front of others shows those twice for a moment.
"""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragqa.analysers import Analyser
from ragqa.config import Config
from ragqa.events.scoring import Scored
from ragqa.indexing import Index
from ragqa.recorder import words_per_second
from ragqa.repass.explanation import Explanation, provenance, verdict_by_index
from ragqa.retrieval.analysis import matched_words
from ragqa.types import Breakdown, Cover, Selection
from ragqa.ui.charts import doubted_cells, growth_chart, heat_map, path_chart, score_curve
from ragqa.ui.render import answer_html, notice_html, seconds_html, text_html
from ragqa.ui.render_passages import passage_table_html
from ragqa.ui.render_scores import (
    gauges_html,
    growth_html,
    ledger_html,
    modes_html,
    provenance_html,
    sentence_table_html,
)
from ragqa.ui.render_trace import best_html, has_tree, score_path, trace_html, tree_html
from ragqa.ui.render_verdicts import counts_html, disagreements_html
from ragqa.ui.view import WEAK_COSINE, Shown, View, provisional, reselect, shown, unread, weak_match

SHOWN_CANDIDATES = 30
COLUMNS_BESIDE_CURVE = 3  # of scores that fit
LONG = 12  # rows; from here on a reader may want only those with a problem


def draw_passages(view: View, settings: Config, index: Index | None = None) -> None:
    """What was retrieved and what ``settings`` keep of it; they may have moved on since the answer was written.

    ``index`` is the one it was retrieved from, where it is still there: it knows what stands around a passage.
    """
    if view.rankings:
        current = reselect(view, settings.fusion, settings.filtering, settings.reranking)
        _passages(view, current, settings, index)


def draw_outcome(view: View, settings: Config) -> None:
    """The answer so far and its scores so far, or what went wrong."""
    answer, switch, trace, scores = _slots(4)  # always there: nothing there is moved
    raw = bool(view.verdicts) and _raw_switch(switch)
    found = shown(view, settings.scoring.mode, raw=raw)
    with answer:
        if view.rankings and view.config.generation.generator != "none":
            _answer(view, reselect(view, settings.fusion, settings.filtering, settings.reranking), found)
        elif view.error:
            _error(view)
    if view.trace:
        with trace:
            _trace(view)
    if view.answer:
        with scores:
            _scores(view, found, settings)


def _raw_switch(place: DeltaGenerator) -> bool:
    """Whether to show what RePASs alone says; kept while the session lasts, under a key that is no widget's."""
    st.session_state.setdefault("raw_verdicts", st.session_state.get("shows_raw", False))
    chosen: bool = place.toggle(
        "RePASs raw",
        key="raw_verdicts",
        help="Instead of the verdicts by rules: two thresholds on the highest raw probabilities, as RePASs has them.",
    )
    st.session_state["shows_raw"] = chosen
    return chosen


def _passages(view: View, current: Selection, settings: Config, index: Index | None) -> None:
    n_kept, n_all = len(current.kept), len(current.kept) + len(current.dropped)
    st.subheader(f"Passages: kept {n_kept} of {n_all}", anchor="passages")
    if not n_all:
        st.html(notice_html("No passage shares a word or a meaning with this question in this corpus.", "mixed"))
        return
    weak = weak_match(view.rankings)
    if weak is not None:
        words = (
            f"The nearest passage has a cosine of only {weak:.2f} with this question: this corpus may not speak of it. "
            f"Nearly every question that a corpus answers reaches {WEAK_COSINE:.2f}."
        )
        st.html(notice_html(words, "mixed"))
    not_read = unread(view, settings.fusion, settings.reranking) if view.selection else 0
    if not_read:
        words = (
            f"The reranker has not read {not_read} of the best {settings.reranking.depth} passages under these "
            "settings. Ask again to have them read."
        )
        st.html(notice_html(words, "mixed"))
    table, curve = _beside_each_other(current)
    with table:
        analyser = index.manifest.analyser if index else Analyser()
        matcher = partial(matched_words, question=view.question, analyser=analyser)
        st.html(passage_table_html(current, SHOWN_CANDIDATES, matcher, index.neighbours if index else None))
        counts = ", ".join(f"{ranking.retriever} {len(ranking.hits)}" for ranking in view.rankings)
        st.caption(
            f"Retrieved: {counts}. Listed: the best {min(SHOWN_CANDIDATES, n_all)} of {n_all} fused candidates; open a "
            "passage for its text and the reason it was kept or dropped."
        )
    with curve:
        st.altair_chart(score_curve(current, settings.filtering, SHOWN_CANDIDATES), width="stretch")
    if n_kept == 1 and n_all > 1:
        text = "Only the best passage is kept, as it always is: an answer rests on it alone."
        st.html(notice_html(text, "mixed"))


def _beside_each_other(current: Selection) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Places for the table and the curve; a table of many columns has the whole width, above the curve."""
    hit = (*current.kept, *current.dropped)[0].hit
    if len(hit.parts) + len(hit.reranking) > COLUMNS_BESIDE_CURVE:
        table, curve = _slots(2)
    else:
        table, curve = st.columns([7, 3], gap="medium")
    return table, curve


def _slots(count: int) -> list[DeltaGenerator]:
    """Places in a row that keep their position, filled or not."""
    return [st.container() for _ in range(count)]


def _answer(view: View, current: Selection, found: Shown) -> None:
    st.subheader("Answer", anchor="answer")
    stale, origin, text, clash, note = _slots(5)
    written_from, answer = view.selection, view.answer
    if written_from is None:
        if view.error:
            with note:
                _error(view)
        return
    if {c.passage.passage_id for c in current.kept} != {c.passage.passage_id for c in written_from.kept}:
        words = (
            f"This answer belongs to an earlier selection of {len(written_from.kept)} passages; the settings now "
            f"keep {len(current.kept)}. Ask again to answer from those."
        )
        stale.html(notice_html(words, "mixed"))
    if answer is None:
        if view.best:
            best = view.best.scored.of(view.config.scoring.mode) if view.best.scored else None
            scores, verdicts = (best.sentences, best.verdicts) if best else ((), ())
            origin.html(best_html(view.best))
            text.html(answer_html(view.best.answer, written_from.passages, scores, verdicts=verdicts))
        elif view.text:
            text.html(f'<div class="rq-answer">{text_html(view.text)}</div>')
        if view.error:
            with note:
                _error(view)
        return
    model = f", {answer.model}" if answer.model else ""
    origin.caption(f"Written by: {answer.generator}{model}. Numbers open the passage they cite.")
    if answer.text:
        passages, verdicts = written_from.passages, found.verdicts
        checks = found.explanation.citations if found.explanation and not answer.is_refusal else ()
        final = view.final_sentences
        text.html(answer_html(answer, passages, found.sentences, final=final, checks=checks, verdicts=verdicts))
        disagreeing = disagreements_html(verdicts, found.sentences, found.premises, passages) if found.premises else ""
        if disagreeing:
            clash.html(disagreeing)
    if answer.note:
        remarkable = answer.finish_reason != "stop" or answer.rejected_citations or answer.is_refusal
        note.html(notice_html(answer.note, "mixed" if remarkable else "plain"))


def _trace(view: View) -> None:
    """What LOC, VRR or a fan-out did, and the path of the score where there is one."""
    tree, steps, path = st.container(), st.container(), st.container()
    if has_tree(view.trace):
        with tree:
            st.markdown("##### Sub-questions")
            st.html(tree_html(view.trace, view.selection.passages if view.selection else ()))
    written = trace_html(view.trace)
    if written:
        with steps:
            st.markdown("##### How it was written")
            st.html(written)
    points = score_path(view.trace)
    if len(points) > 1:
        path.altair_chart(path_chart(points), width="stretch")


def _scores(view: View, found: Shown, settings: Config) -> None:
    st.subheader("RePASs", anchor="repass")
    assert view.answer is not None  # noqa: S101 - for the type checker; the caller looked
    counts, gauges, switch, rows, ledger, around, pairs, error = _slots(8)
    mode, evaluation, explanation = found.mode, found.evaluation, found.explanation
    repass = evaluation.repass if evaluation else provisional(view)
    if view.error:
        with error:
            _error(view)
    if not view.answer.sentences:
        words = "The answer has no sentence, so there is nothing to score: E, C and OC are 0 by definition."
        with gauges:
            st.html(notice_html(words))
            if evaluation:
                st.html(gauges_html(evaluation.repass, final=True, mode=mode, explanation=explanation))
        return
    if repass:
        gauges.html(gauges_html(repass, final=evaluation is not None, mode=mode, explanation=explanation))
        what = ("Verdicts" if found.verdicts else "Raw verdicts") + ("" if evaluation else " so far")
        counts.html(counts_html(verdict_by_index(found.sentences, found.verdicts).values(), what=what))
    if evaluation and not evaluation.verdicts:
        counts.caption("Judged before there were rules: these verdicts are raw, two thresholds on the maxima.")
    only_problems = False
    if evaluation and len(found.sentences) + len(found.obligations) > LONG:
        only_problems = switch.toggle(
            "Only problems",
            key="only_problems",
            help="Sentences that are not supported or wrongly cited, and obligations that are not covered in full.",
        )
    with rows:
        _sentences(view, found, settings, only_problems=only_problems)
    with ledger:
        if evaluation or found.obligations:
            _ledger(view, found, settings, only_problems=only_problems)
    if evaluation and view.scored:
        with around:
            _around(view, view.scored, evaluation, explanation)
        with pairs:
            _matrix(evaluation)


def _sentences(view: View, found: Shown, settings: Config, *, only_problems: bool) -> None:
    threshold = settings.scoring.verdict_threshold
    rows = found.sentences_with_problems if only_problems else found.sentences
    passages = view.selection.passages if view.selection else ()
    st.markdown(f"##### Answer sentences: {len(view.final_sentences)} of {view.n_sentences} final")
    table, legend = _slots(2)
    if rows:
        final = None if view.scored else view.final_sentences
        table.html(
            sentence_table_html(
                rows,
                passages,
                threshold,
                final=final,
                explanation=found.explanation,
                verdicts=found.verdicts,
                premises=found.premises,
            )
        )
        hidden = f"Shown: the {len(rows)} with a problem. " if only_problems else ""
        raw = f"supported: E ≥ {threshold:.2f}; contradicted: C ≥ {threshold:.2f}; both or neither is named so."
        rules = "Verdicts are by rules that compare the words too; E and C are RePASs' raw maxima."
        words = rules if found.verdicts else raw
        legend.caption(f"{hidden}{words} Open a row for the source sentence that decided.")
    elif found.sentences:
        table.html(notice_html("Every sentence is supported by what it cites.", "good"))


def _ledger(view: View, found: Shown, settings: Config, *, only_problems: bool) -> None:
    passages = view.selection.passages if view.selection else ()
    obligations, total = found.obligations, max(view.n_obligations, len(found.obligations))
    in_part = sum(one.cover is Cover.IN_PART for one in found.obligation_verdicts)
    covered = len(obligations) - len(found.uncovered)
    so_far = "" if view.scored else f" so far, {len(view.final_obligations)} of {total} final"
    partly = f", {in_part} in part" if in_part else ""
    of = len(obligations) if view.scored else total
    st.markdown(f"##### Obligation ledger: {covered} of {of} covered{partly}{so_far}")
    (table,) = _slots(1)
    rows = found.uncovered if only_problems else obligations
    if not obligations:
        words = "The kept passages hold no obligation: coverage is 0 by definition, so RePASs is at most 0.667 here."
        table.html(notice_html(words))
    elif not rows:
        table.html(notice_html("Every obligation is covered.", "good"))
    else:
        final = None if view.scored else view.final_obligations
        threshold, verdicts = settings.scoring.coverage_threshold, found.obligation_verdicts
        table.html(
            ledger_html(rows, passages, threshold, final=final, explanation=found.explanation, verdicts=verdicts)
        )


def _around(view: View, scored: Scored, evaluation: Breakdown, explanation: Explanation | None) -> None:
    """Both modes, the growth with the number of passages, and what every number rests on."""
    modes, growth = st.columns(2, gap="medium")
    with modes:
        st.markdown("##### Both definitions")
        st.html(modes_html(scored.paper, scored.script, view.explained.differences if view.explained else ()))
        st.markdown("##### Where the numbers come from")
        st.html(provenance_html(provenance(evaluation)))
    if explanation:
        with growth:
            st.markdown("##### With the 1, 2, … best passages")
            st.html(growth_html(explanation.growth))
            if len(explanation.growth) > 1:
                st.altair_chart(growth_chart(explanation.growth), width="stretch")


def _matrix(evaluation: Breakdown) -> None:
    if not evaluation.premises:
        return
    st.markdown(f"##### Every pair ({evaluation.n_pairs:,})")
    options = ["entailment", "contradiction"]
    kind = st.segmented_control("Probability shown", options, default=options[0], key="matrix_kind") or options[0]
    st.altair_chart(heat_map(evaluation, kind), width="stretch")
    if doubted_cells(evaluation, kind):
        st.caption("Hatched: a probability that reaches the threshold and that the verdict does not believe.")


def _error(view: View) -> None:
    st.html(notice_html(view.error, "bad"))


def draw_seconds(view: View) -> None:
    """Seconds per stage, once there are any."""
    if view.seconds:
        pace = words_per_second(view.answer.raw, view.seconds) if view.answer else None
        st.html(seconds_html(view.seconds, pace))


def download_record(record_id: str, body: str) -> None:
    """A button that saves the record as a file; it does not disturb the page."""
    name = f"ragqa-{record_id}.json"
    st.download_button("Download the record (JSON)", body, name, "application/json", on_click="ignore")
