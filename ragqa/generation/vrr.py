"""VRR, verify and refine with RePASs (AUEB 4.5): the best of several candidates, corrected round by round."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ragqa.errors import GenerationError, ScoringError
from ragqa.generation.answers import budget_note, empty_answer, failure_note, nothing_kept
from ragqa.generation.llm.calls import Call, CallResult, Calls, ModelGenerator, tokens_in
from ragqa.generation.prompts import Prompt, build_prompt, load_prompt, obligations_only
from ragqa.generation.refinement import Refinement, Version, Versions, WritingTask
from ragqa.plugins.protocols import Verifier
from ragqa.settings.config import GenerationConfig
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.generation import CallsPlanned, CandidateScored, CandidateWritten, GenerationEvent, Working


class VrrGenerator(ModelGenerator):
    """Writes candidates over the obligations, scores them, and refines the best. May be shared by threads."""

    name = "VRR, verified and refined with RePASs"

    def __init__(
        self, config: GenerationConfig, verifier: Verifier, api_key: str | None = None, prompts: Path | None = None
    ) -> None:
        """Sends no request yet. Raises ConfigError as `ChatClient` and `load_prompt` do."""
        self._verifier = verifier
        self._prompt = load_prompt("obligations", prompts)
        self._insert_prompt = load_prompt("insert", prompts)
        super().__init__(config, api_key)

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[GenerationEvent, None, Answer]:
        """Yields every candidate and its score, every step of every round, and the best version whenever it changes.

        Returns the best version seen. If the budget is used up, a call fails or the scores cannot be computed, that is
        the best version until then, and the note says so. If most candidates are refusals, the answer is a refusal.

        Raises GenerationError if no candidate could be written, ScoringError if obligations cannot be found.
        """
        if not passages:
            return nothing_kept(self.name, self.model)
        yield Working("Looking for obligations in the passages")
        obligations = self._verifier.obligations(passages)
        prompt = build_prompt(question, obligations_only(passages, obligations), self._prompt)
        yield self._plan(prompt, sum(len(found) for found in obligations))
        calls = Calls(self.client, self.config)
        versions = Versions(self._verifier, passages, calls)
        task = WritingTask(question, passages, self.config, self._verifier, calls, versions, self, self._insert_prompt)
        verification = _Verification(task, prompt)
        refinement: Refinement | None = None
        trouble: GenerationError | ScoringError | None = None
        try:
            yield from verification.events()
            trouble = verification.trouble
            if verification.candidates and not (trouble or verification.is_refused) and self.config.rounds:
                refinement = Refinement(task, verification.candidates, verification.chosen)
                yield from refinement.events()
                trouble = refinement.trouble
        except ScoringError as error:
            trouble = error
        return self._finished(verification, refinement, task, trouble)

    def _plan(self, prompt: Prompt, n_obligations: int) -> CallsPlanned:
        config = self.config
        candidates = min(config.candidates, config.max_calls)
        rounds = min(config.rounds, config.max_calls - candidates)
        asked = tokens_in(prompt.n_chars)  # a correction also carries the missing obligations and the answer
        return CallsPlanned(
            fewest=candidates,
            most=candidates + rounds,
            prompt_tokens=candidates * asked + rounds * (asked + config.max_tokens),
            completion_tokens=(candidates + rounds) * config.max_tokens,
            budget=config.max_calls,
            n_obligations=n_obligations,
        )

    def _finished(
        self,
        verification: _Verification,
        refinement: Refinement | None,
        task: WritingTask,
        trouble: GenerationError | ScoringError | None,
    ) -> Answer:
        best, calls = task.versions.best, task.calls
        if verification.is_refused:
            answer = verification.refusals[0]
            n, total = len(verification.refusals), verification.n_texts
            return replace(answer, usage=calls.usage, note=f"{n} of {total} candidates say so. {answer.note}")
        if best is None:
            if verification.texts:  # written, but not scored
                answer = verification.texts[0]
            elif trouble:
                raise trouble
            else:
                words = "The model wrote no candidate. Ask again or choose another model."
                answer = empty_answer(self.name, self.model, words)
            ending = failure_note(trouble) if trouble else answer.note
            return replace(answer, usage=calls.usage, note=ending)
        is_short = verification.is_short or bool(refinement and refinement.is_short)
        notes = [_summary(verification, refinement, best, calls)]
        reason = best.answer.finish_reason
        if trouble:
            reason = "interrupted"
            notes.append(failure_note(trouble))
        elif is_short:
            reason = "budget"
            notes.append(budget_note(self.config.max_calls))
        notes.append(best.answer.note)
        return replace(best.answer, usage=calls.usage, finish_reason=reason, note=" ".join(filter(None, notes)))


class _Verification:
    """VRR's first half (AUEB 4.5.1): the candidates and their scores."""

    def __init__(self, task: WritingTask, prompt: Prompt) -> None:
        self.candidates: dict[int, Version] = {}  # by number, scored
        self.texts: list[Answer] = []  # everything written that is no refusal
        self.refusals: list[Answer] = []
        self.trouble: GenerationError | None = None
        self.is_short = task.config.candidates > task.config.max_calls
        self._task = task
        self._prompt = prompt

    @property
    def n_texts(self) -> int:
        return len(self.texts) + len(self.refusals)

    @property
    def is_refused(self) -> bool:
        """Whether most candidates say that the passages do not answer the question."""
        return 2 * len(self.refusals) > self.n_texts

    @property
    def chosen(self) -> int:
        """The number of the best candidate; at a tie the lowest number, whatever order they arrived in."""
        return max(self.candidates, key=lambda number: (self.candidates[number].composite, -number))

    def events(self) -> Iterator[GenerationEvent]:
        """Each candidate as it arrives, scored at once unless it is a refusal. Raises ScoringError."""
        config = self._task.config
        calls = [
            Call(self._prompt, config.candidate_temperature, None if config.seed is None else config.seed + n)
            for n in range(config.candidates)
        ]
        for event in self._task.calls.run(calls, f"Writing {min(len(calls), config.max_calls)} candidates"):
            if isinstance(event, Working):
                yield event
            elif event.error:
                self.trouble = event.error
                yield CandidateWritten(event.index + 1, "", "failed", str(event.error))
            else:
                yield from self._candidate(event)

    def _candidate(self, outcome: CallResult) -> Iterator[GenerationEvent]:
        task, number = self._task, outcome.index + 1
        answer = outcome.reply.answer(task.writer, self._prompt, max_tokens=task.config.max_tokens)
        yield CandidateWritten(number, answer.text, answer.finish_reason, answer.note, answer.is_refusal)
        if not answer.sentences:
            return
        if answer.is_refusal:
            self.refusals.append(answer)
            return
        self.texts.append(answer)
        version = yield from task.versions.scoring(answer, f"candidate {number}")
        self.candidates[number] = version
        yield CandidateScored(number, version.evaluation.repass)
        yield from task.versions.offer(version)


def _summary(verification: _Verification, refinement: Refinement | None, best: Version, calls: Calls) -> str:
    """One sentence on the work done."""
    n = len(verification.candidates)
    words = f"Best of {n} candidate{'s' if n > 1 else ''}"
    if refinement and refinement.rounds:
        words += f", then {refinement.rounds} round{'s' if refinement.rounds > 1 else ''} ({refinement.reason})"
    return f"{words}; this is {best.step}, after {calls.made} calls."
