"""What the panes show of a `View`: answer, score line, notes, the card of each sentence. Pure: no streamlit here."""

from __future__ import annotations

from ragqa.records.view import WEAK_COSINE, Shown, View, provisional, shown, weak_match
from ragqa.scoring.repass.explanation import verdict_by_index
from ragqa.settings.config import Config
from ragqa.types.scores import Cover, Verdict
from ragqa.ui.html.cards import sentence_cards
from ragqa.ui.html.render import answer_html, badge_html, in_corpus, notice_html, question_html, record_link_html
from ragqa.ui.html.scores import score_line_html
from ragqa.ui.html.template import text_html
from ragqa.ui.html.trace import best_html
from ragqa.ui.panes import Panes
from ragqa.ui.state.stale import stale


def panes_of(view: View, settings: Config, shown_id: str, *, raw: bool = False, again: str = "") -> Panes:
    """The panes as they stand under these settings, which may have moved on since; ``again`` is `address_of` it."""
    found = shown(view, settings.scoring.mode, raw=raw)
    final = None if view.scored or not view.answer else view.final_sentences
    passages = view.selection.passages if view.selection else ()
    cards = sentence_cards(found, passages, settings.scoring.verdict_threshold, final) if view.answer else {}
    return Panes(
        id=shown_id,
        question=question_html(view.question or "Checked: a text from elsewhere") + _labels(view, settings),
        answer=_answer(view, found),
        scores=_scores(view, found),
        notes=_notes(view, settings, found) + _written(view, again),
        cards={name: in_corpus(card, view.config.index) for name, card in cards.items()},
        status=_status(view, found),
    )


def _answer(view: View, found: Shown) -> str:
    if view.selection is None:
        return ""
    n_passages = len(view.selection.passages)
    if view.answer is not None:
        checks = found.explanation.citations if found.explanation and not view.answer.is_refusal else ()
        final = None if view.scored else view.final_sentences
        return answer_html(
            view.answer,
            found.sentences,
            n_passages=n_passages,
            final=final,
            checks=checks,
            flagged=not view.asked.given,
            verdicts=found.verdicts,
        )
    if view.best:
        best = view.best.scored.of(view.config.scoring.mode) if view.best.scored else None
        scores, verdicts = (best.sentences, best.verdicts) if best else ((), ())
        return best_html(view.best) + answer_html(view.best.answer, scores, n_passages=n_passages, verdicts=verdicts)
    if view.text:
        return f'<div class="rq-answer">{text_html(view.text)}</div>'
    only = not view.running and not view.error
    return notice_html("Only passages were asked for; they are listed below.") if only else ""


def _labels(view: View, settings: Config) -> str:
    """Above the answer, a few words each, what of it belongs to other settings than today's."""
    found = "".join(badge_html(one.label, "mixed") for one in stale(view, settings))
    return f'<p class="rq-stale">{found}</p>' if found else ""


def _scores(view: View, found: Shown) -> str:
    repass = found.evaluation.repass if found.evaluation else provisional(view)
    if view.answer is None or repass is None:
        return ""
    verdicts = verdict_by_index(found.sentences, found.verdicts).values()
    covered = (
        f"{coverage_words(view, found)} covered" if found.obligations and weak_match(view.rankings) is None else ""
    )
    final = found.evaluation is not None
    raw = bool(found.sentences) and not found.verdicts
    return score_line_html(repass, verdicts, final=final, mode=found.mode, raw=raw, covered=covered)


def coverage_words(view: View, found: Shown) -> str:
    """How many obligations are covered, of how many."""
    total = max(view.n_obligations, len(found.obligations))
    in_part = sum(one.cover is Cover.IN_PART for one in found.obligation_verdicts)
    partly = f" ({in_part} more in part)" if in_part else ""
    return f"{len(found.obligations) - len(found.uncovered)} of {total} obligations{partly}"


def _notes(view: View, settings: Config, found: Shown) -> str:
    """What a reader must know beside the answer, the weightiest first."""
    notes = [notice_html(view.error, "bad")] if view.error else []
    for judged in found.verdicts:
        if judged.verdict is Verdict.DISAGREEING and judged.supporting and judged.contradicting:
            words = f"Sources disagree on sentence {judged.index + 1}: {judged.reason}"
            notes.append(
                f'<button type="button" class="rq-notice rq-mixed rq-pick" data-show="s{judged.index}">'
                f"{text_html(words)}</button>"
            )
    if view.answer and view.answer.note and not view.asked.given:
        answer = view.answer
        remarkable = answer.finish_reason != "stop" or answer.rejected_citations or answer.is_refusal
        notes.append(notice_html(answer.note, "mixed" if remarkable else "plain"))
    if view.rankings and not any(ranking.hits for ranking in view.rankings):
        words = f"No passage shares a word or a meaning with this {_what(view)} in this corpus."
        notes.append(notice_html(words, "mixed"))
    weak = weak_match(view.rankings)
    if weak is not None:
        words = (
            f"The nearest passage has a cosine of only {weak:.2f} with this {_what(view)}: this corpus may "
            f"not speak of it. Nearly every question that a corpus answers reaches {WEAK_COSINE:.2f}."
        )
        notes.append(notice_html(words, "mixed"))
    old = stale(view, settings)
    if old:
        again = f"{'Check' if view.asked.given else 'Ask'} again to have it under today’s settings."
        notes.append(notice_html(" ".join([*(one.words for one in old), again]), "mixed"))
    if view.scored and view.answer and not view.answer.sentences:
        words = "The answer has no sentence, so there is nothing to score: E, C and OC are 0 by definition."
        notes.append(notice_html(words))
    if found.sentences and found.evaluation and not found.evaluation.verdicts:
        words = "Raw verdicts: the record has none by rules, only two thresholds on the maxima."
        notes.append(notice_html(words))
    return "".join(notes)


def _what(view: View) -> str:
    return "text" if view.asked.given else "question"


def _written(view: View, again: str) -> str:
    if view.answer is None or not view.answer.text:
        return ""
    model = f", {view.answer.model}" if view.answer.model else ""
    origin = f"Written by: {view.answer.generator}{model}. Choose a sentence to see what proves it; ↑ ↓ go on."
    origin = f"{view.answer.note} Choose a sentence to see why; ↑ ↓ go on." if view.asked.given else origin
    kept = record_link_html(view.record_id, again) if view.record_id else ""
    return f'<p class="rq-fine">{text_html(origin)}</p>{kept}'


def _status(view: View, found: Shown) -> str:
    """For a screen reader: the stage while it works, the outcome once."""
    if view.running:
        return f"{view.phase.split(':')[0].split(',')[0]}." if not view.answer else "The answer is there; scoring it."
    if view.error:
        return view.error
    if found.evaluation and view.answer and view.answer.sentences:
        return f"Finished: {len(found.sentences)} sentences, RePASs {found.evaluation.repass.composite:.2f}."
    return "Finished."
