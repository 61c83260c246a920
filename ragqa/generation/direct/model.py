"""A language model's answer from the passages that `DirectGenerator` would quote; or a refusal without calling it.

Passages that the filter dropped although they answer are sent too. The sentences that answer are quoted after the
model's answer if it does not state them itself. If the model finds no answer, they are quoted in its place, and the
note says so.
"""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ragqa.english.reading import read
from ragqa.english.words import ENGLISH, language_of
from ragqa.generation.direct.generator import DirectGenerator
from ragqa.generation.llm.generator import LlmGenerator
from ragqa.plugins.protocols import Encoder, NamesOf, Search, Selector
from ragqa.settings.config import FilteringConfig, GenerationConfig
from ragqa.types import Answer, AnswerSentence, Question, Ranking, Selection
from ragqa.types.events.generation import GenerationEvent, Token
from ragqa.types.events.pipeline import Selected

QUOTED_INSTEAD: Final = (
    "The language model found no answer in the passages; the sentences nearest to the question are quoted instead."
)
QUOTED_AFTER: Final = "The text after the language model's words is quoted from the passages, as it seems to answer."
TOLD: Final = 0.6  # share of a quotation's words from which an answer states it already


class DirectLlmGenerator(LlmGenerator):
    """Calls the model only if the passages seem to answer the question. May be shared by threads."""

    def __init__(
        self,
        config: GenerationConfig,
        encoder: Encoder,
        filtering: FilteringConfig,
        api_key: str | None = None,
        prompts: Path | None = None,
        selector: Selector | None = None,
        names_of: NamesOf = lambda _: {},
    ) -> None:
        """As `LlmGenerator`; ``encoder``, ``filtering``, ``selector`` and ``names_of`` are those of the pipeline."""
        super().__init__(config, api_key, prompts)
        self._direct = DirectGenerator(encoder, config, filtering, selector, names_of)

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Yields the selection and the text as it arrives; returns the answer and the selection it cites.

        A question in English that the passages do not seem to answer is refused as by `DirectGenerator`, without a call
        of the model, unless ``quote_anyway`` is set. Raises as `LlmGenerator.stream`.
        """
        del search
        draft = yield from self._direct.draft(question, ranking)
        drafted, selection = draft.answer, draft.selection
        if not selection.passages or (drafted.is_refusal and language_of(question.text) == ENGLISH):
            yield from map(Token, draft.pieces)
            return drafted, selection
        answer = yield from self.stream(question, selection.passages)
        if answer.is_refusal and drafted.sentences:
            text, quotes = drafted.text, drafted.sentences
            answer = replace(answer, text=text, sentences=quotes, note=QUOTED_INSTEAD, is_refusal=False)
        elif answer.finish_reason == "stop":
            answer = _with_evidence(answer, drafted.sentences[: draft.n_leads])
        return answer, selection


def _with_evidence(answer: Answer, quotes: Sequence[AnswerSentence]) -> Answer:
    """The answer, followed by each quotation that it does not state itself."""
    text, sentences = answer.text, list(answer.sentences)
    told = read(text).stems
    for quote in quotes:
        stems = read(quote.text).content
        if len(stems & told) < TOLD * len(stems):
            start = len(text) + 1
            text = f"{text} {quote.text}"
            sentences.append(replace(quote, start=start, end=len(text)))
    if text == answer.text:
        return answer
    note = f"{answer.note} {QUOTED_AFTER}".strip()
    return replace(answer, text=text, sentences=tuple(sentences), note=note)
