"""Wikipedia's pages: where their text comes from, cut into fragments, ranked for a question, and searched by a model.

The paper's way (Zhu et al. 2024): a page is cut at paragraphs, lines, sentences, clauses, then words into fragments of
at most 1,024 characters; BM25+ on comparable text (`ragqa.evaluation.benchmarks.fanoutqa.metrics.Normaliser`) ranks
them for the question; the first that does not fit ends the list. Tokens are estimated, since the server's tokenizer is
not here: see `count_tokens`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from rank_bm25 import BM25Plus

from ragqa.corpus.files import read_utf8
from ragqa.corpus.jsonl import read_json_lines
from ragqa.corpus.wikipedia.mediawiki import MediaWiki
from ragqa.errors import ConfigError, CorpusError
from ragqa.evaluation.benchmarks.fanoutqa.metrics import Normaliser
from ragqa.pipeline import Pipeline
from ragqa.types import Question
from ragqa.types.events.pipeline import Fused, Reranked

SEARCH_LIMIT = 10
_SEARCHED_CHARS = 2_000  # of a page's text that a search in a folder looks at, with its title
SIMILAR_TITLES = 10
MAX_QUERY_CHARS = 500
FRAGMENT_CHARS = 1_024
ANSWER_RESERVE = 520  # tokens of the context kept free: 512 for the answer and 8 for what the protocol adds
_HEADING = re.compile(r"# (\S[^\n]*?)[ \t]*(?:\n|$)")  # of a file of one page: its title
_BORDERS = ("\n\n", "\n", ". ", ", ", " ")


class NoPageError(CorpusError):
    """The source has no page of that title. Told to the model that searched, or noted for a page it was to be given."""


PageSource: TypeAlias = "FolderPages | WikiPages"  # pages by title; threads share it


class FolderPages:
    """Pages in JSON lines of {title, text}, or one file a page (``.md`` or ``.txt``), whose title is its first
    heading or else the file's name; revisions do not count.
    """

    def __init__(self, path: Path) -> None:
        """Reads every page. Raises CorpusError where there is none, or a file is something else."""
        self._texts = dict(_pages(path))
        if not self._texts:
            msg = f"{path}: expected pages, JSON lines of {{title, text}} or files of one page, found none; name others"
            raise CorpusError(msg)
        self._by_key = {_key(title): title for title in self._texts}
        digest = hashlib.sha256(json.dumps(self._texts, sort_keys=True).encode()).hexdigest()
        self.name = f"{path.name}, {len(self._texts):,} pages, sha256 {digest[:12]}"  # what a run is known by

    def page(self, title: str, revision: int | None) -> str:
        """The page as Markdown at this revision (None: as the source has it).

        Raises NoPageError where there is none of that title, CorpusError where the source fails.
        """
        found = self._by_key.get(_key(title))
        if found is None:
            msg = f"no page {title!r} among the {len(self._texts):,} given with --pages; add it, or name another source"
            raise NoPageError(msg)
        return self._texts[found]

    def search(self, query: str, limit: int = SEARCH_LIMIT) -> tuple[str, ...]:
        """Titles of pages that hold one of the words in their title or the beginning of their text, by BM25+."""
        words = _words(query)
        index, searched = self._index
        scores = zip(index.get_scores(words), self._texts, searched, strict=True)
        best = sorted((-float(score), title) for score, title, held in scores if not held.isdisjoint(words))
        return tuple(title for _, title in best[:limit])

    @cached_property
    def _index(self) -> tuple[Any, tuple[frozenset[str], ...]]:
        searched = [_words(f"{title} {title} {text[:_SEARCHED_CHARS]}") for title, text in self._texts.items()]
        return BM25Plus(searched), tuple(map(frozenset, searched))


class WikiPages:
    """Pages of a MediaWiki server through `ragqa.corpus.wikipedia.mediawiki`, which caches them on disk.

    ``revisions`` gives the revision of 20 November 2023 for titles that the data set knows; other pages come as they
    are today, which the paper's did not.
    """

    def __init__(self, wiki: Any, name: str, revisions: Mapping[str, int] | None = None) -> None:  # noqa: ANN401
        """``wiki`` is a `ragqa.corpus.wikipedia.mediawiki.MediaWiki` or anything with its ``page`` and ``search``."""
        self._wiki, self.name = wiki, name
        self._revisions = dict(revisions or {})

    def page(self, title: str, revision: int | None) -> str:
        try:
            found = self._wiki.page(title, revision=revision or self._revisions.get(title))
        except CorpusError as error:
            if title not in self._revisions and not any(_key(title) == _key(hit) for hit in self.search(title, 5)):
                raise NoPageError(str(error)) from error
            raise
        text: str = found.text
        return text

    def search(self, query: str, limit: int = SEARCH_LIMIT) -> tuple[str, ...]:
        return tuple(self._wiki.search(query, limit))


def open_pages(where: str, cache: Path, revisions: Mapping[str, int] | None = None) -> FolderPages | WikiPages:
    """The source that ``--pages`` names: a folder or file of pages, or the address of an ``api.php``.

    ``cache`` is where pages of a server are cached. Raises ConfigError where it is neither.
    """
    if where.startswith(("http://", "https://")):
        return WikiPages(MediaWiki(where, cache), where, revisions)
    path = Path(where).expanduser()
    if not path.exists():
        msg = f"--pages must name a folder or file of pages or the address of an api.php, found none at {where!r}"
        raise ConfigError(msg)
    return FolderPages(path)


def _pages(path: Path) -> Iterator[tuple[str, str]]:
    for file in [path] if path.is_file() else sorted(path.iterdir()):
        match file.suffix.lower():
            case ".jsonl":
                yield from ((one.line("title"), one.text("text")) for one in read_json_lines(file, file.name))
            case ".md" | ".txt":
                text = read_utf8(file, file.name)
                heading = _HEADING.match(text)
                yield heading[1] if heading else file.stem.replace("_", " "), text


def _key(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a page; ``number`` counts from 1 within its page."""

    title: str
    text: str
    number: int


def count_tokens(text: str) -> int:
    """How many tokens this text is taken for: one per 3.5 bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) * 2 // 7)


def cut(text: str, max_chars: int = FRAGMENT_CHARS, borders: Sequence[str] = _BORDERS) -> list[str]:
    """The text in pieces of at most ``max_chars``, cut at the first of ``borders`` that makes them small enough.

    Neighbours are joined while they fit. A text that fits is one piece; one without any border is cut anywhere. The
    same as `fanoutqa.retrieval.chunk_text`, which takes a border's length off the end of whatever it cuts: mostly that
    border, now and then a letter of a word that is nearly as long as a piece.
    """
    if len(text) <= max_chars:
        return [text]
    if not borders:
        return [text[start : start + max_chars] for start in range(0, len(text), max_chars)]
    border, *finer = borders
    pieces: list[str] = []
    for part in text.split(border):
        piece = part + border
        if len(piece) > max_chars:
            pieces += cut(piece, max_chars, finer)
        elif pieces and len(pieces[-1]) + len(piece) <= max_chars:
            pieces[-1] += piece
        else:
            pieces.append(piece)
    if pieces[-1] == border:
        pieces.pop()
    pieces[-1] = pieces[-1][: -len(border)]
    return pieces


def ranked(pages: Iterable[tuple[str, str]], question: str, normaliser: Normaliser) -> tuple[Fragment, ...]:
    """The fragments of these (title, text) pages, best first for the question; at equal scores in the pages' order."""
    fragments = [
        Fragment(title, text, number) for title, page in pages for number, text in enumerate(cut(page), 1) if text
    ]
    if not fragments:
        return ()
    index = BM25Plus([normaliser(fragment.text, keep=False).split(" ") for fragment in fragments])
    scores = index.get_scores(normaliser(question).split(" "))
    order = sorted(range(len(fragments)), key=lambda place: (-float(scores[place]), place))
    return tuple(fragments[place] for place in order)


def fitting(fragments: Iterable[Fragment], limit: int, frame_tokens: int, each: Callable[[Fragment], str]) -> list[str]:
    """What ``each`` makes of the first fragments that fit into ``limit`` tokens together with ``frame_tokens``."""
    texts: list[str] = []
    used = frame_tokens
    for fragment in fragments:
        text = each(fragment)
        used += count_tokens(text)
        if used > limit:
            break
        texts.append(text)
    return texts


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found: fragments, best first, or titles to search for next."""

    fragments: tuple[Fragment, ...] = ()
    similar: tuple[str, ...] = ()


PageSearch: TypeAlias = "WikipediaSearch | IndexSearch"  # finds fragments for a model's search; threads share it


@dataclass(frozen=True, slots=True)
class WikipediaSearch:
    """The paper's search: a title gives that page's fragments, anything else titles that match."""

    pages: PageSource
    normaliser: Normaliser

    @property
    def name(self) -> str:
        return f"pages: {self.pages.name}; ranked on text lemmatised with {self.normaliser.lemmatiser}"

    def find(self, query: str, question: str) -> SearchResult:
        """What one search of the model finds; ``question`` ranks it. Raises CorpusError where the source fails."""
        try:
            text = self.pages.page(query, None)
        except NoPageError:
            return SearchResult(similar=self.pages.search(query, SIMILAR_TITLES))
        return SearchResult(ranked([(query, text)], question, self.normaliser))

    def once(self, question: str) -> SearchResult:
        """For a model that does not search: fragments of the pages whose titles match the question, ranked together."""
        pages = []
        for title in self.pages.search(question, SIMILAR_TITLES):
            with suppress(NoPageError):
                pages.append((title, self.pages.page(title, None)))
        return SearchResult(ranked(pages, question, self.normaliser))


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """One of ragqa's indexes in place of Wikipedia: its passages for the words of the search, best first."""

    name: str
    hits: Callable[[str], Sequence[tuple[str, str]]]  # a query -> (title, text)

    def find(self, query: str, question: str) -> SearchResult:
        """See `WikipediaSearch.find`."""
        return SearchResult(
            tuple(Fragment(title, text, rank) for rank, (title, text) in enumerate(self.hits(query), 1))
        )

    def once(self, question: str) -> SearchResult:
        """See `WikipediaSearch.once`."""
        return self.find(question, question)


def index_search(pipeline: Pipeline) -> IndexSearch:
    """What this pipeline's retrievers, fusion and reranker find for a model's search; nothing is filtered out."""
    manifest = pipeline.index.manifest

    def hits(query: str) -> list[tuple[str, str]]:
        found: Fused | Reranked | None = None
        for event in pipeline.run(Question(query[:MAX_QUERY_CHARS])):
            if isinstance(event, Fused | Reranked):
                found = event
        ranking = () if found is None else found.ranking.hits
        return [(hit.passage.title or hit.passage.document_id, hit.passage.text) for hit in ranking]

    files = ",".join(sorted(entry.sha256[:8] for entry in manifest.files))
    return IndexSearch(f"index {manifest.name} ({files})", hits)
