"""Describes a step of LOC, VRR or a fan-out in one line, for the terminal and the page's status. Pure."""

from __future__ import annotations

from ragqa.english.words import quantity
from ragqa.types.events.generation import (
    BestSoFar,
    CallsPlanned,
    CandidateScored,
    CandidateWritten,
    EvidenceFound,
    ObligationAnswered,
    ObligationsInserted,
    PassagesAdded,
    SentencesRemoved,
    SubQuestionAnswered,
    SubQuestionsAsked,
    TraceEvent,
)


def plan_words(planned: CallsPlanned) -> str:
    """The expected cost of the work, before its first call."""
    few = "" if planned.fewest == planned.most else f"{planned.fewest:,} to "
    what = f"{quantity(planned.n_obligations, 'obligation')} in the kept passages."
    if planned.n_sub_questions:
        what = f"At most {quantity(planned.n_sub_questions, 'sub-question')}."
    return (
        f"{what} It will take {few}{quantity(planned.most, 'call')}, of a budget of "
        f"{planned.budget:,}: about {planned.prompt_tokens:,} tokens sent and at most "
        f"{planned.completion_tokens:,} written."
    )


def trace_words(event: TraceEvent) -> str:
    """The outcome of this step with its numbers, without the text of passages and answers."""
    match event:
        case CallsPlanned():
            return plan_words(event)
        case CandidateWritten(number, _, reason):
            words = {"stop": "written", "empty": "is empty", "failed": "failed", "interrupted": "broke off"}
            return f"Candidate {number} " + ("is a refusal" if event.is_refusal else words.get(reason, f"({reason})"))
        case CandidateScored(number, repass):
            return f"Candidate {number}: RePASs {repass.composite:.3f}"
        case ObligationAnswered(number, total, _, _, attempt):
            best = "" if event.best is None else f", best {event.best:.2f}, {'' if event.covered else 'not '}covered"
            return f"Obligation {number} of {total}, try {attempt}{best}"
        case SentencesRemoved(number, mean, removed, repass):
            n = quantity(len(removed), "sentence")
            return f"Round {number}: {n} above C {mean:.3f} removed, {repass.composite:.3f}"
        case ObligationsInserted(number, obligations, _, repass):
            covered = sum(obligation.covered for obligation in obligations)
            n = quantity(len(obligations), "missing obligation")
            return f"Round {number}: {covered} of {n} in, {repass.composite:.3f}"
        case SubQuestionsAsked(asked, by):
            if not asked:
                return event.note or f"No sub-question, by {by}"
            return "\n".join(f"Sub-question {one.number}: {one.text} ({one.reason})" for one in asked)
        case EvidenceFound(number, hits, kept):
            return f"Sub-question {number}: found {quantity(len(hits), 'passage')}, kept {len(kept)}"
        case SubQuestionAnswered(number, text, cited):
            whose = f"Sub-question {number}" if number else "The question by itself"
            if event.is_refusal or not text:
                return f"{whose}: no answer in its evidence"
            return f"{whose}: answered from {quantity(len(cited), 'passage')}"
        case PassagesAdded(ids):
            return f"Kept {quantity(len(ids), 'passage')} beyond the filter, for sentences of the answer"
        case BestSoFar(_, step, repass):
            return f"Best so far: {step}" + (f", RePASs {repass.composite:.3f}" if repass else "")
