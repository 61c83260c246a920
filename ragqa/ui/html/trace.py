"""How LOC and VRR came to their answer -> HTML: plan, candidates, rounds, tries. Pure, everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ragqa.generation.trace_words import plan_words
from ragqa.types import Passage, SubQuestion
from ragqa.types.events.generation import (
    BestSoFar,
    CallsPlanned,
    CandidateScored,
    CandidateWritten,
    EvidenceFound,
    MissingObligation,
    ObligationAnswered,
    ObligationsInserted,
    RemovedSentence,
    SentencesRemoved,
    SubQuestionAnswered,
    SubQuestionsAsked,
    TraceEvent,
)
from ragqa.types.scores import RePASs
from ragqa.ui.html.render import badge_html, notice_html, place, text_html

SHOWN_CHARS = 160  # of a text in a closed row


@dataclass(frozen=True, slots=True)
class PathStep:
    """A point of the score path."""

    step: str
    repass: RePASs


def score_path(trace: Sequence[TraceEvent]) -> tuple[PathStep, ...]:
    """The best candidate and then every step of every round, in order; empty before the first score.

    While candidates come the first point is the best of those so far.
    """
    scored = [event.repass for event in trace if isinstance(event, CandidateScored)]
    if not scored:
        return ()
    path = [PathStep("verify", max(scored, key=lambda repass: repass.composite))]
    for event in trace:
        if isinstance(event, SentencesRemoved):
            path.append(PathStep(f"remove {event.round}", event.repass))
        elif isinstance(event, ObligationsInserted):
            path.append(PathStep(f"insert {event.round}", event.repass))
    return tuple(path)


def best_html(best: BestSoFar) -> str:
    """Which version of the answer is shown while the work continues."""
    score = f", RePASs {best.repass.composite:.3f}" if best.repass else ""
    return f'<p class="rq-fine">{badge_html("best so far", "mixed")} {escape(best.step)}{score}</p>'


def trace_html(trace: Sequence[TraceEvent]) -> str:
    """The plan, then a row per candidate, step or obligation; opened, a row shows the text and the reasons."""
    plan = "".join(f'<p class="rq-fine">{text_html(plan_words(e))}</p>' for e in trace if isinstance(e, CallsPlanned))
    rows = [*_candidates(trace), *_rounds(trace), *_obligations(trace)]
    return plan + (f'<div class="rq-rows rq-trace">{"".join(rows)}</div>' if rows else "")


def _candidates(trace: Sequence[TraceEvent]) -> list[str]:
    scores = {event.number: event.repass for event in trace if isinstance(event, CandidateScored)}
    best = max(scores, key=lambda number: (scores[number].composite, -number), default=None)
    written = sorted((e for e in trace if isinstance(e, CandidateWritten)), key=lambda event: event.number)
    return [_candidate(event, scores.get(event.number), is_best=event.number == best) for event in written]


def _candidate(event: CandidateWritten, repass: RePASs | None, *, is_best: bool) -> str:
    state, kind = ("best", "good") if is_best else ("", "plain")
    if event.is_refusal:
        state, kind = "refusal", "mixed"
    elif not repass:
        state, kind = ("not scored", "mixed") if event.text else (event.finish_reason, "bad")
    badge = badge_html(f"candidate {event.number}" + (f", {state}" if state else ""), kind)
    return _row(badge, repass, event.text or event.note, _text(event.text) + _note(event.note))


def _rounds(trace: Sequence[TraceEvent]) -> list[str]:
    rows = []
    for event in trace:
        if isinstance(event, SentencesRemoved):
            n = len(event.removed)
            words = f"{n} sentence{'s' * (n != 1)} above the mean contradiction of {event.mean:.3f}"
            inside = _list([_removed(sentence, event.mean) for sentence in event.removed])
            badge = badge_html(f"removal {event.round}", "bad" if n else "plain")
            rows.append(_row(badge, event.repass, words, inside + _note(event.note)))
        elif isinstance(event, ObligationsInserted):
            covered = sum(obligation.covered for obligation in event.obligations)
            words = f"{covered} of {len(event.obligations)} missing obligations covered by the correction"
            inside = _list([_inserted(obligation) for obligation in event.obligations])
            badge = badge_html(f"insertion {event.round}", "good" if covered else "mixed")
            rows.append(_row(badge, event.repass, words, inside + _text(event.text) + _note(event.note)))
    return rows


def _removed(sentence: RemovedSentence, mean: float) -> str:
    why = f"C {sentence.contradiction:.3f} > {mean:.3f}"
    if sentence.passage_index is not None:
        why += f", against [{sentence.passage_index + 1}] {sentence.premise}"
    return f"<del>{text_html(sentence.text)}</del><br>{text_html(why)}"


def _inserted(obligation: MissingObligation) -> str:
    badge = badge_html("covered", "good") if obligation.covered else badge_html("still missing", "mixed")
    numbers = f"{obligation.before:.2f} → {obligation.after:.2f}"
    return f"{badge} {numbers} [{obligation.passage_index + 1}] {text_html(obligation.text)}"


def _obligations(trace: Sequence[TraceEvent]) -> list[str]:
    tries: dict[int, list[ObligationAnswered]] = {}
    for event in trace:
        if isinstance(event, ObligationAnswered):
            tries.setdefault(event.number, []).append(event)
    return [_obligation(tries[number]) for number in sorted(tries)]


def _obligation(tries: Sequence[ObligationAnswered]) -> str:
    best = max(tries, key=lambda one: (one.covered, one.best or 0.0))
    if best.best is None:
        state, kind = "nothing to cover", "plain"
    else:
        state, kind = ("covered", "good") if best.covered else ("not covered", "mixed")
    badge = badge_html(f"obligation {best.number} of {best.total}: {state}", kind)
    lines = [
        f"try {one.attempt}" + ("" if one.best is None else f", {one.best:.2f}") + f": {text_html(one.text or '–')}"
        + _note(one.note)
        for one in tries
    ]  # fmt: skip
    where = f"[{best.passage_index + 1}] {best.obligation}"
    return _row(badge, None, where, f"<p>{text_html(where)}</p>{_list(lines)}")


def _row(badge: str, repass: RePASs | None, words: str, inside: str) -> str:
    numbers = ""
    if repass:
        parts = (
            ("RePASs", repass.composite),
            ("E", repass.entailment),
            ("C", repass.contradiction),
            ("OC", repass.obligation_coverage),
        )
        numbers = "".join(f'<span class="rq-num">{name} {value:.3f}</span>' for name, value in parts)
    shown = words if len(words) <= SHOWN_CHARS else words[:SHOWN_CHARS].rstrip() + "…"
    return (
        f'<details class="rq-row"><summary><span class="rq-cells">{badge}{numbers}</span>'
        f'<span>{text_html(shown)}</span></summary><div class="rq-inside">{inside}</div></details>'
    )


def _list(items: Sequence[str]) -> str:
    """``items`` are HTML already."""
    return f'<ul class="rq-list">{"".join(f"<li>{item}</li>" for item in items)}</ul>' if items else ""


def _text(text: str) -> str:
    return f'<div class="rq-passage">{text_html(text)}</div>' if text else ""


def _note(note: str) -> str:
    return f'<p class="rq-fine">{text_html(note)}</p>' if note else ""


ANSWER_CHARS = 160  # of an answer in a closed row


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
            row = _node_row(question, found.get(question.number), answers.get(question.number), numbers)
            rows.append(f'<div role="listitem">{row}{inner}</div>')
    return rows


def _node_row(
    question: SubQuestion, found: EvidenceFound | None, answer: SubQuestionAnswered | None, numbers: dict[str, int]
) -> str:
    state, kind = _state(found, answer)
    badge = badge_html(f"{question.kind} {question.number}: {state}", kind)
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
    return text if len(text) <= ANSWER_CHARS else text[:ANSWER_CHARS].rstrip() + "…"


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
