"""Many questions through the pipeline that the page uses: answered, kept, scored, kept; several at a time if wanted."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from queue import SimpleQueue
from typing import Any

from ragqa.errors import GenerationError, QuestionError, ScoringError
from ragqa.evaluation.answer_folder import Answered, AnswerFolder, Item
from ragqa.evaluation.answer_measures import Values, measure, sentence_rows
from ragqa.events.generation import CandidateScored, ObligationsInserted, SentencesRemoved
from ragqa.events.pipeline import (
    Answered as AnsweredEvent,
)
from ragqa.events.pipeline import Event, Fused, Reranked, Retrieved, Selected
from ragqa.events.scoring import Scored
from ragqa.generation.reply_cache import caching_replies
from ragqa.pipeline import Pipeline
from ragqa.types import RePASs, Selection, Usage

MAX_FAILURES_IN_A_ROW = 5  # then the server is gone or refuses: asking on would only cost time
KEPT_HITS = 100  # of a ranking; RIRAG measures at 10 and 100
_STAGES: dict[type, str] = {
    Retrieved: "retrieval",
    Fused: "fusion",
    Reranked: "reranking",
    Selected: "filtering",
    AnsweredEvent: "generation",
    Scored: "scoring",
}


class Status(StrEnum):
    """What became of a question."""

    SCORED = "scored"
    EMPTY = "empty"  # answered without a sentence: nothing to score
    FAILED = "failed"
    LEFT = "left"  # not tried, or answered and not scored


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question's fate. ``values`` are there for a scored one; ``note`` says why another has none."""

    item: Item
    status: Status
    values: Values | None = None
    usage: Usage = field(default_factory=Usage)
    n_begun: int = 0
    note: str = ""


def outcome_of(item: Item, folder: AnswerFolder) -> Outcome:
    """What the folder knows of this question."""
    standing = folder.standing(item)
    values, status = None, Status.FAILED if standing.failed else Status.LEFT
    if standing.scored:
        values = standing.scored["values"]
        status = Status.SCORED if values["sentences"] else Status.EMPTY
    return Outcome(item, status, values, standing.usage, standing.n_begun, standing.failed)


class AnswerRun:
    """Answers questions in threads of its own. `outcomes` gives each as it ends; `stop` lets those under way end."""

    def __init__(self, pipeline: Pipeline, items: Sequence[Item], folder: AnswerFolder, parallel: int = 1) -> None:
        """``items`` are those still to be answered or scored; nothing starts yet."""
        self._pipeline, self._folder = pipeline, folder
        self._waiting = deque(items)
        self._ended: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self._stopped = threading.Event()
        self._failures = 0
        self._threads = [
            # Daemons: a second Ctrl-C must end the process, whatever a silent server does.
            threading.Thread(target=self._work, name=f"ragqa-answer-{n}", daemon=True)
            for n in range(max(1, min(parallel, len(items))))
        ]

    def outcomes(self) -> Iterator[Outcome]:
        """Each question's outcome once the folder has it, in the order they end.

        Raises GenerationError when `MAX_FAILURES_IN_A_ROW` questions in a row got no answer, and whatever else ended a
        thread. Questions fail alone otherwise.
        """
        for thread in self._threads:
            thread.start()
        running, last = len(self._threads), None
        while running:
            ended = self._ended.get()
            if ended is None:
                running -= 1
            elif isinstance(ended, BaseException):
                self.stop()
                raise ended
            else:
                last = ended
                yield ended
        if last is not None and self._failures >= MAX_FAILURES_IN_A_ROW:
            msg = (
                f"{self._failures} questions in a row got no answer, the last because: {last.note} What was "
                f"answered is kept in {self._folder.folder}; when the cause is gone, run the same command again"
            )
            raise GenerationError(msg)

    def stop(self) -> None:
        """Begins no further question; an answer under way is received and kept, and not scored."""
        self._stopped.set()

    def wait(self) -> None:
        """Until those under way have ended."""
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _work(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    item = self._waiting.popleft()
                except IndexError:
                    break
                outcome = self._outcome(item)
                self._failures = self._failures + 1 if outcome.status is Status.FAILED else 0
                if self._failures >= MAX_FAILURES_IN_A_ROW:
                    self.stop()
                self._ended.put(outcome)
        except BaseException as error:  # whatever it is, the thread that waits must hear of it
            self._ended.put(error)
        finally:
            self._ended.put(None)

    def _outcome(self, item: Item) -> Outcome:
        try:
            if self._folder.standing(item).answered_at is None:
                self._ask(item)
            else:
                self._score(item, self._folder.answered(item))
        except (GenerationError, QuestionError, ScoringError) as error:
            self._folder.keep_failed(item, str(error))
        return outcome_of(item, self._folder)

    def _ask(self, item: Item) -> None:
        """Through the pipeline; the answer is kept before a sentence of it is scored."""
        self._folder.keep_begun(item)
        clock = _Clock()
        selection, answered, steps = Selection((), ()), None, []
        replies = self._folder.replies(item)
        with caching_replies(replies), closing(self._pipeline.run(item.question)) as events:  # type: ignore[type-var]
            for event in events:
                clock.take(event)
                steps += _step(event)
                match event:
                    case Selected(selection):
                        pass
                    case AnsweredEvent(answer):
                        answered = Answered(
                            answer, selection.passages, _ranking(selection), dict(clock.seconds), tuple(steps)
                        )
                        self._folder.keep_answered(item, answered)
                        if self._stopped.is_set():
                            return
                    case Scored() if answered:
                        self._keep_scores(item, answered, event, clock.seconds)
                clock.resume()

    def _score(self, item: Item, answered: Answered) -> None:
        """An answer of an earlier run, by the same scorer."""
        began = time.perf_counter()
        stream = self._pipeline.scorer.stream(answered.answer, answered.passages)
        while True:
            try:
                next(stream)
            except StopIteration as stop:
                seconds = answered.seconds | {"scoring": time.perf_counter() - began}
                self._keep_scores(item, answered, stop.value, seconds)
                return

    def _keep_scores(self, item: Item, answered: Answered, scored: Scored, seconds: dict[str, float]) -> None:
        values = measure(answered.answer, answered.passages, scored, seconds, answered.answer.usage)
        values |= {f"seconds_{stage}": spent for stage, spent in seconds.items()}
        try:
            self._folder.keep_scored(item, values, sentence_rows(scored))
        except ValueError as error:
            msg = f"RePASs gave something that is not a number ({error}); check the model's files, or reinstall ragqa"
            raise ScoringError(msg) from error


class _Clock:
    """Seconds per stage of the pipeline's work on one question; what is done between two events is not counted."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._spent, self._resumed = 0.0, time.perf_counter()

    def take(self, event: Event) -> None:
        self._spent += time.perf_counter() - self._resumed
        if stage := _STAGES.get(type(event)):
            self.seconds[stage], self._spent = self._spent, 0.0

    def resume(self) -> None:
        self._resumed = time.perf_counter()


def _ranking(selection: Selection) -> tuple[tuple[str, float], ...]:
    candidates = sorted((*selection.kept, *selection.dropped), key=lambda candidate: candidate.rank)[:KEPT_HITS]
    return tuple((candidate.passage.passage_id, candidate.relevance) for candidate in candidates)


def _step(event: Event) -> list[dict[str, Any]]:
    """A version that VRR scored, as (step, E, C, OC) in the configured mode; nothing of another event."""
    match event:
        case CandidateScored(number, repass):
            name = f"candidate {number}"
        case SentencesRemoved(round=number, repass=repass):
            name = f"removal {number}"
        case ObligationsInserted(round=number, repass=repass):
            name = f"insertion {number}"
        case _:
            return []
    return [{"step": name, **_parts(repass)}]


def _parts(repass: RePASs) -> dict[str, float]:
    return {**asdict(repass), "composite": repass.composite}
