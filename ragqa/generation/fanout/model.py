"""The fan-out with a language model: it plans, answers each sub-question from its evidence, and combines."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Generator as Stream
from dataclasses import dataclass, replace
from pathlib import Path

from ragqa.errors import GenerationError
from ragqa.generation.answers import budget_note, failure_note, marked, nothing_kept, unfinished
from ragqa.generation.fanout.generator import searched_by_rules
from ragqa.generation.fanout.merging import Node, RankedSubQuestion, Tree, answered
from ragqa.generation.fanout.names import names_in
from ragqa.generation.fanout.searching import best_of
from ragqa.generation.llm.calls import Call, CallResult, Calls, ModelGenerator, tokens_in
from ragqa.generation.llm.reply import Reply
from ragqa.generation.prompts import ANSWER_MAX_CHARS, Prompt, build_numbered_prompt, build_prompt, load_prompt
from ragqa.infra.cleaning import without_controls, without_invisible
from ragqa.plugins.protocols import Search
from ragqa.settings.config import FilteringConfig, GenerationConfig
from ragqa.types import Answer, Passage, PromptVersion, Question, Ranking, Selection, SubQuestion
from ragqa.types.events.generation import BestSoFar, CallsPlanned, GenerationEvent, SubQuestionsAsked, Working
from ragqa.types.events.pipeline import Selected

MAX_CHARS = 300  # of a sub-question; a longer text is no question
KEYS = ("sub_questions", "subquestions", "questions")

_OBJECT = re.compile(r"\{[^{}]*\}", re.DOTALL)


def sub_questions_in(reply: str, known: Collection[str] = (), most: int = 30) -> tuple[str, ...] | None:
    """The sub-questions in the last JSON object, or bare list, of the reply; None if there is neither.

    An empty tuple means that the model found none. Only strings count. Each is on one line, without control characters,
    once, and not among ``known`` (compared by `normal`); at most ``most`` are returned.
    """
    found = next((value for _, value in reversed(list(_plans(reply)))), None)
    if found is None:
        return None
    kept: dict[str, str] = {}
    for item in found:
        text = " ".join(without_invisible(without_controls(item)).split()) if isinstance(item, str) else ""
        key = normal(text)
        if key and len(text) <= MAX_CHARS and key not in known:
            kept.setdefault(key, text)
    return tuple(kept.values())[:most]


def without_plan(reply: str) -> str:
    """The reply without the JSON objects that hold sub-questions, and without an empty code fence around one."""
    for piece, _ in _plans(reply):
        reply = reply.replace(piece, "")
    return re.sub(r"```(?:json)?\s*```", "", reply).strip()


def normal(text: str) -> str:
    """The key by which questions are the same: their words in lower case."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def _plans(reply: str) -> Iterator[tuple[str, list[object]]]:
    """Each part of the reply that is a plan, with its list, in order."""
    whole = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if whole.startswith("["):
        value = _parsed(whole)
        if isinstance(value, list):
            yield whole, value
            return
    for match in _OBJECT.finditer(reply):
        value = _parsed(match[0])
        if isinstance(value, dict):
            listed = next((value[key] for key in KEYS if key in value), None)
            if isinstance(listed, list):
                yield match[0], listed


def _parsed(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


PLAN_AND_COMBINE = 2  # calls in addition to those for sub-questions
BAD_PLAN = "The model's plan could not be read, so the question was taken apart by rules."
NO_BUDGET_TO_PLAN = "The budget leaves no call for a plan, so the question was taken apart by rules."
NOTHING_TO_TAKE_APART = "The model found nothing to take apart in this question: it is answered as a whole."


class FanOutLlmGenerator(ModelGenerator):
    """Plans, searches, answers and combines. May be shared by threads."""

    name = "fan-out, LLM"

    def __init__(
        self,
        config: GenerationConfig,
        filtering: FilteringConfig,
        api_key: str | None = None,
        prompts: Path | None = None,
    ) -> None:
        """Sends no request yet. Raises ConfigError as `ChatClient` and `load_prompt` do."""
        self.filtering = filtering
        self.plan_prompt = load_prompt("plan", prompts)
        self.answer_prompt = load_prompt("sub_answer", prompts)
        self.combine_prompt = load_prompt("combine", prompts)
        super().__init__(config, api_key)

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Yields the plan, each sub-question's evidence and answer, the joined answers so far, then the final answer.

        At most ``max_sub_questions`` are answered, including those that other answers raise. At most ``max_calls``
        calls are made: the plan, an answer to each sub-question, and the combination. If the plan cannot be read, rules
        make one. If a call fails or the combination is empty, the joined answers are the answer, and the note says so.
        No call is made if no passage was kept.

        Raises GenerationError if no call returned an answer.
        """
        work = _FanOutState(self, question, ranking, search)
        if not work.tree.own_evidence:
            selection = work.tree.selection
            yield Selected(selection)
            return nothing_kept(self.name, self.model), selection
        yield work.planned()
        yield from work.plan()
        yield from work.answer_all()
        selection = work.tree.selection
        yield Selected(selection)
        return (yield from work.combine(selection)), selection


@dataclass(frozen=True, slots=True)
class _AnswerCall:
    """A call for a sub-question's answer."""

    node: Node
    prompt: Prompt


class _FanOutState:
    """The state of one question."""

    def __init__(self, generator: FanOutLlmGenerator, question: Question, ranking: Ranking, search: Search) -> None:
        self.tree = Tree(ranking, generator.filtering)
        self._generator, self._question, self._search = generator, question, search
        self._config = generator.config
        self._calls = Calls(generator.client, generator.config)
        self._known = {normal(question.text)}
        self._prompts: list[PromptVersion] = []
        self._trouble: GenerationError | None = None

    @property
    def _most(self) -> int:
        """The number of sub-questions that settings and budget allow; each takes a call, as do plan and combination."""
        return max(0, min(self._config.max_sub_questions, self._config.max_calls - self._n_others))

    @property
    def _n_others(self) -> int:
        return PLAN_AND_COMBINE if self._config.max_calls > PLAN_AND_COMBINE else 1

    def planned(self) -> CallsPlanned:
        evidence = self.tree.own_evidence
        one = tokens_in(build_prompt(self._question, evidence, self._generator.answer_prompt).n_chars)
        combined = tokens_in(build_prompt(self._question, evidence, self._generator.combine_prompt).n_chars)
        most = self._n_others + self._most
        return CallsPlanned(
            fewest=self._n_others,
            most=most,
            prompt_tokens=one * self._most + (combined + one * self._most) + one * (self._n_others - 1),
            completion_tokens=most * self._config.max_tokens,
            budget=self._config.max_calls,
            n_obligations=0,
            n_sub_questions=self._most,
        )

    def plan(self) -> Iterator[GenerationEvent]:
        """Builds the tree's first level by the model's plan if it can be read, else by rules.

        Raises GenerationError.
        """
        if self._n_others < PLAN_AND_COMBINE:
            yield from searched_by_rules(self._question, self.tree, self._search, self._most, NO_BUDGET_TO_PLAN)
            return
        prompt = build_numbered_prompt(self._question, (), self._generator.plan_prompt)
        self._prompts.append(prompt.version)
        texts: tuple[str, ...] | None = None
        for event in self._calls.run([Call(prompt, seed=self._config.seed)], "Planning the sub-questions"):
            if isinstance(event, Working):
                yield event
            elif event.error:
                raise event.error
            else:
                texts = sub_questions_in(event.reply.raw, self._known)
        if texts is None:
            yield from searched_by_rules(self._question, self.tree, self._search, self._most, BAD_PLAN)
        else:
            self.tree.left_out += max(0, len(texts) - self._most)
            note = "" if texts else NOTHING_TO_TAKE_APART
            yield from self._searched(texts[: self._most], 0, "part of the model's plan", note)

    def _searched(self, texts: Sequence[str], parent: int, reason: str, note: str = "") -> Iterator[GenerationEvent]:
        """Adds these sub-questions and searches for the evidence of each."""
        first = len(self.tree.nodes) + 1
        asked = [SubQuestion(n, text, parent, reason, _name(text)) for n, text in enumerate(texts, start=first)]
        self._known |= {normal(text) for text in texts}
        yield SubQuestionsAsked(tuple(asked), "model", note)
        for question in asked:
            yield Working(f"Searching: {question.text}", self._calls.made)
            yield self.tree.add(RankedSubQuestion(question, best_of(self._search(question.text))))[1]

    def answer_all(self) -> Iterator[GenerationEvent]:
        """Requests the answer to every sub-question, then to those that the answers raise."""
        level = list(self.tree.nodes)
        for depth in range(1, self._config.depth + 1):
            asked = [self._asked(node) for node in level if node.evidence]
            calls = [Call(one.prompt, seed=self._config.seed) for one in asked]
            further: list[tuple[int, str]] = []
            for event in self._calls.run(calls, f"Answering {len(calls)} sub-questions"):
                if isinstance(event, Working):
                    yield event
                elif event.error:
                    self._trouble = event.error
                else:
                    yield from self._answered(asked[event.index], event)
                    number = asked[event.index].node.number
                    wanted = sub_questions_in(event.reply.raw, self._known) or ()
                    further += [(number, text) for text in wanted]
            if self._trouble or not further or depth == self._config.depth:
                return
            level = yield from self._deeper(sorted(further, key=lambda pair: pair[0]))

    def _deeper(self, further: Sequence[tuple[int, str]]) -> Stream[GenerationEvent, None, list[Node]]:
        """Adds the sub-questions that the answers raise, within the limit; returns their nodes."""
        before = len(self.tree.nodes)
        room = self._most - before
        distinct = {normal(text): (number, text) for number, text in reversed(further)}
        kept = sorted(distinct.values(), key=further.index)[:room]
        self.tree.left_out += len(distinct) - len(kept)
        for parent in dict.fromkeys(number for number, _ in kept):
            texts = [text for number, text in kept if number == parent]
            yield from self._searched(texts, parent, f"asked by the answer to sub-question {parent}")
        return self.tree.nodes[before:]

    def _asked(self, node: Node) -> _AnswerCall:
        return _AnswerCall(
            node, build_prompt(Question(node.found.question.text), node.evidence, self._generator.answer_prompt)
        )

    def _answered(self, asked: _AnswerCall, outcome: CallResult) -> Iterator[GenerationEvent]:
        reply = _restated(outcome.reply)
        answer = reply.answer(self._generator, asked.prompt, max_tokens=self._config.max_tokens)
        asked.node.answer = answer
        if asked.prompt.version not in self._prompts:
            self._prompts.append(asked.prompt.version)
        yield answered(asked.node.number, answer, asked.node.evidence)
        if answer.sentences and not answer.is_refusal:
            selection = self.tree.selection
            step = f"the answer to sub-question {asked.node.number}"
            yield BestSoFar(unfinished(self._joined(selection), step), step, selection=selection)

    def _joined(self, selection: Selection) -> Answer:
        empty = Answer("", (), self._generator.name, self._generator.model, usage=self._calls.usage)
        return replace(self.tree.joined(empty, selection), prompts=tuple(self._prompts))

    def combine(self, selection: Selection) -> Stream[GenerationEvent, None, Answer]:
        """The combined answer, streamed; the joined answers after an error. Raises the error if there are none."""
        joined = self._joined(selection)
        if self._trouble:
            return self._left_with(joined, self._trouble)
        prompt = self._combination(selection)
        outcome = yield from self._calls.stream(Call(prompt, seed=self._config.seed), "Combining the answers")
        answer = outcome.reply.answer(self._generator, prompt, max_tokens=self._config.max_tokens)
        is_broken = bool(outcome.error or outcome.reply.broke)
        if joined.sentences and (is_broken or not answer.sentences):
            return self._left_with(joined, outcome.error, answer.note)
        if outcome.error:
            raise outcome.error
        answer = replace(answer, usage=self._calls.usage, prompts=(*self._prompts, prompt.version))
        summary = f"{len(self.tree.nodes)} sub-questions, {self._calls.made} calls."
        summary += self.tree.left_out_words(self._most)
        if self.tree.left_out and self._most < self._config.max_sub_questions:
            note = f"{summary} {budget_note(self._config.max_calls)} {answer.note}"
            return replace(answer, finish_reason="budget", note=note.strip())
        return replace(answer, note=f"{summary} {answer.note}".strip())

    def _combination(self, selection: Selection) -> Prompt:
        """The question, every selected passage, and the draft: each sub-question with its answer."""
        number_of = {passage.passage_id: number for number, passage in enumerate(selection.passages, start=1)}
        lines = []
        for number, answer, evidence in self.tree.answers():
            question = next(node.found.question.text for node in self.tree.nodes if node.number == number)
            own = _renumbered(answer, evidence, number_of)
            lines.append(f"{question}\n{marked(own) or 'No answer.'}")
        draft = "\n\n".join(lines)[:ANSWER_MAX_CHARS]
        numbered = list(enumerate(selection.passages, start=1))
        return build_numbered_prompt(self._question, numbered, self._generator.combine_prompt, draft)

    def _left_with(self, joined: Answer, error: GenerationError | None, note: str = "") -> Answer:
        if not joined.sentences:
            if error:
                raise error
            return replace(joined, finish_reason="empty", note=note)
        words = failure_note(error) if error else f"The answers could not be combined and stand as they are. {note}"
        return replace(joined, finish_reason="interrupted", note=words.strip())


def _restated(reply: Reply) -> Reply:
    """The reply without the sub-questions that it raises."""
    text = without_plan(reply.raw)
    if text == reply.raw.strip():
        return reply
    bare = Reply()
    bare.restore(reply.to_json() | {"raw": text})
    bare.broke = reply.broke
    return bare


def _renumbered(answer: Answer, evidence: Sequence[Passage], number_of: dict[str, int]) -> Answer:
    """The answer with citations that number the selected passages."""
    sentences = tuple(
        replace(sentence, citations=tuple(number_of[evidence[n - 1].passage_id] for n in sentence.citations))
        for sentence in answer.sentences
    )
    return replace(answer, sentences=sentences)


def _name(text: str) -> str:
    """The name that a sub-question is about, if it contains exactly one."""
    names = {span.text for span in names_in(text)}
    return names.pop() if len(names) == 1 else ""
