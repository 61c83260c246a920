"""LOC (AUEB 4.4): one answer per obligation, tried again until it covers the obligation; the answers are joined."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragqa.errors import GenerationError, ScoringError
from ragqa.generation.answers import (
    budget_note,
    composed,
    empty_answer,
    failure_note,
    marked,
    nothing_kept,
    separator_after,
    unfinished,
)
from ragqa.generation.llm.calls import Call, CallResult, Calls, ModelGenerator, tokens_in
from ragqa.generation.llm.cleanup import without_echoes
from ragqa.generation.llm.reply import REFUSAL_NOTE
from ragqa.generation.prompts import NO_TEXT, Prompt, PromptItem, build_numbered_prompt, items_of, load_prompt
from ragqa.plugins.protocols import Verifier
from ragqa.settings.config import GenerationConfig
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.generation import BestSoFar, CallsPlanned, GenerationEvent, ObligationAnswered, Working
from ragqa.types.scores import Coverage


class LocGenerator(ModelGenerator):
    """Answers from one obligation at a time. May be shared by threads."""

    name = "LOC, one answer per obligation"

    def __init__(
        self, config: GenerationConfig, verifier: Verifier, api_key: str | None = None, prompts: Path | None = None
    ) -> None:
        """Sends no request yet. Raises ConfigError as `ChatClient` and `load_prompt` do."""
        self.verifier = verifier
        self.prompt = load_prompt("one_obligation", prompts)
        super().__init__(config, api_key)

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[GenerationEvent, None, Answer]:
        """Yields each answer to an obligation as it is judged, and the joined answer so far.

        The model answers every obligation once, then the uncovered ones again, in order, at most ``tries`` times in
        all. So an early end skips no obligation in favour of another's third try. A passage without obligations is
        answered once, as a whole. Of several tries the one that covers the obligation counts, else the one nearest to
        covering it.

        Raises GenerationError if no call returned an answer, ScoringError if obligations cannot be found.
        """
        if not passages:
            return nothing_kept(self.name, self.model)
        yield Working("Looking for obligations in the passages")
        items = items_of(passages, self.verifier.obligations(passages))
        if not items:
            return empty_answer(self.name, self.model, NO_TEXT)
        work = _Work(self, items, [self._asked(question, passages, item) for item in items])
        yield work.plan()
        yield from work.events()
        return work.finished()

    def _asked(self, question: Question, passages: Sequence[Passage], item: PromptItem) -> Prompt:
        passage = replace(passages[item.passage_index], text=item.text)
        return build_numbered_prompt(question, [(item.passage_index + 1, passage)], self.prompt)


@dataclass(frozen=True, slots=True)
class _Draft:
    """The best answer to one item so far. ``coverage`` is None if the item is not an obligation."""

    answer: Answer
    coverage: Coverage | None

    @property
    def is_done(self) -> bool:
        return self.coverage is None or self.coverage.covered

    @property
    def worth(self) -> tuple[bool, bool, float]:
        """The sort key of tries, the best highest; a refusal is worth less than any answer."""
        return (not self.answer.is_refusal, self.is_done, self.coverage.best if self.coverage else 0.0)


class _Work:
    """The state of one question."""

    def __init__(self, generator: LocGenerator, items: Sequence[PromptItem], prompts: Sequence[Prompt]) -> None:
        self._generator, self._items, self._prompts = generator, items, prompts
        self._config = generator.config
        self._calls = Calls(generator.client, generator.config)
        self._drafts: dict[int, _Draft] = {}
        self._attempts = [0] * len(items)
        self._trouble: GenerationError | ScoringError | None = None

    def plan(self) -> CallsPlanned:
        n_obligations, budget = sum(item.is_obligation for item in self._items), self._config.max_calls
        tries = [self._config.tries if item.is_obligation else 1 for item in self._items]
        prompt_tokens = sum(n * tokens_in(prompt.n_chars) for n, prompt in zip(tries, self._prompts, strict=True))
        most = min(sum(tries), budget)
        return CallsPlanned(
            fewest=min(len(self._items), budget),
            most=most,
            prompt_tokens=prompt_tokens * most // sum(tries),
            completion_tokens=most * self._config.max_tokens,
            budget=budget,
            n_obligations=n_obligations,
        )

    def events(self) -> Iterator[GenerationEvent]:
        """Asks, judges and asks again; ends early if the budget is used up or something fails."""
        for attempt in range(1, self._config.tries + 1):
            asked = self._open(attempt)
            if not asked or not self._calls.left:
                return
            phase = f"Try {attempt}: {len(asked)} of {len(self._items)} obligations"
            for event in self._calls.run([self._call(index, attempt) for index in asked], phase):
                if isinstance(event, Working):
                    yield event
                elif event.error:
                    self._trouble = event.error
                else:
                    yield from self._judged(asked[event.index], attempt, event)
                    if isinstance(self._trouble, ScoringError):
                        return
            if self._trouble:
                return

    def _open(self, attempt: int) -> list[int]:
        """The items to ask in this attempt: all, then those that are obligations and not covered yet."""
        return [
            index
            for index, item in enumerate(self._items)
            if attempt == 1 or (item.is_obligation and not (index in self._drafts and self._drafts[index].is_done))
        ]

    def _call(self, index: int, attempt: int) -> Call:
        """The first try as configured; later ones at the candidates' temperature, so that they do not repeat it."""
        seed = None if self._config.seed is None else self._config.seed + attempt - 1
        return Call(self._prompts[index], None if attempt == 1 else self._config.candidate_temperature, seed)

    def _judged(self, index: int, attempt: int, outcome: CallResult) -> Iterator[GenerationEvent]:
        item, prompt = self._items[index], self._prompts[index]
        self._attempts[index] = attempt
        answer = outcome.reply.answer(self._generator, prompt, max_tokens=self._config.max_tokens)
        cited = tuple(replace(sentence, citations=(item.passage_index + 1,)) for sentence in answer.sentences)
        answer = replace(answer, sentences=cited, rejected_citations=())  # the model saw only this passage
        coverage = None
        if item.is_obligation:
            try:
                coverage = self._generator.verifier.coverage(answer, item.text)
            except ScoringError as error:  # the text is worth keeping even if it cannot be judged
                self._trouble, coverage = error, Coverage(0.0, covered=False)
        draft = _Draft(answer, coverage)
        is_new = bool(answer.sentences) and (index not in self._drafts or draft.worth > self._drafts[index].worth)
        if is_new:
            self._drafts[index] = draft
        yield ObligationAnswered(
            number=index + 1,
            total=len(self._items),
            obligation=item.text,
            passage_index=item.passage_index,
            attempt=attempt,
            text=answer.text,
            best=coverage.best if coverage else None,
            covered=bool(coverage and coverage.covered),
            note="" if answer.finish_reason == "stop" and not answer.is_refusal else answer.note,
        )
        if is_new and not draft.answer.is_refusal:
            step = f"obligation {index + 1} of {len(self._items)}, try {attempt}"
            yield BestSoFar(unfinished(self._joined(), step), step)

    def _joined(self) -> Answer:
        """The drafts that are no refusals, in the order of the obligations, each sentence as judged and only once."""
        generator = self._generator
        version = self._prompts[0].version
        joined = Answer("", (), generator.name, generator.model, usage=self._calls.usage, prompts=(version,))
        parts = []
        separator = ""
        for _, draft in sorted(self._drafts.items()):
            if draft.answer.is_refusal:
                continue
            position = 0
            for sentence in draft.answer.sentences:
                between = draft.answer.text[position : sentence.start]
                parts.append((between if position else separator, sentence))
                position = sentence.end
            separator = separator_after(draft.answer.text)
        found, _ = without_echoes(composed(joined, parts), "", "")  # two obligations may get the same answer
        return replace(found, raw=marked(found))

    def finished(self) -> Answer:
        """The joined answer with its note. Raises the failure if nothing was written."""
        answer = self._joined()
        reason, note = self._ending()
        if answer.sentences:
            return replace(answer, finish_reason=reason, note=f"{self._count()}{note}")
        refusals = [draft.answer for draft in self._drafts.values()]
        if refusals:
            return replace(refusals[0], usage=self._calls.usage, finish_reason=reason, note=f"{REFUSAL_NOTE}{note}")
        if self._trouble:
            raise self._trouble
        words = "The model wrote no answer to any obligation. Ask again or choose another model."
        return replace(empty_answer(self._generator.name, self._generator.model, words), usage=self._calls.usage)

    def _ending(self) -> tuple[str, str]:
        """The finish reason, and a note if the work ended early."""
        if self._trouble:
            return "interrupted", " " + failure_note(self._trouble)
        open_ones = [index for index in self._open(2) if self._attempts[index] < self._config.tries]
        if open_ones or 0 in self._attempts:
            return "budget", " " + budget_note(self._config.max_calls)
        return "stop", ""

    def _count(self) -> str:
        obligations = [index for index, item in enumerate(self._items) if item.is_obligation]
        covered = sum(index in self._drafts and self._drafts[index].is_done for index in obligations)
        words = (
            f"{covered} of {len(obligations)} obligations are covered by their own answer, in {self._calls.made} calls."
        )
        silent = sum(
            index not in self._drafts or self._drafts[index].answer.is_refusal for index in range(len(self._items))
        )
        return words + (f" {silent} are left out: the model gave nothing for them." if silent else "")
