"""A fan-out's trace -> its sub-questions with what they found, and from those the selection again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ragqa.config import FilteringConfig
from ragqa.events.generation import EvidenceFound, SubQuestionsAsked, TraceEvent
from ragqa.fanout.merging import Found, gather
from ragqa.types import Passage, Ranking, ScoredPassage, Selection


def found_in(trace: Sequence[TraceEvent]) -> tuple[Found, ...]:
    """Each sub-question that has its evidence, in the order it was asked; none where this is no fan-out."""
    questions = {
        one.number: one for event in trace if isinstance(event, SubQuestionsAsked) for one in event.sub_questions
    }
    found = []
    for event in trace:
        if isinstance(event, EvidenceFound):
            by_id = {passage.passage_id: passage for passage in event.passages}
            hits = [ScoredPassage(by_id[passage_id], score) for passage_id, score in event.hits]
            ranking = Ranking("sub-question", tuple(hits))
            found.append(Found(questions[event.number], ranking, event.hop))
    return tuple(found)


def reselected(ranking: Ranking, trace: Sequence[TraceEvent], filtering: FilteringConfig) -> Selection:
    """What these settings keep of the question's own ranking and of its sub-questions' evidence, where there is any."""
    return gather(ranking, found_in(trace), filtering)


def with_passages(trace: Sequence[TraceEvent], passages: Mapping[str, Passage]) -> tuple[TraceEvent, ...]:
    """The trace of a record as it was when it was written: evidence with its passages, which are given by id."""
    return tuple(
        replace(event, passages=tuple(passages[passage_id] for passage_id, _ in event.hits))
        if isinstance(event, EvidenceFound)
        else event
        for event in trace
    )
