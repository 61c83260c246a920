"""FanOutQA's settings, what they share, and two of them: the question alone, and with the pages it needs.

As in the paper (Zhu et al. 2024) and its published scripts: pages given as evidence fill all of the context
but 520 tokens with fragments of 1,024 characters that BM25+ ranks for the question. Tokens are estimated here. The
third setting is `ragqa.evaluation.fanoutqa_open_book`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from ragqa.config import GenerationConfig
from ragqa.corpus.fanoutqa import FanOutQuestion
from ragqa.errors import ConfigError
from ragqa.evaluation.fanoutqa_fragments import ANSWER_RESERVE, Fragment, count_tokens, fitting, ranked
from ragqa.evaluation.fanoutqa_pages import NoPageError, PageSource
from ragqa.evaluation.fanoutqa_prompts import code_of, frame, messages_of, prompt_version
from ragqa.evaluation.fanoutqa_text import Normaliser
from ragqa.generation.client import ChatClient
from ragqa.generation.reply import Reply
from ragqa.types import Answer, Usage

MIN_CONTEXT = 2_048
MAX_ANSWER_TOKENS = 512  # as in the paper

Solved = tuple[Answer, tuple[dict[str, Any], ...]]


class Setting(StrEnum):
    """The names the leaderboard uses."""

    CLOSED_BOOK = "closed-book"
    OPEN_BOOK = "open-book"
    EVIDENCE_PROVIDED = "evidence-provided"


class Solver(Protocol):
    """One setting, ready to answer. Threads share it."""

    @property
    def setting(self) -> Setting: ...

    def solve(self, question: FanOutQuestion) -> Solved:
        """The answer and the steps that led to it. Raises GenerationError, or CorpusError where pages fail."""
        ...

    def described(self) -> dict[str, Any]:
        """What decides an answer besides model and question, for the run's stamp."""
        ...


def generation_for(config: GenerationConfig, max_tokens: int = MAX_ANSWER_TOKENS) -> GenerationConfig:
    """These settings for a language model that writes at most so many tokens."""
    return replace(config, generator="llm", max_tokens=max_tokens)


@dataclass(slots=True)
class Asking:
    """One model, asked until it answers one question; counts what all of it costs."""

    client: ChatClient
    config: GenerationConfig
    prompt: str
    usage: Usage = field(default_factory=Usage)

    def ask(self, code: str, content: str) -> tuple[str, str]:
        """The reply, and what a reader must know of how it ended. Raises GenerationError as `ChatClient.write`."""
        reply = Reply()
        messages = messages_of(self.prompt, code, content)
        with closing(self.client.write(messages, reply, seed=self.config.seed)) as pieces:
            for _ in pieces:
                pass
        self.usage = Usage(
            self.usage.prompt_tokens + reply.usage.prompt_tokens,
            self.usage.completion_tokens + reply.usage.completion_tokens,
        )
        if reply.to_json()["finish_reason"] == "length":
            return reply.raw.strip(), f"the answer stops at the limit of {self.config.max_tokens:,} tokens"
        return reply.raw.strip(), reply.broke

    def answer(self, setting: Setting, text: str, note: str) -> Answer:
        """This reply as the answer; an empty one is kept with a note, and counts 0."""
        note = note if text else " ".join(("The model wrote no answer.", note)).strip()
        return Answer(
            text=text,
            sentences=(),
            generator=f"LLM, {setting}",
            model=self.client.model,
            raw=text,
            usage=self.usage,
            note=note,
            prompts=(prompt_version(self.prompt),),
        )


@dataclass(frozen=True, slots=True)
class ClosedBook:
    """The question alone."""

    client: ChatClient
    config: GenerationConfig

    @property
    def setting(self) -> Setting:
        return Setting.CLOSED_BOOK

    def solve(self, question: FanOutQuestion) -> Solved:
        """See `Solver`."""
        asking = Asking(self.client, self.config, "fanoutqa_closed_book")
        code = code_of([question.question.text])
        text, note = asking.ask(code, frame("question", code, question.question.text))
        return asking.answer(self.setting, text, note), ()

    def described(self) -> dict[str, Any]:
        return {"prompt": prompt_version("fanoutqa_closed_book").version}


@dataclass(frozen=True, slots=True)
class EvidenceProvided:
    """The fragments of the necessary pages that fit into the context, best first for the question."""

    client: ChatClient
    config: GenerationConfig
    pages: PageSource
    normaliser: Normaliser
    context_tokens: int

    def __post_init__(self) -> None:
        check_context(self.context_tokens)

    @property
    def setting(self) -> Setting:
        return Setting.EVIDENCE_PROVIDED

    def solve(self, question: FanOutQuestion) -> Solved:
        """See `Solver`; a page that the source does not have is left out and noted as a step."""
        pages: list[tuple[str, str]] = []
        steps: list[dict[str, Any]] = []
        for evidence in question.evidence:
            try:
                pages.append((evidence.title, self.pages.page(evidence.title, evidence.revision)))
            except NoPageError as error:
                steps.append({"step": "no page", "title": evidence.title, "note": str(error)})
        fragments = ranked(pages, question.question.text, self.normaliser)
        code = code_of([question.question.text, *(fragment.text for fragment in fragments)])
        asking = Asking(self.client, self.config, "fanoutqa_evidence_provided")
        asked = frame("question", code, question.question.text)
        used = sum(count_tokens(message["content"]) for message in messages_of(asking.prompt, code, asked))
        kept = fitting(fragments, self.context_tokens - ANSWER_RESERVE, used, lambda one: framed_fragment(one, code))
        steps.append({"step": "evidence", "pages": len(pages), "fragments": len(kept), "of": len(fragments)})
        text, note = asking.ask(code, "".join(kept) + asked)
        return asking.answer(self.setting, text, note), tuple(steps)

    def described(self) -> dict[str, Any]:
        return {
            "prompt": prompt_version("fanoutqa_evidence_provided").version,
            "context_tokens": self.context_tokens,
            "lemmatiser": self.normaliser.lemmatiser,
            "pages": self.pages.name,
        }


def framed_fragment(fragment: Fragment, code: str) -> str:
    """The fragment as it is sent, with the title of its page."""
    return frame("fragment", code, fragment.text, page=fragment.title) + "\n"


def check_context(tokens: int) -> None:
    """Raises ConfigError where this context leaves no room for fragments."""
    if tokens < MIN_CONTEXT:
        msg = f"the model's context must have at least {MIN_CONTEXT:,} tokens, got {tokens:,}; change --context"
        raise ConfigError(msg)
