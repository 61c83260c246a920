"""FanOutQA's open-book setting: the model searches Wikipedia, or an index, until it answers.

As in the paper (Zhu et al. 2024) and its published scripts: the model writes ``<search>…</search>``; a
title brings that page's fragments of 1,024 characters, ranked by BM25+ for the question, as many as fit into half of
the context, and other words bring titles that match. Different here: every model searches in the text, none calls
functions; the question is never dropped when all results grow too long, the earliest results are; a question ends
after 30 searches instead of ten minutes; tokens are estimated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from ragqa.config import GenerationConfig
from ragqa.corpus.fanoutqa import FanOutQuestion
from ragqa.errors import ConfigError
from ragqa.evaluation.fanoutqa_fragments import ANSWER_RESERVE, Fragment, count_tokens, fitting, ranked
from ragqa.evaluation.fanoutqa_pages import NoPageError, PageSource
from ragqa.evaluation.fanoutqa_prompts import code_of, defused, frame, messages_of, prompt_version
from ragqa.evaluation.fanoutqa_settings import Asking, Setting, Solved, check_context, framed_fragment
from ragqa.evaluation.fanoutqa_text import Normaliser
from ragqa.generation.client import ChatClient

MAX_SEARCHES = 30  # half of all questions need 6 pages or fewer, 5 of 1,034 more than 30; --searches changes it
SIMILAR_TITLES = 10
PROMPT = "fanoutqa_open_book"
_SEARCH = re.compile(r"<search>\s*(.+?)\s*</search>", re.DOTALL)  # at the very beginning, as the paper's parser
_LEFT_OUT = "Left out: all results together are too long."


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: fragments, best first, or titles to search for next."""

    fragments: tuple[Fragment, ...] = ()
    similar: tuple[str, ...] = ()


class Search(Protocol):
    """Finds fragments for a model's search; ``question`` ranks those of a page. Threads share it."""

    @property
    def name(self) -> str: ...

    def find(self, query: str, question: str) -> Found:
        """What one search of the model finds. Raises CorpusError where the source fails."""
        ...

    def once(self, question: str) -> Found:
        """What is found for the question itself, for a model that does not search."""
        ...


@dataclass(frozen=True, slots=True)
class WikipediaSearch:
    """The paper's search: a title gives that page's fragments, anything else titles that match."""

    pages: PageSource
    normaliser: Normaliser

    @property
    def name(self) -> str:
        return f"pages: {self.pages.name}; ranked on text lemmatised with {self.normaliser.lemmatiser}"

    def find(self, query: str, question: str) -> Found:
        """See `Search`."""
        try:
            text = self.pages.page(query, None)
        except NoPageError:
            return Found(similar=self.pages.search(query, SIMILAR_TITLES))
        return Found(ranked([(query, text)], question, self.normaliser))

    def once(self, question: str) -> Found:
        """The fragments of the pages whose titles match the question, ranked together."""
        pages = []
        for title in self.pages.search(question, SIMILAR_TITLES):
            with suppress(NoPageError):
                pages.append((title, self.pages.page(title, None)))
        return Found(ranked(pages, question, self.normaliser))


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """One of ragqa's indexes in place of Wikipedia: its passages for the words of the search, best first."""

    name: str
    hits: Callable[[str], Sequence[tuple[str, str]]]  # a query -> (title, text)

    def find(self, query: str, question: str) -> Found:
        """See `Search`."""
        return Found(tuple(Fragment(title, text, rank) for rank, (title, text) in enumerate(self.hits(query), 1)))

    def once(self, question: str) -> Found:
        """See `Search`."""
        return self.find(question, question)


@dataclass(slots=True)
class _Result:
    query: str
    found: Found
    step: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenBook:
    """The model searches until it answers; what one search finds fills at most half of the context.

    With ``max_searches`` 0 the model does not search: what is found for the question itself fills half the context.
    """

    client: ChatClient
    config: GenerationConfig
    search: Search
    context_tokens: int
    max_searches: int = MAX_SEARCHES

    def __post_init__(self) -> None:
        check_context(self.context_tokens)
        if self.max_searches < 0:
            msg = f"the most searches must be 0 or more, got {self.max_searches}; change --searches and try again"
            raise ConfigError(msg)

    @property
    def setting(self) -> Setting:
        return Setting.OPEN_BOOK

    def solve(self, question: FanOutQuestion) -> Solved:
        """See `ragqa.evaluation.fanoutqa_settings.Solver`."""
        asking = Asking(self.client, self.config, PROMPT)
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
            "prompt": prompt_version(PROMPT).version,
            "context_tokens": self.context_tokens,
            "max_searches": self.max_searches,
            "search": self.search.name,
        }

    def _content(self, question: FanOutQuestion, results: Sequence[_Result], left: int) -> tuple[str, str]:
        """A code and the user's message: the results, the question, how many searches are left."""
        asked = question.question.text
        code = code_of([asked, *(one.text for result in results for one in result.found.fragments)])
        last = f"Searches left: {left}." if left > 0 else "No search is left: write the answer now."
        blocks = [frame("question", code, asked), last]
        used = sum(count_tokens(message["content"]) for message in messages_of(PROMPT, code, "\n\n".join(blocks)))
        room = self.context_tokens - ANSWER_RESERVE - used
        shown: list[str] = []
        for result in reversed(results):  # the latest first: it is what the model asked for
            text = self._shown(result, code)
            if shown and room < count_tokens(text):
                text = frame("result", code, _LEFT_OUT, search=result.query)
            room -= count_tokens(text)
            shown.insert(0, text)
        return code, "\n\n".join([*shown, *blocks])

    def _shown(self, result: _Result, code: str) -> str:
        """What one search found, framed."""
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


def _result(query: str, found: Found) -> _Result:
    step = {"step": "search", "query": query, "fragments": 0, "of": len(found.fragments)}
    return _Result(query, found, step | ({"similar": list(found.similar)} if found.similar else {}))
