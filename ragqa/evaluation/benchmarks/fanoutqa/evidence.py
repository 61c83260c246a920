"""Wikipedia's pages: where their text comes from, cut into fragments, ranked for a question, searched by a model.

As in the paper (Zhu et al. 2024), a page is cut into fragments of at most 1,024 characters: at paragraphs, else lines,
sentences, clauses or words. BM25+ ranks them for the question, on text made comparable by
`ragqa.evaluation.benchmarks.fanoutqa.metrics.Normaliser`; the first fragment that does not fit ends the list. Tokens
are estimated by `count_tokens`, since the server's tokenizer is not available here.
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
_SEARCHED_CHARS = 2_000  # of a page's text, searched together with its title
SIMILAR_TITLES = 10
MAX_QUERY_CHARS = 500
FRAGMENT_CHARS = 1_024
ANSWER_RESERVE = 520  # tokens of the context kept free: 512 for the answer and 8 for what the protocol adds
_HEADING = re.compile(r"# (\S[^\n]*?)[ \t]*(?:\n|$)")  # the title in a file of one page
_BORDERS = ("\n\n", "\n", ". ", ", ", " ")


class NoPageError(CorpusError):
    """The source has no page of that title. A model that searched is told so; for a needed page it becomes a note."""


PageSource: TypeAlias = "FolderPages | WikiPages"  # pages by title; safe for several threads


class FolderPages:
    """Pages in JSON lines of {title, text}, or one file for each page (``.md`` or ``.txt``).

    The title of such a file is its first heading, else the file's name. Revisions are ignored.
    """

    def __init__(self, path: Path) -> None:
        """Reads every page. Raises CorpusError if there is none or a file cannot be read as pages."""
        self._texts = dict(_pages(path))
        if not self._texts:
            msg = f"{path}: expected pages, JSON lines of {{title, text}} or files of one page, found none; name others"
            raise CorpusError(msg)
        self._by_key = {_key(title): title for title in self._texts}
        digest = hashlib.sha256(json.dumps(self._texts, sort_keys=True).encode()).hexdigest()
        self.name = f"{path.name}, {len(self._texts):,} pages, sha256 {digest[:12]}"  # part of a run's stamp

    def page(self, title: str, revision: int | None) -> str:
        """The page as Markdown at this revision (None: the one that the source has).

        Raises NoPageError if no page has that title, CorpusError if the source fails.
        """
        found = self._by_key.get(_key(title))
        if found is None:
            msg = f"no page {title!r} among the {len(self._texts):,} given with --pages; add it, or name another source"
            raise NoPageError(msg)
        return self._texts[found]

    def search(self, query: str, limit: int = SEARCH_LIMIT) -> tuple[str, ...]:
        """Titles of pages with one of the words in their title or the beginning of their text, ranked by BM25+."""
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

    ``revisions`` gives the revision of 20 November 2023 for the data set's titles; other pages are read as they are
    today, unlike in the paper.
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

    ``cache`` is the folder for pages of a server. Raises ConfigError if ``where`` is neither.
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
    """The estimated number of tokens: one per 3.5 bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) * 2 // 7)


def cut(text: str, max_chars: int = FRAGMENT_CHARS, borders: Sequence[str] = _BORDERS) -> list[str]:
    """The text in pieces of at most ``max_chars``, cut at the first of ``borders`` that makes them small enough.

    Neighbouring pieces are joined while they fit. A text that fits is one piece; one without any border is cut
    anywhere. Works as `fanoutqa.retrieval.chunk_text`, which removes the length of a border from the end of everything
    that it cuts: usually that border, sometimes a letter of a word that is nearly as long as a piece.
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
    """The fragments of these (title, text) pages, best first for the question; equal scores keep the pages' order."""
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
    """The first fragments, formatted by ``each``, that fit into ``limit`` tokens together with ``frame_tokens``."""
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


PageSearch: TypeAlias = "WikipediaSearch | IndexSearch"  # finds fragments for a model's search; thread-safe


@dataclass(frozen=True, slots=True)
class WikipediaSearch:
    """The paper's search: for a title that page's fragments, for other words the titles that match."""

    pages: PageSource
    normaliser: Normaliser

    @property
    def name(self) -> str:
        return f"pages: {self.pages.name}; ranked on text lemmatised with {self.normaliser.lemmatiser}"

    def find(self, query: str, question: str) -> SearchResult:
        """The result of one search by the model, ranked for ``question``. Raises CorpusError if the source fails."""
        try:
            text = self.pages.page(query, None)
        except NoPageError:
            return SearchResult(similar=self.pages.search(query, SIMILAR_TITLES))
        return SearchResult(ranked([(query, text)], question, self.normaliser))

    def once(self, question: str) -> SearchResult:
        """For a model that does not search: fragments of the pages found for the question, ranked together."""
        pages = []
        for title in self.pages.search(question, SIMILAR_TITLES):
            with suppress(NoPageError):
                pages.append((title, self.pages.page(title, None)))
        return SearchResult(ranked(pages, question, self.normaliser))


@dataclass(frozen=True, slots=True)
class IndexSearch:
    """One of ragqa's indexes in place of Wikipedia: a search finds its passages, best first."""

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
    """A search with this pipeline's retrievers, fusion and reranker, without its filter."""
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
