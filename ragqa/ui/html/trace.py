"""The steps of LOC, VRR and fan-out -> HTML: plan, candidates, rounds, tries, sub-questions. Pure, escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragqa.english.words import quantity
from ragqa.records.trace_words import plan_words
from ragqa.types import Passage, SubQuestion
from ragqa.types.events.generation import (
    BestSoFar,
    CallsPlanned,
    CandidateScored,
    CandidateWritten,
    EvidenceFound,
    ObligationAnswered,
    ObligationsInserted,
    SentencesRemoved,
    SubQuestionAnswered,
    SubQuestionsAsked,
    TraceEvent,
)
from ragqa.types.scores import RePASs
from ragqa.ui.html.render import notice_html
from ragqa.ui.html.template import ENVIRONMENT, Templates

SHOWN_CHARS = 160  # characters of a text in a collapsed row
_TEMPLATES: Final = Templates("trace.html")
ENVIRONMENT.filters["shortened"] = lambda text: text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of VRR and the scores after it."""

    step: str
    repass: RePASs


def score_path(trace: Sequence[TraceEvent]) -> tuple[PathStep, ...]:
    """The scores of the best candidate, then of every step of every round; empty before the first score.

    While candidates are still written, the first point is the best one so far.
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
    """Says which version of the answer is shown while the work continues."""
    return _TEMPLATES.best(best.step, best.repass)


def trace_html(trace: Sequence[TraceEvent]) -> str:
    """The plan, then a row per candidate, step or obligation; an opened row shows the text and the reasons."""
    plans = [plan_words(event) for event in trace if isinstance(event, CallsPlanned)]
    rounds = [event for event in trace if isinstance(event, SentencesRemoved | ObligationsInserted)]
    return _TEMPLATES.trace(plans, _candidates(trace), rounds, _obligations(trace))


def _candidates(trace: Sequence[TraceEvent]) -> list[tuple[CandidateWritten, str, str, RePASs | None]]:
    """(candidate, state, colour, score) of each candidate."""
    scores = {event.number: event.repass for event in trace if isinstance(event, CandidateScored)}
    best = max(scores, key=lambda number: (scores[number].composite, -number), default=None)
    rows = []
    for event in sorted((e for e in trace if isinstance(e, CandidateWritten)), key=lambda event: event.number):
        state, kind = ("best", "good") if event.number == best else ("", "plain")
        if event.is_refusal:
            state, kind = "refusal", "mixed"
        elif event.number not in scores:
            state, kind = ("not scored", "mixed") if event.text else (event.finish_reason, "bad")
        rows.append((event, state, kind, scores.get(event.number)))
    return rows


def _obligations(
    trace: Sequence[TraceEvent],
) -> list[tuple[list[ObligationAnswered], ObligationAnswered, str, str]]:
    """(tries, best try, state, colour) of each obligation."""
    tries: dict[int, list[ObligationAnswered]] = {}
    for event in trace:
        if isinstance(event, ObligationAnswered):
            tries.setdefault(event.number, []).append(event)
    rows = []
    for number in sorted(tries):
        best = max(tries[number], key=lambda one: (one.covered, one.best or 0.0))
        if best.best is None:
            state, kind = "nothing to cover", "plain"
        else:
            state, kind = ("covered", "good") if best.covered else ("not covered", "mixed")
        rows.append((tries[number], best, state, kind))
    return rows


def has_tree(trace: Sequence[TraceEvent]) -> bool:
    """Whether this is the trace of a fan-out that has begun."""
    return any(isinstance(event, SubQuestionsAsked) for event in trace)


def tree_html(trace: Sequence[TraceEvent], selected: Sequence[Passage] = ()) -> str:
    """A row per question with its sub-questions below; an opened row shows the reason, the answer, the evidence.

    Evidence has its number among the passages ``selected``, by which the answer cites it.
    """
    asked = [event for event in trace if isinstance(event, SubQuestionsAsked)]
    notes = "".join(notice_html(event.note, "mixed") for event in asked if event.note)
    questions = [question for event in asked for question in event.sub_questions]
    found = {event.number: event for event in trace if isinstance(event, EvidenceFound)}
    answers = {event.number: event for event in trace if isinstance(event, SubQuestionAnswered)}
    numbers = {passage.passage_id: number for number, passage in enumerate(selected, start=1)}

    def below(parent: int) -> list[dict[str, Any]]:
        return [
            _node(one, found.get(one.number), answers.get(one.number), numbers) | {"below": below(one.number)}
            for one in questions
            if one.parent == parent
        ]

    whole = {"answer": answers[0], "kind": _state(None, answers[0])[1]} if 0 in answers else None
    return notes + _TEMPLATES.tree(whole, below(0))


def _node(
    question: SubQuestion, found: EvidenceFound | None, answer: SubQuestionAnswered | None, numbers: Mapping[str, int]
) -> dict[str, Any]:
    """A question with its answer and its kept passages, in the order of the evidence."""
    kept = []
    if found:
        passages, cited = {passage.passage_id: passage for passage in found.passages}, answer.cited if answer else ()
        places = {passage_id: (rank, score) for rank, (passage_id, score) in enumerate(found.hits, start=1)}
        for name in found.kept:
            if name in passages:
                kept.append((passages[name], numbers.get(name), name in cited, *places[name]))
    state, kind = _state(found, answer)
    title = f"{question.kind} {question.number}: {state}"
    return {"title": title, "kind": kind, "question": question, "answer": answer, "found": found, "kept": kept}


def _state(found: EvidenceFound | None, answer: SubQuestionAnswered | None) -> tuple[str, str]:
    if answer is not None:
        return ("answered", "good") if answer.text and not answer.is_refusal else ("no answer", "mixed")
    if found is None:
        return "searching", "plain"
    return (quantity(len(found.kept), "passage"), "plain") if found.kept else ("nothing found", "bad")
