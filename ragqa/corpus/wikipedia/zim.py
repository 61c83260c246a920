"""Reads a ZIM file, the format in which Kiwix distributes Wikipedia, as a stream of articles in bounded memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.streams import check_max_tokens, file_identity
from ragqa.corpus.wikipedia.article import VERSION, article_passages, html_markdown
from ragqa.errors import ConfigError, CorpusError
from ragqa.types import Passage

if TYPE_CHECKING:
    from libzim.reader import Archive

LABEL = "ZIM"
MAX_PAGE_BYTES: Final = 64 * 2**20  # longer pages are skipped

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ZimStream:
    """The HTML pages of a ZIM file that are not redirects, in the order of their paths, which are their ids.

    A position is an entry's number in the file, so starting at any position is fast. Needs
    ``pip install 'ragqa[zim]'``.
    """

    source: Path
    max_tokens: int = 128
    format: str = field(default="zim", init=False)

    def __post_init__(self) -> None:
        check_max_tokens(self.max_tokens)
        if not files(self.source):
            msg = f"no ZIM file at {self.source}; expected one file that ends in .zim"
            raise CorpusError(msg)

    @property
    def name(self) -> str:
        return self.source.resolve().name

    def identity(self) -> str:
        return file_identity(self.source, "zim", VERSION, self.max_tokens)

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        archive = _opened(self.source)
        for position in range(start, archive.all_entry_count):
            page = _page(archive, position, self.source.name)
            if page:
                path, title, html = page
                passages = article_passages(title, html_markdown(html, title), self.max_tokens, path)
                if passages:
                    yield position, passages


def stream(source: Path, chunk_max_tokens: int = 128) -> ZimStream:
    """A stream of the pages of this ZIM file."""
    return ZimStream(source, chunk_max_tokens)


def files(source: Path) -> tuple[Path, ...]:
    """``source``, if it is a file with the suffix of ZIM files."""
    return (source,) if source.suffix.lower() == ".zim" and source.is_file() else ()


def _opened(path: Path) -> Archive:
    try:
        from libzim.reader import Archive
    except ImportError as error:
        msg = "reading a ZIM file takes the library libzim, found none; run: pip install 'ragqa[zim]'"
        raise ConfigError(msg) from error
    try:
        return Archive(path)
    except RuntimeError as error:
        msg = f"{path.name} is truncated or corrupt ({error}); fetch it again"
        raise CorpusError(msg) from error


def _page(archive: Archive, number: int, name: str) -> tuple[str, str, str] | None:
    """The path, title and HTML of an entry; None for an entry that is not read."""
    try:
        entry: Any = archive._get_entry_by_id(number)
        if entry.is_redirect:
            return None
        item = entry.get_item()
        if not item.mimetype.startswith("text/html"):
            return None
        if item.size > MAX_PAGE_BYTES:
            logger.warning("%s: %r is passed over, it is too long", name, entry.path[:80])
            return None
        html = bytes(item.content).decode("utf-8", "replace")
    except (RuntimeError, KeyError, IndexError, UnicodeDecodeError) as error:
        msg = f"{name}, entry {number:,}: expected a page, found what cannot be read ({error}); fetch the file again"
        raise CorpusError(msg) from error
    path = clean_line(entry.path)
    return path, clean_line(entry.title) or path.replace("_", " "), html
