"""FanOutQA's questions through one setting: answered, kept as they come, scored; several at a time if wanted.

::

    stream = run_fanoutqa(questions, solver, folder, metrics)   # or metrics=None: the test set, or answers only
    for progress in stream: ...                                 # a question's answer and score; close() to cancel

Killed, closed or stopped by Ctrl-C, the next run over the same folder asks nothing again that was received: not a
search, not an answer, not a judgement.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ragqa.config import GenerationConfig
from ragqa.corpus.fanoutqa import FanOutQuestion
from ragqa.errors import GenerationError, RagqaError, RecordError
from ragqa.evaluation.answer_folder import Answered, AnswerFolder, Item
from ragqa.evaluation.answer_run import MAX_FAILURES_IN_A_ROW
from ragqa.evaluation.fanoutqa_metrics import Metrics, QuestionScore, Scores, score_one, summarise
from ragqa.evaluation.fanoutqa_settings import Solver
from ragqa.evaluation.run_folder import begun, digest, held
from ragqa.generation.reply_cache import caching_replies
from ragqa.recorder import without_credentials
from ragqa.types import Question, Usage

SCHEMA_VERSION = 1
OUTPUTS = ("generations.jsonl", "details.json", "report.json")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question. ``answer`` None: none yet, and ``note`` says why where it was tried.

    ``steps`` are the searches, or what of the evidence was sent.
    """

    question: FanOutQuestion
    answer: str | None = None
    steps: tuple[dict[str, Any], ...] = ()
    usage: Usage = field(default_factory=Usage)
    note: str = ""

    @property
    def failed(self) -> bool:
        return self.answer is None and bool(self.note)


@dataclass(frozen=True, slots=True)
class Progress:
    """A question that has ended in this run, with its score where metrics were given and there is an answer."""

    done: int
    total: int
    outcome: Outcome
    score: QuestionScore | None = None


@dataclass(frozen=True, slots=True)
class RunResult:
    """Every question's outcome in their order, and their scores; ``scores`` is None where nothing was measured."""

    outcomes: tuple[Outcome, ...]
    question_scores: tuple[QuestionScore, ...] = ()
    scores: Scores | None = None


def stamp_of(questions: Sequence[FanOutQuestion], solver: Solver, config: GenerationConfig) -> dict[str, Any]:
    """What a run is known by: questions, setting, model and all that decides an answer; no key, no patience."""
    asked = [[question.question_id, question.question.text] for question in questions]
    return {
        "schema_version": SCHEMA_VERSION,
        "benchmark": "FanOutQA",
        "setting": str(solver.setting),
        "questions_sha256": digest({"questions": asked}),
        "model": config.model,
        "base_url": without_credentials(config).base_url,
        "temperature": config.temperature,
        "max_tokens": config.max_tokens,
        "seed": config.seed,
        **solver.described(),
    }


@contextmanager
def open_run_folder(folder: Path, stamp: Mapping[str, Any], *, restart: bool = False) -> Iterator[AnswerFolder]:
    """The folder of the run with this stamp, locked; made where it does not exist.

    ``restart`` throws away what an earlier run left. Raises ConfigError where the folder belongs to another run,
    RecordError where another process uses it, or it is damaged, or it cannot be written.
    """
    with held(folder, "answering"):
        found, _ = begun(folder, stamp, OUTPUTS, restart=restart)
        opened = AnswerFolder(folder, found)
        try:
            yield opened
        finally:
            opened.journal.close()


def items_of(questions: Sequence[FanOutQuestion]) -> tuple[Item, ...]:
    """The questions as the folder keeps them, by their place from 1."""
    return tuple(
        Item(number, Question(question.question.text, question.question_id))
        for number, question in enumerate(questions, 1)
    )


def run_fanoutqa(
    questions: Sequence[FanOutQuestion],
    solver: Solver,
    folder: AnswerFolder,
    metrics: Metrics | None = None,
    *,
    limit: int | None = None,
    parallel: int = 1,
) -> Generator[Progress, None, RunResult]:
    """Yields each question as it ends, those of an earlier run first, and returns everything in the questions' order.

    ``limit`` asks only the first N; the others count as not asked and in no mean. Closing the generator begins no
    further question and waits for those under way, which are kept. Raises GenerationError when
    `MAX_FAILURES_IN_A_ROW` questions in a row got no answer; questions fail alone otherwise.
    """
    chosen = tuple(zip(questions, items_of(questions), strict=True))[:limit]
    outcomes: dict[str, Outcome] = {}
    scores: dict[str, QuestionScore] = {}
    pending = []
    for question, item in chosen:
        kept = _kept(question, item, folder)
        if kept.answer is None:
            pending.append((question, item))
        else:
            yield _progress(kept, metrics, outcomes, scores, len(chosen))
    workers = _Workers(pending, solver, folder, parallel)
    try:
        for outcome in workers.outcomes():
            yield _progress(outcome, metrics, outcomes, scores, len(chosen))
    finally:
        workers.stop()
    for question, item in chosen:
        outcomes.setdefault(question.question_id, _kept(question, item, folder))
    ordered = tuple(outcomes[question.question_id] for question, _ in chosen)
    if metrics is None:
        return RunResult(ordered)
    of_all = tuple(
        scores.get(outcome.question.question_id) or score_one(outcome.question, None, metrics) for outcome in ordered
    )
    return RunResult(ordered, of_all, summarise(of_all, metrics))


def scoring_stamp(questions: Sequence[FanOutQuestion], answers: Mapping[str, str]) -> dict[str, Any]:
    """What the scoring of answers that others wrote is known by."""
    asked = [[question.question_id, question.question.text] for question in questions]
    return {
        "schema_version": SCHEMA_VERSION,
        "benchmark": "FanOutQA, answers given",
        "questions_sha256": digest({"questions": asked}),
        "answers_sha256": digest(dict(answers)),
    }


def run_generations(
    questions: Sequence[FanOutQuestion], answers: Mapping[str, str], metrics: Metrics
) -> Generator[Progress, None, RunResult]:
    """As `run_fanoutqa`, for answers that are there already, by question id; nothing is asked but the judge."""
    outcomes, scores = [], []
    for question in questions:
        outcome = Outcome(question, answers.get(question.question_id))
        score = score_one(question, outcome.answer, metrics)
        outcomes.append(outcome)
        scores.append(score)
        yield Progress(len(outcomes), len(questions), outcome, score)
    return RunResult(tuple(outcomes), tuple(scores), summarise(scores, metrics))


def _progress(
    outcome: Outcome,
    metrics: Metrics | None,
    outcomes: dict[str, Outcome],
    scores: dict[str, QuestionScore],
    total: int,
) -> Progress:
    name = outcome.question.question_id
    outcomes[name] = outcome
    score = None
    if metrics is not None and outcome.answer is not None:
        score = scores[name] = score_one(outcome.question, outcome.answer, metrics)
    return Progress(len(outcomes), total, outcome, score)


def _kept(question: FanOutQuestion, item: Item, folder: AnswerFolder) -> Outcome:
    """What the folder knows of this question."""
    standing = folder.standing(item)
    if standing.answered_at is None:
        return Outcome(question, note=standing.failed)
    answered = folder.answered(item)
    return Outcome(question, answered.answer.text, answered.steps, answered.answer.usage, answered.answer.note)


class _Workers:
    """Threads that ask. Daemons: a second Ctrl-C must end the process, whatever a silent server does."""

    def __init__(
        self, pending: Sequence[tuple[FanOutQuestion, Item]], solver: Solver, folder: AnswerFolder, parallel: int
    ) -> None:
        self._solver, self._folder = solver, folder
        self._waiting = deque(pending)
        self._ended: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self._stopped = threading.Event()
        self._failures = 0
        self._threads = [
            threading.Thread(target=self._work, name=f"ragqa-fanoutqa-{n}", daemon=True)
            for n in range(max(1, min(parallel, len(pending))) if pending else 0)
        ]

    def outcomes(self) -> Iterator[Outcome]:
        for thread in self._threads:
            thread.start()
        running, last = len(self._threads), None
        while running:
            ended = self._ended.get()
            if ended is None:
                running -= 1
            elif isinstance(ended, BaseException):
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
        """Begins no further question and waits for those under way."""
        self._stopped.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _work(self) -> None:
        try:
            while not self._stopped.is_set():
                try:
                    question, item = self._waiting.popleft()
                except IndexError:
                    break
                outcome = self._outcome(question, item)
                self._failures = self._failures + 1 if outcome.failed else 0
                if self._failures >= MAX_FAILURES_IN_A_ROW:
                    self._stopped.set()
                self._ended.put(outcome)
        except BaseException as error:  # whatever it is, the thread that waits must hear of it
            self._ended.put(error)
        finally:
            self._ended.put(None)

    def _outcome(self, question: FanOutQuestion, item: Item) -> Outcome:
        self._folder.keep_begun(item)
        try:
            with caching_replies(self._folder.replies(item)):
                answer, steps = self._solver.solve(question)
        except RecordError:
            raise  # the folder itself: nothing more can be kept
        except RagqaError as error:
            self._folder.keep_failed(item, str(error))
        else:
            self._folder.keep_answered(item, Answered(answer, (), (), {}, steps))
        return _kept(question, item, self._folder)
