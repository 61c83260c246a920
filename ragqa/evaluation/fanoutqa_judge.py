"""A language model that compares an answer with the reference, as FanOutQA's GPT judge does; off without its own key.

The judge answers with a letter: A the answer says less than the reference, B more, C the same, D they disagree, E they
differ in nothing that matters, F it is no answer. B, C and E count 1, the rest 0 (Zhu et al. 2024, after OpenAI's
factuality evaluation; the wording is ours). It has a key of its own so that measuring never spends money by accident.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass

from ragqa.config import GenerationConfig
from ragqa.corpus.fanoutqa import FanOutQuestion
from ragqa.evaluation.fanoutqa_metrics import Judging, Missing
from ragqa.evaluation.fanoutqa_prompts import code_of, frame, instructions, messages_of
from ragqa.generation.client import ChatClient
from ragqa.generation.prompts import Message
from ragqa.generation.reply import Reply
from ragqa.generation.reply_cache import ReplyCache, caching_replies

JUDGE_MODEL = "gpt-4-0613"  # what the published figures were judged by, at temperature 0 with seed 31415
JUDGE_SEED = 31415
MAX_ANSWER_CHARS = 4_000  # longer answers are cut, as in the `fanoutqa` package
FULL_SCORE = frozenset("BCE")
JUDGE_MISSING = Missing(
    "judge",
    "no key for the judge is set",
    "set RAGQA_JUDGE_KEY (or FANOUTQA_OPENAI_API_KEY, which the fanoutqa package reads); RAGQA_JUDGE_MODEL and "
    "RAGQA_JUDGE_URL choose another model or server",
)


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Which model judges and where; the key goes nowhere but into the request's header."""

    key: str
    model: str = JUDGE_MODEL
    base_url: str = ""

    def __repr__(self) -> str:
        return f"JudgeSettings(model={self.model!r}, base_url={self.base_url!r})"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> JudgeSettings | None:
        """``RAGQA_JUDGE_KEY``, ``RAGQA_JUDGE_MODEL`` and ``RAGQA_JUDGE_URL``; None where there is no key.

        ``FANOUTQA_OPENAI_API_KEY`` is read where ``RAGQA_JUDGE_KEY`` is not set; ``OPENAI_API_KEY`` never is.
        """
        env = os.environ if environ is None else environ
        key = env.get("RAGQA_JUDGE_KEY") or env.get("FANOUTQA_OPENAI_API_KEY")
        if not key:
            return None
        return cls(key, env.get("RAGQA_JUDGE_MODEL") or JUDGE_MODEL, env.get("RAGQA_JUDGE_URL") or "")

    @property
    def digest(self) -> str:
        """12 digits that change with the model, the server or the prompt: what was judged otherwise is not mixed in."""
        text = "\0".join((self.model, self.base_url, instructions("fanoutqa_judge")))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class LlmJudge:
    """Asks one model per answer; GenerationError where it cannot. ``memory`` gives replies already paid for."""

    def __init__(self, settings: JudgeSettings, memory: Callable[[FanOutQuestion], ReplyCache] | None = None) -> None:
        """Asks no server yet. Raises ConfigError for a key or address that cannot work."""
        config = GenerationConfig(
            generator="llm", model=settings.model, base_url=settings.base_url, temperature=0.0, max_tokens=1024
        )
        self._client = ChatClient(config, settings.key)
        self._memory = memory
        self.name = settings.model

    def judge(self, question: FanOutQuestion, reference: str, answer: str) -> Judging:
        """What the model says of this answer, cut to 4,000 characters."""
        parts = {
            "question": question.question.text,
            "reference": reference,
            "submission": answer[:MAX_ANSWER_CHARS],
        }
        code = code_of(parts.values())
        content = "\n\n".join(frame(name, code, text) for name, text in parts.items())
        reply, messages = Reply(), messages_of("fanoutqa_judge", code, content)
        if self._memory is None:
            self._read(messages, reply)
        else:
            with caching_replies(self._memory(question)):
                self._read(messages, reply)
        return verdict_of(reply.raw)

    def _read(self, messages: list[Message], reply: Reply) -> None:
        with closing(self._client.write(messages, reply, seed=JUDGE_SEED)) as pieces:
            for _ in pieces:
                pass

    def close(self) -> None:
        """Closes the connections kept open."""
        self._client.close()


def verdict_of(reply: str) -> Judging:
    """The last character decides, as in the `fanoutqa` package; anything but a letter from A to F counts 0."""
    last = reply.strip()[-1:].upper()
    letter = last if last in set("ABCDEF") else ""
    return Judging(letter, int(letter in FULL_SCORE), reply)
