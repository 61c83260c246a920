"""A fan-out's tree of sub-questions, each with its evidence and its answer -> HTML. Pure, everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ragqa.events.generation import EvidenceFound, SubQuestionAnswered, SubQuestionsAsked, TraceEvent
from ragqa.types import Passage, SubQuestion
from ragqa.ui.render import badge_html, notice_html, place, text_html

SHOWN_CHARS = 160  # of an answer in a closed row


def has_tree(trace: Sequence[TraceEvent]) -> bool:
    """Whether this is the trace of a fan-out that has begun."""
    return any(isinstance(event, SubQuestionsAsked) for event in trace)


def tree_html(trace: Sequence[TraceEvent], selected: Sequence[Passage] = ()) -> str:
    """A row per question, those it was taken apart into under it; opened, a row shows why, the answer, the evidence.

    Evidence carries the number it has among the passages ``selected``, by which the answer cites it.
    """
    asked = [event for event in trace if isinstance(event, SubQuestionsAsked)]
    notes = "".join(notice_html(event.note, "mixed") for event in asked if event.note)
    questions = [question for event in asked for question in event.sub_questions]
    found = {event.number: event for event in trace if isinstance(event, EvidenceFound)}
    answers = {event.number: event for event in trace if isinstance(event, SubQuestionAnswered)}
    numbers = {passage.passage_id: number for number, passage in enumerate(selected, start=1)}
    rows = []
    if 0 in answers:
        rows.append(_whole(answers[0]))
    rows += _level(0, questions, found, answers, numbers)
    return notes + (f'<div class="rq-rows rq-tree" role="list">{"".join(rows)}</div>' if rows else "")


def _level(
    parent: int,
    questions: Sequence[SubQuestion],
    found: dict[int, EvidenceFound],
    answers: dict[int, SubQuestionAnswered],
    numbers: dict[str, int],
) -> list[str]:
    rows = []
    for question in questions:
        if question.parent == parent:
            below = _level(question.number, questions, found, answers, numbers)
            inner = f'<div class="rq-below" role="list">{"".join(below)}</div>' if below else ""
            row = _row(question, found.get(question.number), answers.get(question.number), numbers)
            rows.append(f'<div role="listitem">{row}{inner}</div>')
    return rows


def _row(
    question: SubQuestion, found: EvidenceFound | None, answer: SubQuestionAnswered | None, numbers: dict[str, int]
) -> str:
    state, kind = _state(found, answer)
    badge = badge_html(f"sub-question {question.number}: {state}", kind)
    why = f'<p class="rq-fine">{text_html(question.reason)}</p>' if question.reason else ""
    inside = why + (_answer(answer) if answer else "") + (_evidence(found, answer, numbers) if found else "")
    return _details(badge, question.text, _short(answer), inside)


def _whole(answer: SubQuestionAnswered) -> str:
    """The question itself, answered from what it found."""
    badge = badge_html("the question by itself", "good" if answer.text and not answer.is_refusal else "mixed")
    return f'<div role="listitem">{_details(badge, "", _short(answer), _answer(answer))}</div>'


def _state(found: EvidenceFound | None, answer: SubQuestionAnswered | None) -> tuple[str, str]:
    if answer is not None:
        return ("answered", "good") if answer.text and not answer.is_refusal else ("no answer", "mixed")
    if found is None:
        return "searching", "plain"
    return (f"{len(found.kept)} passages", "plain") if found.kept else ("nothing found", "bad")


def _details(badge: str, question: str, answer: str, inside: str) -> str:
    asked = f"<b>{text_html(question)}</b>" if question else ""
    short = f'<span class="rq-snippet">{text_html(answer)}</span>' if answer else ""
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{badge}</span><span>{asked}{short}</span></summary>'
        f'<div class="rq-inside">{inside}</div></details>'
    )


def _short(answer: SubQuestionAnswered | None) -> str:
    text = answer.text if answer else ""
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS].rstrip() + "…"


def _answer(answer: SubQuestionAnswered) -> str:
    text = f"<p>{text_html(answer.text)}</p>" if answer.text else ""
    return text + (f'<p class="rq-fine">{text_html(answer.note)}</p>' if answer.note else "")


def _evidence(found: EvidenceFound, answer: SubQuestionAnswered | None, numbers: dict[str, int]) -> str:
    """The passages that were kept, in the order of the evidence, those cited said to be so."""
    passages = {passage.passage_id: passage for passage in found.passages}
    scores = dict(found.hits)
    ranks = {passage_id: rank for rank, (passage_id, _) in enumerate(found.hits, start=1)}
    cited = set(answer.cited) if answer else set()
    items = []
    for passage_id in found.kept:
        passage = passages.get(passage_id)
        if passage is None:
            continue
        number = f"[{numbers[passage_id]}] " if passage_id in numbers else ""
        used = badge_html("cited", "good") if passage_id in cited else ""
        items.append(
            f"<li><strong>{number}{escape(place(passage))}</strong> {used} "
            f'<span class="rq-num">rank {ranks[passage_id]}, score {scores[passage_id]:.3f}</span>'
            f'<div class="rq-passage">{text_html(passage.text)}</div></li>'
        )
    if not items:
        return '<p class="rq-fine">No passage was found for it.</p>'
    head = f'<p class="rq-fine">Evidence, of {len(found.hits)} passages found:</p>'
    return f'{head}<ul class="rq-list">{"".join(items)}</ul>'
