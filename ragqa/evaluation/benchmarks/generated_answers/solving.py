"""Runs a question through the pipeline until it is answered, and an answer through the scorer, with their seconds."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Final

from ragqa.errors import GenerationError
from ragqa.evaluation.benchmark import Json, Status
from ragqa.evaluation.benchmarks.generated_answers.measures import measure, sentence_rows
from ragqa.evaluation.report import Hit
from ragqa.infra.validation import adapter_of
from ragqa.pipeline import Pipeline
from ragqa.types import Answer, Passage, Question, Selection
from ragqa.types.events.generation import CandidateScored, ObligationsInserted, SentencesRemoved
from ragqa.types.events.pipeline import STAGES, Event, Selected
from ragqa.types.events.pipeline import Answered as AnsweredEvent
from ragqa.types.streams import returned

KEPT_HITS: Final = 100  # of a ranking; RIRAG measures at 10 and 100


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """An answer as received, with the passages that it was written from.

    ``ranking`` holds (passage id, relevance), best first; ``seconds`` are those of each stage; ``steps`` are a
    generator's scores of its own versions, in the configured mode.
    """

    answer: Answer
    passages: tuple[Passage, ...]
    ranking: tuple[tuple[str, float], ...]
    seconds: dict[str, float]
    steps: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, solution: Json) -> ReceivedAnswer:
        """The object from its JSON form."""
        found: ReceivedAnswer = adapter_of(ReceivedAnswer).validate_python(solution)
        return found

    def hits(self, gold: Collection[str] = ()) -> tuple[Hit, ...]:
        """The passages that it was written from, for a row; ``gold`` are ids of passages or documents."""
        relevance = dict(self.ranking)
        return tuple(
            Hit(
                one.passage_id,
                one.document_id,
                relevance.get(one.passage_id),
                not {*gold}.isdisjoint((one.passage_id, one.document_id)),
            )
            for one in self.passages
        )


def answered(pipeline: Pipeline, question: Question) -> ReceivedAnswer:
    """Runs the question through the pipeline until the answer is there. Raises GenerationError."""
    seconds: dict[str, float] = {}
    selection, steps = Selection((), ()), []
    spent, resumed = 0.0, time.perf_counter()  # the caller's work between two events is not counted
    with closing(pipeline.run(question)) as events:  # type: ignore[type-var]
        for event in events:
            spent += time.perf_counter() - resumed
            if stage := STAGES.get(type(event)):
                seconds[stage], spent = seconds.get(stage, 0.0) + spent, 0.0
            steps += _step(event)
            match event:
                case Selected(selection):
                    pass
                case AnsweredEvent(answer):
                    return ReceivedAnswer(answer, selection.passages, _ranking(selection), seconds, tuple(steps))
            resumed = time.perf_counter()
    raise GenerationError("the pipeline ended without an answer; name a generator that writes")


def scores_of(pipeline: Pipeline, question: Question, found: ReceivedAnswer) -> Json:
    """``values`` by the measures' keys and stages' seconds, ``sentences`` with their verdicts, ``n_obligations``.

    Raises ScoringError.
    """
    began = time.perf_counter()
    scored = returned(pipeline.scorer.stream(found.answer, found.passages))
    seconds = {**found.seconds, "scoring": time.perf_counter() - began}
    values = measure(found.answer, found.passages, scored, seconds, found.answer.usage)
    answers = pipeline.relevance(question, found.answer, found.passages)
    values |= {"relevance": answers.value if answers else None}
    values |= {f"seconds_{stage}": spent for stage, spent in seconds.items()}
    status = Status.SCORED if values["sentences"] else Status.EMPTY
    n_obligations = len(scored.paper.obligations)
    return {"status": status, "values": values, "sentences": sentence_rows(scored), "n_obligations": n_obligations}


def _ranking(selection: Selection) -> tuple[tuple[str, float], ...]:
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda candidate: candidate.rank)[:KEPT_HITS]
    return tuple((candidate.passage.passage_id, candidate.relevance) for candidate in candidates)


def _step(event: Event) -> list[dict[str, Any]]:
    """A version that VRR scored, as (step, E, C, OC) in the configured mode; empty for other events."""
    match event:
        case CandidateScored(number, repass):
            name = f"candidate {number}"
        case SentencesRemoved(round=number, repass=repass):
            name = f"removal {number}"
        case ObligationsInserted(round=number, repass=repass):
            name = f"insertion {number}"
        case _:
            return []
    return [{"step": name, **asdict(repass), "composite": repass.composite}]
