"""FanOutQA's three settings: the model gets the question alone, or with the pages it needs, or searches itself.

As in the paper (Zhu et al. 2024) and its published scripts, pages given as evidence fill the context except 520 tokens
with fragments that BM25+ ranks for the question. In open book the model writes ``<search>…</search>``: a title finds
that page's fragments, as many as fit into half of the context, other words find titles that match. Different here:
every model searches in its text, none calls functions; if all results together grow too long, the earliest results are
dropped, never the question; a question ends after 30 searches instead of ten minutes; tokens are estimated.

The prompts ask for the same as the paper's, in our own words; each is a file in ``prompts``. Wikipedia's text, the
question and the model's own searches are put between tags with a code, a digest of all of them, so that no page can
close a tag or give an instruction (as in `ragqa.generation.prompts`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias

from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.fanoutqa.evidence import (
    ANSWER_RESERVE,
    Fragment,
    IndexSearch,
    NoPageError,
    PageSearch,
    PageSource,
    SearchResult,
    WikipediaSearch,
    count_tokens,
    fitting,
    ranked,
)
from ragqa.evaluation.benchmarks.fanoutqa.metrics import Normaliser
from ragqa.evaluation.benchmarks.fanoutqa.questions import FanOutQuestion
from ragqa.generation.llm.client import ChatClient
from ragqa.generation.llm.reply import Reply
from ragqa.generation.prompts import Message, code_of, defused, frame
from ragqa.settings.config import GenerationConfig
from ragqa.types import Answer, PromptVersion, Usage
from ragqa.types.streams import returned

PROMPTS: Final = ("closed_book", "open_book", "evidence_provided", "judge")
MIN_CONTEXT = 2_048
DEFAULT_CONTEXT = 128_000  # tokens, of ragqa's default model
MAX_ANSWER_TOKENS = 512  # as in the paper
MAX_SEARCHES = 30  # half of all questions need at most 6 pages, 5 of 1,034 more than 30; --searches changes it
_SEARCH = re.compile(r"<search>\s*(.+?)\s*</search>", re.DOTALL)  # only at the very beginning, as in the paper's parser
_LEFT_OUT = "Left out: all results together are too long."

Solved = tuple[Answer, tuple[dict[str, Any], ...]]


class LeaderboardSetting(StrEnum):
    """The names the leaderboard uses."""

    CLOSED_BOOK = "closed-book"
    OPEN_BOOK = "open-book"
    EVIDENCE_PROVIDED = "evidence-provided"


Solver: TypeAlias = "ClosedBook | EvidenceProvided | OpenBook"  # one setting, ready to answer; safe for several threads


def generation_for(config: GenerationConfig, max_tokens: int = MAX_ANSWER_TOKENS) -> GenerationConfig:
    """These settings for a language model that writes at most ``max_tokens`` tokens."""
    return replace(config, generator="llm", max_tokens=max_tokens)


@dataclass(slots=True)
class Asking:
    """A model that is asked until it answers one question, with the tokens used so far."""

    client: ChatClient
    config: GenerationConfig
    prompt: str
    usage: Usage = field(default_factory=Usage)

    def ask(self, code: str, content: str) -> tuple[str, str]:
        """The reply, and a note if it was cut off. Raises GenerationError like `ChatClient.write`."""
        reply = Reply()
        messages = messages_of(self.prompt, code, content)
        returned(self.client.write(messages, reply, seed=self.config.seed))
        self.usage = Usage(
            self.usage.prompt_tokens + reply.usage.prompt_tokens,
            self.usage.completion_tokens + reply.usage.completion_tokens,
        )
        if reply.to_json()["finish_reason"] == "length":
            return reply.raw.strip(), f"the answer stops at the limit of {self.config.max_tokens:,} tokens"
        return reply.raw.strip(), reply.broke

    def answer(self, setting: LeaderboardSetting, text: str, note: str) -> Answer:
        """This reply as the answer; an empty one gets a note."""
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

    setting: ClassVar = LeaderboardSetting.CLOSED_BOOK
    client: ChatClient
    config: GenerationConfig

    def solve(self, question: FanOutQuestion) -> Solved:
        """The answer and the steps that led to it.

        Raises GenerationError, or CorpusError if the pages' source fails.
        """
        asking = Asking(self.client, self.config, "closed_book")
        code = code_of([question.question.text])
        text, note = asking.ask(code, frame("question", code, question.question.text))
        return asking.answer(self.setting, text, note), ()

    def described(self) -> dict[str, Any]:
        """For the run's stamp: what decides an answer besides model and question."""
        return {"prompt": prompt_version("closed_book").version}


@dataclass(frozen=True, slots=True)
class EvidenceProvided:
    """The fragments of the necessary pages that fit into the context, best first for the question."""

    setting: ClassVar = LeaderboardSetting.EVIDENCE_PROVIDED
    client: ChatClient
    config: GenerationConfig
    pages: PageSource
    normaliser: Normaliser
    context_tokens: int

    def __post_init__(self) -> None:
        check_context(self.context_tokens)

    def solve(self, question: FanOutQuestion) -> Solved:
        """See `ClosedBook`; a page that the source does not have is left out and noted as a step."""
        pages: list[tuple[str, str]] = []
        steps: list[dict[str, Any]] = []
        for evidence in question.evidence:
            try:
                pages.append((evidence.title, self.pages.page(evidence.title, evidence.revision)))
            except NoPageError as error:
                steps.append({"step": "no page", "title": evidence.title, "note": str(error)})
        fragments = ranked(pages, question.question.text, self.normaliser)
        code = code_of([question.question.text, *(fragment.text for fragment in fragments)])
        asking = Asking(self.client, self.config, "evidence_provided")
        asked = frame("question", code, question.question.text)
        used = sum(count_tokens(message["content"]) for message in messages_of(asking.prompt, code, asked))
        sent = fitting(fragments, self.context_tokens - ANSWER_RESERVE, used, lambda one: framed_fragment(one, code))
        steps.append({"step": "evidence", "pages": len(pages), "fragments": len(sent), "of": len(fragments)})
        text, note = asking.ask(code, "".join(sent) + asked)
        return asking.answer(self.setting, text, note), tuple(steps)

    def described(self) -> dict[str, Any]:
        return {
            "prompt": prompt_version("evidence_provided").version,
            "context_tokens": self.context_tokens,
            "lemmatiser": self.normaliser.lemmatiser,
            "pages": self.pages.name,
        }


def framed_fragment(fragment: Fragment, code: str) -> str:
    """The fragment as it is sent, with the title of its page."""
    return frame("fragment", code, fragment.text, page=fragment.title) + "\n"


def check_context(tokens: int) -> None:
    """Raises ConfigError if this context is too small for fragments."""
    if tokens < MIN_CONTEXT:
        msg = f"the model's context must have at least {MIN_CONTEXT:,} tokens, got {tokens:,}; change --context"
        raise ConfigError(msg)


@dataclass(slots=True)
class _Result:
    query: str
    found: SearchResult
    step: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenBook:
    """The model searches until it answers; the results of one search fill at most half of the context.

    With ``max_searches`` 0 the model does not search: the results for the question itself fill half of the context.
    """

    setting: ClassVar = LeaderboardSetting.OPEN_BOOK
    client: ChatClient
    config: GenerationConfig
    search: PageSearch
    context_tokens: int
    max_searches: int = MAX_SEARCHES

    def __post_init__(self) -> None:
        check_context(self.context_tokens)
        if self.max_searches < 0:
            msg = f"the most searches must be 0 or more, got {self.max_searches}; change --searches and try again"
            raise ConfigError(msg)

    def solve(self, question: FanOutQuestion) -> Solved:
        """See `ClosedBook`."""
        asking = Asking(self.client, self.config, "open_book")
        asked = question.question.text
        results = [] if self.max_searches else [_result(asked, self.search.once(asked))]
        while True:
            left = self.max_searches - len(results) if self.max_searches else 0
            text, note = asking.ask(*self._content(question, results, left))
            wanted = _SEARCH.match(text)
            if not wanted or left <= 0:
                return asking.answer(self.setting, text, note), tuple(result.step for result in results)
            query = " ".join(wanted[1].split())
            results.append(_result(query, self.search.find(query, asked)))

    def described(self) -> dict[str, Any]:
        return {
            "prompt": prompt_version("open_book").version,
            "context_tokens": self.context_tokens,
            "max_searches": self.max_searches,
            "search": self.search.name,
        }

    def _content(self, question: FanOutQuestion, results: Sequence[_Result], left: int) -> tuple[str, str]:
        """The tags' code and the user's message: the results, the question, and how many searches are left."""
        asked = question.question.text
        code = code_of([asked, *(one.text for result in results for one in result.found.fragments)])
        last = f"Searches left: {left}." if left > 0 else "No search is left: write the answer now."
        blocks = [frame("question", code, asked), last]
        used = sum(count_tokens(message["content"]) for message in messages_of("open_book", code, "\n\n".join(blocks)))
        room = self.context_tokens - ANSWER_RESERVE - used
        shown: list[str] = []
        for result in reversed(results):  # the latest first, since the model asked for it
            text = self._shown(result, code)
            if shown and room < count_tokens(text):
                text = frame("result", code, _LEFT_OUT, search=result.query)
            room -= count_tokens(text)
            shown.insert(0, text)
        return code, "\n\n".join([*shown, *blocks])

    def _shown(self, result: _Result, code: str) -> str:
        """The framed results of one search."""
        found = result.found
        if found.fragments:
            empty = frame("result", code, "", search=result.query)
            head, tail = empty[: empty.index(">") + 2], empty[empty.index(">") + 3 :]
            pieces = fitting(
                found.fragments, self.context_tokens // 2, count_tokens(empty), lambda one: framed_fragment(one, code)
            )
            result.step["fragments"] = len(pieces)
            return head + "".join(pieces) + tail
        if found.similar:
            titles = "\n".join(f"- {defused(title)}" for title in found.similar)
            return frame("result", code, f"No page has that title. Titles that match:\n{titles}", search=result.query)
        return frame("result", code, "Nothing was found. Try other words.", search=result.query)


def _result(query: str, found: SearchResult) -> _Result:
    step = {"step": "search", "query": query, "fragments": 0, "of": len(found.fragments)}
    return _Result(query, found, step | ({"similar": list(found.similar)} if found.similar else {}))


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of text, which are pages or for open-book an index, and the limits: context and searches."""

    normaliser: Normaliser
    pages: PageSource | None = None
    index: IndexSearch | None = None
    context_tokens: int = DEFAULT_CONTEXT
    max_searches: int = MAX_SEARCHES


def setting_of(name: str) -> LeaderboardSetting:
    """The setting of this name. Raises ConfigError."""
    try:
        return LeaderboardSetting(name)
    except ValueError:
        msg = f"the setting must be {', '.join(LeaderboardSetting)}, got {name!r}; change --setting and try again"
        raise ConfigError(msg) from None


def solver_for(setting: LeaderboardSetting, client: ChatClient, config: GenerationConfig, sources: Sources) -> Solver:
    """This setting, ready to answer. Raises ConfigError if its pages are missing or its context is too small."""
    if setting is LeaderboardSetting.CLOSED_BOOK:
        return ClosedBook(client, config)
    if setting is LeaderboardSetting.EVIDENCE_PROVIDED:
        if sources.pages is None:
            raise ConfigError(
                "evidence-provided needs the text of Wikipedia's pages, which is not in the data set; name a folder or "
                "file of pages or the address of an api.php with --pages"
            )
        return EvidenceProvided(client, config, sources.pages, sources.normaliser, sources.context_tokens)
    return OpenBook(client, config, _search(sources), sources.context_tokens, sources.max_searches)


def _search(sources: Sources) -> PageSearch:
    if (sources.pages is None) == (sources.index is None):
        found = "neither" if sources.pages is None else "both"
        msg = f"open-book searches either pages (--pages) or an index (--index), got {found}; name one of them"
        raise ConfigError(msg)
    if sources.pages is not None:
        return WikipediaSearch(sources.pages, sources.normaliser)
    assert sources.index is not None  # noqa: S101 - one of the two is there
    return sources.index


@cache
def instructions(name: str) -> str:
    """The prompt of this name, one of `PROMPTS`; users cannot change a benchmark's wording."""
    return (Path(__file__).parent / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip()


def prompt_version(name: str) -> PromptVersion:
    """The prompt's name, ``"fanoutqa_judge"``, with the first 12 digits of its sha256."""
    return PromptVersion(f"fanoutqa_{name}", hashlib.sha256(instructions(name).encode()).hexdigest()[:12])


def messages_of(name: str, code: str, content: str) -> list[Message]:
    """The prompt as the system message, for frames with this code, and ``content`` as the user's message."""
    return [
        {"role": "system", "content": instructions(name).replace("{code}", code)},
        {"role": "user", "content": content},
    ]
