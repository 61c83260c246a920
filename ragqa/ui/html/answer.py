"""The panes of a `View`: answer, score line, notes, and a card for each sentence. Pure, without Streamlit."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ragqa.corpus.citing import short_names
from ragqa.english.words import quantity
from ragqa.records.findings import findings_of
from ragqa.records.results import SURE
from ragqa.records.view import WEAK_COSINE, Shown, View, provisional, shown, unsure_relevance, weak_match
from ragqa.records.words import cited_by, headline, in_lines, note_of, trust_facts
from ragqa.scoring.repass.explanation import verdict_by_index
from ragqa.settings.config import Config
from ragqa.types import Passage
from ragqa.types.scores import Verdict
from ragqa.ui.html.cards import sentence_cards
from ragqa.ui.html.findings import duty_cards, findings_html
from ragqa.ui.html.render import RENDER, answer_html, badge_html, in_corpus, mark_of, notice_html, question_html
from ragqa.ui.html.scores import trust_html
from ragqa.ui.html.template import text_html
from ragqa.ui.html.trace import best_html
from ragqa.ui.panes import Panes
from ragqa.ui.state.stale import stale


def panes_of(
    view: View,
    settings: Config,
    shown_id: str,
    *,
    raw: bool = False,
    again: str = "",
    notes: Mapping[int, str] | None = None,
    also: Callable[[Passage], str] | None = None,
    rule: str = "",
) -> Panes:
    """The panes of a view under today's settings, which may have changed since; ``again`` is its `address_of`.

    ``notes`` are readers' notes on its sentences, by index. ``also`` gives HTML on what is related to a source, below
    it. ``rule`` is the HTML of a rule that was asked for by its number, before the answer.
    """
    found = shown(view, settings.scoring.mode, raw=raw)
    final = None if view.scored or not view.answer else view.final_sentences
    passages = view.selection.passages if view.selection else ()
    cards = sentence_cards(found, passages, settings.scoring.verdict_threshold, final) if view.answer else {}
    for one in findings_of(view, found) if cards else ():
        if also and one.kind == "sentence" and one.rule and f"s{one.index}" in cards:
            cards[f"s{one.index}"] += also(one.rule)
    if view.asked.given:
        cards |= duty_cards(view, found, settings.scoring.coverage_threshold)
    return Panes(
        id=shown_id,
        question=question_html(view.question or "The checked text") + _labels(view, settings),
        head=_headline(view, found) + _trust(view, found),
        answer=rule + in_corpus(_answer(view, found, notes or {}), view.config.index),
        scores=_actions(view, found, again),
        notes=_notes(view, settings, found) + _written(view),
        cards={name: in_corpus(card, view.config.index) for name, card in cards.items()},
        status=_status(view, found),
    )


def _answer(view: View, found: Shown, notes: Mapping[int, str]) -> str:
    if view.selection is None:
        return ""
    passages, candidates = view.selection.passages, (*view.selection.kept, *view.selection.dropped)
    if view.answer is not None and view.asked.given:
        return findings_html(view, found, notes)
    if view.answer is not None:
        checks = found.explanation.citations if found.explanation and not view.answer.is_refusal else ()
        final = None if view.scored else view.final_sentences
        return answer_html(
            view.answer,
            found.sentences,
            passages=passages if view.answer.sentences else [one.passage for one in candidates],
            final=final,
            checks=checks,
            verdicts=found.verdicts,
        )
    if view.best:
        best = view.best.scored.of(view.config.scoring.mode) if view.best.scored else None
        scores, verdicts = (best.sentences, best.verdicts) if best else ((), ())
        return best_html(view.best) + answer_html(view.best.answer, scores, passages=passages, verdicts=verdicts)
    if view.text:
        return f'<div class="rq-answer">{text_html(view.text)}</div>'
    only = not view.running and not view.error
    return notice_html("Only passages were asked for; they are listed below.") if only else ""


def _labels(view: View, settings: Config) -> str:
    """Labels above the answer for the parts that were made with other settings than today's."""
    found = "".join(badge_html(one.label, "mixed") for one in stale(view, settings))
    return f'<p class="rq-stale">{found}</p>' if found else ""


def _headline(view: View, found: Shown) -> str:
    """Whether the question is answered; for a checked text a summary of its sentences."""
    words, state = headline(view, found)
    missing = view.answer.not_found if view.answer and not view.asked.given else ()
    return RENDER.headline(words, state.replace(" ", "-"), missing) if words else ""


def _trust(view: View, found: Shown) -> str:
    """One line on how far the answer can be relied on; opened, it shows the numbers."""
    repass = found.evaluation.repass if found.evaluation else provisional(view)
    if view.answer is None or (repass is None and not view.answer.is_refusal) or view.selection is None:
        return ""
    judged = {one.index: one for one in found.verdicts}
    known = verdict_by_index(found.sentences, found.verdicts)
    marks = [mark_of(known[index], judged.get(index)) for index in sorted(known)]
    repass = None if view.answer.is_refusal else repass
    return trust_html(marks, trust_facts(view, found), repass, final=found.evaluation is not None, mode=found.mode)


def _actions(view: View, found: Shown, again: str) -> str:
    """The actions below the answer: copy with citations, open the record, ask again."""
    if view.answer is None or not view.answer.text or view.selection is None:
        return ""
    passages, checks = view.selection.passages, found.explanation.citations if found.explanation else ()
    lines, names = [] if view.answer.sentences else [view.answer.text], short_names(passages)
    for index, sentence in enumerate(view.answer.sentences):
        cited = cited_by(sentence, checks[index] if index < len(checks) else None)
        of = [number for number in cited if number <= len(passages)]
        text = in_lines(sentence.text, [passages[number - 1] for number in of])
        lines.append(f"{text} [{'; '.join(names[number - 1] for number in of)}]" if of else text)
    return RENDER.actions("\n\n".join(lines), view.record_id, again)


def _notes(view: View, settings: Config, found: Shown) -> str:
    """Notices beside the answer, the most important first."""
    notes = [notice_html(view.error, "bad")] if view.error else []
    for judged in found.verdicts:
        if judged.verdict is Verdict.DISAGREEING and judged.supporting and judged.contradicting:
            words = f"Sources disagree on sentence {judged.index + 1}: {judged.reason}"
            notes.append(
                f'<button type="button" class="rq-notice rq-mixed rq-pick" data-show="s{judged.index}">'
                f"{text_html(words)}</button>"
            )
    answer = view.answer
    if answer and (note := note_of(answer)) and not view.asked.given:
        remarkable = answer.finish_reason != "stop" or answer.rejected_citations
        notes.append(RENDER.why(note) if answer.is_refusal else notice_html(note, "mixed" if remarkable else "plain"))
    if view.rankings and not any(ranking.hits for ranking in view.rankings):
        words = f"No passage shares a word or a meaning with this {_what(view)} in this corpus."
        notes.append(notice_html(words, "mixed"))
    weak = None if view.answer and view.answer.is_refusal else weak_match(view)
    if weak is not None:
        words = (
            f"The corpus may not cover this {_what(view)}: no passage is near it. The highest similarity is "
            f"{weak:.2f}; nearly every question that a corpus answers reaches {WEAK_COSINE:.2f}."
        )
        notes.append(notice_html(words, "mixed"))
    elif (value := unsure_relevance(view)) is not None:
        words = (
            f"Check this answer: the probability that it answers the question is {value:.2f}. On documents new to "
            f"ragqa, fewer than half of the answers below {SURE:.2f} were right in full."
        )
        notes.append(notice_html(words, "plain"))
    old = stale(view, settings)
    if old:
        again = f"{'Check' if view.asked.given else 'Ask'} again to apply the settings."
        notes.append(notice_html(" ".join([*(one.words for one in old), again]), "mixed"))
    if view.scored and view.answer and not (view.answer.sentences or view.answer.is_refusal):
        words = "No sentence to score: E, C and OC are 0 by definition."
        notes.append(notice_html(words))
    if found.sentences and found.evaluation and not found.evaluation.verdicts:
        words = "Raw verdicts: this record has only two thresholds on the highest probabilities."
        notes.append(notice_html(words))
    return "".join(notes)


def _what(view: View) -> str:
    return "text" if view.asked.given else "question"


def _written(view: View) -> str:
    if view.answer is None or not view.answer.text:
        return ""
    model = f", {view.answer.model}" if view.answer.model else ""
    quoting = view.answer.generator.removeprefix("direct")
    is_quoted = quoting != view.answer.generator
    written = f"Quoted from the passages{quoting}" if is_quoted else f"Written by {view.answer.generator}{model}"
    origin = view.answer.note if view.asked.given else f"{written}."
    how = " Choose a sentence to see its source; ↑ ↓ move to the next." if view.answer.sentences else ""
    return f'<p class="rq-fine">{text_html(origin + how)}</p>'


def _status(view: View, found: Shown) -> str:
    """The status for screen readers: the stage while it runs, then the outcome."""
    if view.running:
        return f"{view.phase.split(':')[0].split(',')[0]}." if not view.answer else "The answer is ready; scoring it."
    if view.error:
        return view.error
    if found.evaluation and view.answer and view.answer.sentences:
        composite = f"RePASs {found.evaluation.repass.composite:.2f}"
        return f"Finished: {quantity(len(found.sentences), 'sentence')}, {composite}."
    return "Finished."
