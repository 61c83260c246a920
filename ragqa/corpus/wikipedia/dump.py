"""A wiki's dump (pages-articles XML, plain, .gz or .bz2, also in parts) as a stream of articles in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from ragqa.corpus.formats import CorpusFormat
from ragqa.corpus.jsonl import check_max_tokens
from ragqa.corpus.streams import file_identity
from ragqa.corpus.wikipedia.article import VERSION, article_passages
from ragqa.corpus.wikipedia.dump_xml import read_pages
from ragqa.corpus.wikipedia.wikitext import wikitext_markdown
from ragqa.errors import CorpusError
from ragqa.types import Passage

_DUMP: Final = re.compile(r"\.xml(?:-p[0-9]+p[0-9]+)?(?:\.bz2|\.gz)?$", re.IGNORECASE)
_PART: Final = re.compile(r"pages-(?:articles|meta)", re.IGNORECASE)  # in a folder other .xml files are no dump's
_NUMBERS: Final = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class DumpStream:
    """The articles of a dump: pages of the main namespace that are no redirects, each by its title.

    ``source`` is a file or a folder of parts, read in the order of the numbers in their names. Titles are taken to be
    unique, as they are in a wiki. Pages before ``start`` are read over without being converted: some 100 MB of XML a
    second, less where it must be unpacked.
    """

    source: Path
    max_tokens: int = 128
    format: CorpusFormat = field(default="dump", init=False)

    def __post_init__(self) -> None:
        check_max_tokens(self.max_tokens)
        if not dump_files(self.source):
            msg = (
                f"no dump in {self.source}; expected a file of pages-articles XML, .xml, .xml.bz2 or .xml.gz, "
                "or a folder of such parts"
            )
            raise CorpusError(msg)

    @property
    def name(self) -> str:
        return self.source.resolve().name

    def identity(self) -> str:
        settings = ("dump", VERSION, self.max_tokens)
        parts = [f"{path.name} {file_identity(path, *settings)}" for path in dump_files(self.source)]
        return sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        position = 0
        for path in dump_files(self.source):
            for page in read_pages(path, start - position):
                if page.text is not None:
                    markdown = wikitext_markdown(page.text, page.dropped)
                    passages = article_passages(page.title, markdown, self.max_tokens)
                    if passages:
                        yield position, passages
                position += 1


def stream_passages(path: Path, max_tokens: int = 128, start: int = 0) -> Iterator[Passage]:
    """The passages of a dump, from the article at position ``start`` on. Raises CorpusError, ConfigError."""
    return (passage for _, passages in DumpStream(path, max_tokens).articles(start) for passage in passages)


def dump_files(source: Path) -> tuple[Path, ...]:
    """The files of a dump in the order of the numbers in their names; none where there are none.

    In a folder only those called ``…pages-articles…`` or ``…pages-meta…`` count.
    """
    if not source.is_dir():
        return (source,) if source.is_file() and _DUMP.search(source.name) else ()
    found = [path for path in source.iterdir() if _DUMP.search(path.name) and _PART.search(path.name)]
    return tuple(sorted((path for path in found if path.is_file()), key=lambda path: _key(path.name)))


def _key(name: str) -> tuple[list[str | int], str]:
    parts = _NUMBERS.split(name)  # texts at even places, numbers at odd ones
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], name
