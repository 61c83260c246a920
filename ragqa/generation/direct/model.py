"""A language model's answer, from the passages that `DirectGenerator` would quote from; or a refusal without asking it.

What the filter dropped although it answers is sent too. Where the model finds no answer and the sentences found are
near enough, those are quoted instead, and the note says so.
"""

from __future__ import annotations

from collections.abc import Generator as Stream
from dataclasses import replace
from pathlib import Path
from typing import Final

from ragqa.config import FilteringConfig, GenerationConfig
from ragqa.events.generation import GenerationEvent, Token
from ragqa.events.pipeline import Selected
from ragqa.generation.direct.generator import DirectGenerator
from ragqa.generation.llm import LlmGenerator
from ragqa.protocols import Encoder, Search
from ragqa.types import Answer, Question, Ranking, Selection

QUOTED_INSTEAD: Final = (
    "The language model found no answer in the passages; what is quoted are the sentences nearest to the question."
)


class DirectLlmGenerator(LlmGenerator):
    """Asks the model only what the passages seem to answer. May be shared by threads."""

    def __init__(
        self,
        config: GenerationConfig,
        encoder: Encoder,
        filtering: FilteringConfig,
        api_key: str | None = None,
        prompts: Path | None = None,
    ) -> None:
        """As `LlmGenerator`; ``encoder`` and ``filtering`` are those of the pipeline."""
        super().__init__(config, api_key, prompts)
        self._direct = DirectGenerator(encoder, config, filtering)

    def stream_searching(
        self, question: Question, ranking: Ranking, search: Search
    ) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
        """Yields what is selected and the text as it arrives; returns the answer and what its citations count.

        A question that the passages do not seem to answer is refused as `DirectGenerator` refuses it, and the model is
        not asked, unless ``quote_anyway``. Raises as `LlmGenerator.stream`.
        """
        drafted = self._direct.stream_searching(question, ranking, search)
        draft, selection = yield from _without_words(drafted)
        if draft.is_refusal or not selection.passages:
            yield Token(draft.text)
            return draft, selection
        answer = yield from self.stream(question, selection.passages)
        if answer.is_refusal and draft.sentences:
            answer = replace(answer, text=draft.text, sentences=draft.sentences, note=QUOTED_INSTEAD, is_refusal=False)
        return answer, selection


def _without_words(
    stream: Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]],
) -> Stream[GenerationEvent | Selected, None, tuple[Answer, Selection]]:
    """The stream but for its words, which the model's take the place of."""
    while True:
        try:
            event = next(stream)
        except StopIteration as stop:
            found: tuple[Answer, Selection] = stop.value
            return found
        if not isinstance(event, Token):
            yield event
