"""An answer by a language model in one call, streamed as it is written: from passages, or from obligations."""

from __future__ import annotations

from collections.abc import Generator as Stream
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from ragqa.generation.answers import nothing_kept
from ragqa.generation.llm.calls import LONGEST_TOKEN, ModelGenerator, in_thread
from ragqa.generation.llm.reply import Reply
from ragqa.generation.prompts import build_prompt, load_prompt, obligations_only
from ragqa.plugins.protocols import Verifier
from ragqa.settings.config import GenerationConfig
from ragqa.types import Answer, Passage, Question
from ragqa.types.events.generation import Token, Working

WAITING = "Waiting for the language model"  # before its first words
PAUSING = "Waiting for more words, writing the answer"


class LlmGenerator(ModelGenerator):
    """Sends the kept passages as quoted data, streams the answer and verifies its citations.

    The key is an argument and is sent only in the request's header. May be shared by threads.
    """

    name = "LLM"
    prompt_name = "answer"

    def __init__(self, config: GenerationConfig, api_key: str | None = None, prompts: Path | None = None) -> None:
        """A generator for this model; sends no request yet. Raises ConfigError as `ChatClient` and `load_prompt` do.

        ``prompts`` is a folder whose files replace ours.
        """
        self._prompt = load_prompt(self.prompt_name, prompts)
        super().__init__(config, api_key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, server={self.client.server.name!r})"

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[Token | Working, None, Answer]:
        """Yields the text as it arrives, returns the answer with the valid citations.

        The model is not called if no passage was kept. A stream that breaks after some text gives an answer with finish
        reason ``"interrupted"``. One that breaks before any text raises RateLimitedError, TimedOutError, RefusedError
        or, for any other reason, GenerationError.
        """
        if not passages:
            return nothing_kept(self.name, self.model)
        prompt = build_prompt(question, self._context(passages), self._prompt)
        reply = Reply(LONGEST_TOKEN * self.config.max_tokens)
        write = partial(self.client.write, prompt.messages, reply, seed=self.config.seed)
        silence = WAITING
        with closing(in_thread(write, reply.stopped)) as pieces:
            for text in pieces:
                yield Token(text) if text else Working(reply.progress or silence)
                silence = PAUSING if text else silence
        return reply.answer(self, prompt, max_tokens=self.config.max_tokens)

    def _context(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        """The passages as they are sent."""
        return passages


class ObligationsGenerator(LlmGenerator):
    """Sends only the obligations found in the passages, with a prompt made for them (AUEB 4.2, table 4).

    A passage without obligations is sent as it is.
    """

    name = "LLM, from the obligations only"
    prompt_name = "obligations"

    def __init__(
        self, config: GenerationConfig, verifier: Verifier, api_key: str | None = None, prompts: Path | None = None
    ) -> None:
        """As `LlmGenerator`; ``verifier`` finds the obligations, and `stream` raises its ScoringError."""
        super().__init__(config, api_key, prompts)
        self._verifier = verifier

    def _context(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        return obligations_only(passages, self._verifier.obligations(passages))
