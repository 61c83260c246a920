"""Reads a wiki dump (pages-articles XML, plain, .gz or .bz2, also in parts) as a stream of articles in bounded memory.

The XML is read piece by piece. Entity declarations are refused, so that entities cannot expand to fill memory.
"""

from __future__ import annotations

import bz2
import gzip
import logging
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final
from xml.parsers import expat

from ragqa.corpus.streams import check_max_tokens, files_identity
from ragqa.corpus.wikipedia.article import VERSION, article_passages
from ragqa.corpus.wikipedia.wikitext import FILES_AND_CATEGORIES, wikitext_markdown
from ragqa.errors import CorpusError
from ragqa.types import Passage

LABEL = "dump"
MAX_PAGE_CHARS: Final = 16 * 2**20  # longer pages are skipped; MediaWiki itself stores at most 2 MB
PIECE_BYTES: Final = 2**18
_FILE, _CATEGORY = "6", "14"  # keys of the namespaces, which are the same in every language
_READ: Final = frozenset({"title", "ns", "model", "text", "namespace"})

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DumpPage:
    """An article's title and wikitext; the text is None if the article was skipped or is too long.

    ``dropped`` has the names of the wiki's namespaces of files and categories, in lower case.
    """

    title: str
    text: str | None
    dropped: frozenset[str]


def read_pages(path: Path, n_skipped: int = 0) -> Iterator[DumpPage]:
    """Yields the pages of the main namespace that are not redirects; the first ``n_skipped`` have no text.

    If a page has several revisions, the last one is read. Raises CorpusError, with line and column, if the file is not
    such XML, ends too soon or cannot be unpacked; the pages before that place have then already been yielded.
    """
    reader = _Reader(path.name, n_skipped)
    try:
        with _opened(path) as file:
            while piece := file.read(PIECE_BYTES):
                yield from reader.feed(piece)
        yield from reader.feed(b"", is_last=True)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"{path.name} cannot be read{reader.after()}: {reason}; check that the file is whole and fetch it again"
        raise CorpusError(msg) from error


def _opened(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".bz2":
        return bz2.open(path)  # reads multistream files too
    return gzip.open(path) if suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


@dataclass(slots=True)
class _Reader:
    """An incremental parser: takes bytes and returns the pages that are complete."""

    name: str
    n_skipped: int
    n_articles: int = 0
    dropped: set[str] = field(default_factory=lambda: set(FILES_AND_CATEGORIES))
    _done: list[DumpPage] = field(default_factory=list)
    _values: dict[str, str] = field(default_factory=dict)  # of the page being read
    _pieces: list[str] | None = None  # of the element being read
    _n_chars: int = 0
    _depth: int = 0
    _is_redirect: bool = False
    _key: str = ""
    _title: str = ""  # of the last article
    _parser: expat.XMLParserType = field(init=False)

    def __post_init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.buffer_size = 2**16
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype

    def feed(self, piece: bytes, *, is_last: bool = False) -> list[DumpPage]:
        try:
            self._parser.Parse(piece, is_last)
        except expat.ExpatError as error:
            place = f"line {error.lineno:,}, column {error.offset + 1:,}"
            msg = (
                f"{self.name}, {place}{self.after()}: expected MediaWiki's export XML, found "
                f"{expat.ErrorString(error.code)}; check that the file is whole and fetch it again"
            )
            raise CorpusError(msg) from error
        done, self._done = self._done, []
        return done

    def after(self) -> str:
        """The current place in the file, in words for an error."""
        return f" after {self.n_articles:,} articles, the last {self._title[:80]!r}" if self.n_articles else ""

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth == 1 and element != "mediawiki":
            found = f"the element <{element[:40]}> at the top"
            raise self._unexpected(found)
        if element == "page":
            self._values, self._is_redirect = {}, False
        elif element == "redirect":
            self._is_redirect = True
        elif element in _READ:
            self._pieces, self._n_chars, self._key = [], 0, attributes.get("key", "")
            if element == "text" and not self._is_wanted():
                self._pieces = None

    def _characters(self, text: str) -> None:
        if self._pieces is not None and self._n_chars <= MAX_PAGE_CHARS:
            self._n_chars += len(text)
            self._pieces.append(text)

    def _end(self, element: str) -> None:
        self._depth -= 1
        if element in _READ and self._pieces is not None:
            text = "".join(self._pieces)
            if element != "namespace":
                self._values[element] = text
            elif self._key in (_FILE, _CATEGORY):
                self.dropped.add(text.strip().lower())
            if self._n_chars > MAX_PAGE_CHARS:
                logger.warning("%s: %r is passed over, it is too long", self.name, self._values.get("title", "")[:80])
                self._values.pop(element, None)
            self._pieces = None
        elif element == "page":
            self._end_page()

    def _end_page(self) -> None:
        if self._values.get("ns", "0").strip() != "0" or self._is_redirect:
            return
        if self._values.get("model", "wikitext").strip() != "wikitext":
            return
        title = " ".join(self._values.get("title", "").split())
        if not title:
            found = "a page without a title"
            raise self._unexpected(found)
        self._done.append(DumpPage(title, self._values.pop("text", None), frozenset(self.dropped)))
        self.n_articles += 1
        self._title = title
        self._values = {}

    def _is_wanted(self) -> bool:
        """Whether the text that begins here is needed."""
        is_article = self._values.get("ns", "0").strip() == "0" and not self._is_redirect
        return is_article and self.n_articles >= self.n_skipped

    def _doctype(self, *_declaration: object) -> None:
        found = "a document type declaration, which may hide entities"
        raise self._unexpected(found)

    def _unexpected(self, found: str) -> CorpusError:
        return CorpusError(
            f"{self.name}, line {self._parser.CurrentLineNumber:,}{self.after()}: expected MediaWiki's export XML, "
            f"found {found}; choose a pages-articles dump"
        )


_DUMP: Final = re.compile(r"\.xml(?:-p[0-9]+p[0-9]+)?(?:\.bz2|\.gz)?$", re.IGNORECASE)
_PART: Final = re.compile(r"pages-(?:articles|meta)", re.IGNORECASE)  # other .xml files in a folder are not dumps
_NUMBERS: Final = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class DumpStream:
    """The articles of a dump: pages of the main namespace that are not redirects, identified by title.

    ``source`` is a file or a folder of parts, read in the order of the numbers in their names. Titles are assumed to be
    unique, as in any wiki. Pages before ``start`` are read but not converted, at some 100 MB of XML a second, or less
    if it must be unpacked.
    """

    source: Path
    max_tokens: int = 128
    format: str = field(default="dump", init=False)

    def __post_init__(self) -> None:
        check_max_tokens(self.max_tokens)
        if not files(self.source):
            msg = (
                f"no dump in {self.source}; expected a file of pages-articles XML, .xml, .xml.bz2 or .xml.gz, "
                "or a folder of such parts"
            )
            raise CorpusError(msg)

    @property
    def name(self) -> str:
        return self.source.resolve().name

    def identity(self) -> str:
        return files_identity(files(self.source), "dump", VERSION, self.max_tokens)

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        position = 0
        for path in files(self.source):
            for page in read_pages(path, start - position):
                if page.text is not None:
                    markdown = wikitext_markdown(page.text, page.dropped)
                    passages = article_passages(page.title, markdown, self.max_tokens)
                    if passages:
                        yield position, passages
                position += 1


def stream(source: Path, chunk_max_tokens: int = 128) -> DumpStream:
    """A stream of the articles of this dump."""
    return DumpStream(source, chunk_max_tokens)


def files(source: Path) -> tuple[Path, ...]:
    """The files of a dump in the order of the numbers in their names.

    In a folder, only files named ``…pages-articles…`` or ``…pages-meta…`` count.
    """
    if not source.is_dir():
        return (source,) if source.is_file() and _DUMP.search(source.name) else ()
    found = [path for path in source.iterdir() if _DUMP.search(path.name) and _PART.search(path.name)]
    return tuple(sorted((path for path in found if path.is_file()), key=lambda path: _key(path.name)))


def _key(name: str) -> tuple[list[str | int], str]:
    parts = _NUMBERS.split(name)  # texts at even places, numbers at odd ones
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name
