"""VRR's second half (AUEB 4.5.2): rounds that remove contradicted sentences and insert missing obligations."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragqa.errors import GenerationError
from ragqa.generation.answers import marked, unfinished, without
from ragqa.generation.llm.calls import Call, CallResult, Calls
from ragqa.generation.llm.cleanup import is_prompt
from ragqa.generation.llm.reply import Writer
from ragqa.generation.prompts import ANSWER_MAX_CHARS, Prompt, PromptText, build_numbered_prompt
from ragqa.plugins.protocols import Verifier
from ragqa.settings.config import GenerationConfig
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.generation import (
    BestSoFar,
    GenerationEvent,
    MissingObligation,
    ObligationsInserted,
    RemovedSentence,
    SentencesRemoved,
    Working,
)
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import Breakdown, ObligationScore, SentenceScore
from ragqa.types.streams import mapped


@dataclass(frozen=True, slots=True)
class Version:
    """An answer with its breakdown in the configured mode, and the step that produced it."""

    answer: Answer
    evaluation: Breakdown
    scored: Scored
    step: str

    @property
    def composite(self) -> float:
        return self.evaluation.repass.composite


class Versions:
    """Scores versions of one answer and keeps the best one seen, the earliest at a tie."""

    def __init__(self, verifier: Verifier, passages: Sequence[Passage], calls: Calls) -> None:
        self.best: Version | None = None
        self._verifier, self._passages, self._calls = verifier, passages, calls

    def scoring(self, answer: Answer, step: str) -> Stream[Working, None, Version]:
        """The version of this answer, scored; yields while the models work. Raises ScoringError."""
        stream = self._verifier.stream(answer, self._passages)
        scored = yield from mapped(stream, lambda _: Working(f"Scoring {step}", self._calls.made))
        return Version(answer, self._verifier.breakdown(scored), scored, step)

    def offer(self, version: Version) -> Iterator[BestSoFar]:
        """Keeps the version and yields an event if it is better than the best so far."""
        if self.best is None or version.composite > self.best.composite:
            self.best = version
            answer = unfinished(version.answer, version.step)
            yield BestSoFar(answer, version.step, version.evaluation.repass, version.scored)


@dataclass(frozen=True, slots=True)
class WritingTask:
    """One question and everything needed to write its answer."""

    question: Question
    passages: Sequence[Passage]
    config: GenerationConfig
    verifier: Verifier
    calls: Calls
    versions: Versions
    writer: Writer
    insert_prompt: PromptText


class Refinement:
    """The rounds of one answer. After `events`, ``reason`` says in words why they ended."""

    def __init__(self, task: WritingTask, candidates: Mapping[int, Version], chosen: int) -> None:
        """``chosen`` is the candidate to refine; the others count in the mean that its sentences are compared with."""
        self.reason = ""
        self.rounds = 0  # started so far
        self.is_short = False  # whether the budget ended the work early
        self.trouble: GenerationError | None = None
        self._task = task
        self._pool = dict(candidates)
        self._chosen = chosen

    def events(self) -> Iterator[GenerationEvent]:
        """Removes, then inserts, at most ``rounds`` times, and removes once more after the last insertion.

        Ends early if a whole round did not beat the best version before it, if every obligation is covered, if no call
        is left or if the model returns nothing usable. Only whole rounds count, because an insertion alone often costs
        what the next removal regains (AUEB table 7). Raises ScoringError.
        """
        is_inserted = False
        while not self.reason and self.rounds < self._task.config.rounds:
            self.rounds += 1
            before = self._best
            yield from self._remove(self.rounds)
            missing = [score for score in self._current.evaluation.obligations if not score.covered]
            is_inserted = bool(missing) and (yield from self._insert(self.rounds, missing))
            if not missing:
                self.reason = "every obligation is covered"
            elif is_inserted and self._best <= before:
                self.reason = "the last round made it no better"
        if is_inserted:
            yield from self._remove(self.rounds + 1)
        self.reason = self.reason or "all rounds are done"

    @property
    def _current(self) -> Version:
        return self._pool[self._chosen]

    @property
    def _best(self) -> float:
        best = self._task.versions.best
        return best.composite if best else 0.0

    def _remove(self, number: int) -> Iterator[GenerationEvent]:
        """Removes every sentence whose contradiction is above the current mean of the pool."""
        task, current = self._task, self._current
        mean = task.verifier.mean_contradiction([version.evaluation for version in self._pool.values()])
        indexes = task.verifier.contradicted(current.evaluation, mean)
        if indexes:
            answer = without(current.answer, indexes)
            self._pool[self._chosen] = yield from task.versions.scoring(answer, f"removal {number}")
        removed = tuple(_removed(current.evaluation.sentences[index]) for index in indexes)
        yield SentencesRemoved(number, mean, removed, self._current.evaluation.repass)
        yield from task.versions.offer(self._current)

    def _insert(self, number: int, missing: Sequence[ObligationScore]) -> Stream[GenerationEvent, None, bool]:
        """Asks the model to insert all missing obligations at once; returns whether that gave a new version."""
        task, current = self._task, self._current
        text = marked(current.answer)
        if not task.calls.left:
            self.is_short, self.reason = True, "the budget is used up"
            return False
        if len(text) > ANSWER_MAX_CHARS:
            self.reason = f"an answer of more than {ANSWER_MAX_CHARS:,} characters cannot be corrected"
            return False
        prompt = _prompt(task, missing, text)
        outcome = yield from self._ask(prompt, number)
        if outcome.error:
            self.trouble = outcome.error
            self.reason = "the language model failed"
            return False
        answer = outcome.reply.answer(
            task.writer, prompt, max_tokens=task.config.max_tokens, n_passages=len(task.passages)
        )
        is_usable = bool(answer.sentences) and not (answer.is_refusal or is_prompt(outcome.reply.raw))
        if is_usable:
            answer = replace(answer, prompts=(*current.answer.prompts[:1], prompt.version))
            self._pool[self._chosen] = yield from task.versions.scoring(answer, f"insertion {number}")
        else:
            self.reason = "the model gave no corrected answer"
        yield self._inserted(number, missing, answer, is_usable=is_usable)
        yield from task.versions.offer(self._current)
        return is_usable

    def _ask(self, prompt: Prompt, number: int) -> Stream[GenerationEvent, None, CallResult]:
        config = self._task.config
        seed = None if config.seed is None else config.seed + config.candidates + number - 1
        for event in self._task.calls.run([Call(prompt, seed=seed)], f"Inserting obligations, round {number}"):
            if isinstance(event, CallResult):
                return event
            yield event
        msg = "one call brings one outcome"
        raise AssertionError(msg)

    def _inserted(
        self, number: int, missing: Sequence[ObligationScore], answer: Answer, *, is_usable: bool
    ) -> ObligationsInserted:
        after, now = self._current.evaluation.obligations, self._current
        note = "" if answer.finish_reason == "stop" and is_usable else answer.note
        return ObligationsInserted(
            round=number,
            obligations=tuple(
                MissingObligation(
                    score.obligation.text,
                    score.obligation.passage_index,
                    before=score.best,
                    after=after[score.index].best,
                    covered=after[score.index].covered,
                )
                for score in missing
            ),
            text=now.answer.text,
            repass=now.evaluation.repass,
            note=note if is_usable else f"The answer stays as it was. {note}".strip(),
        )


def _prompt(task: WritingTask, missing: Sequence[ObligationScore], answer: str) -> Prompt:
    """The missing obligations, each under its own passage and number, and the answer to correct."""
    by_passage: dict[int, list[str]] = {}
    for score in missing:
        by_passage.setdefault(score.obligation.passage_index, []).append(score.obligation.text)
    numbered = [
        (index + 1, replace(task.passages[index], text="\n".join(texts))) for index, texts in sorted(by_passage.items())
    ]
    return build_numbered_prompt(task.question, numbered, task.insert_prompt, answer)


def _removed(score: SentenceScore) -> RemovedSentence:
    premise = score.contradiction_premise
    return RemovedSentence(
        score.sentence.text,
        score.contradiction,
        premise.text if premise else "",
        premise.passage_index if premise else None,
    )
