"""A stream of articles from a list of titles and a server that has the pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.files import read_utf8
from ragqa.corpus.streams import check_max_tokens
from ragqa.corpus.wikipedia.article import VERSION, article_passages
from ragqa.corpus.wikipedia.kiwix import Kiwix
from ragqa.corpus.wikipedia.mediawiki import MediaWiki, PageNotFoundError, WikiPage, moment_of
from ragqa.errors import CorpusError
from ragqa.types import Passage


@dataclass(frozen=True, slots=True)
class PageStream:
    """The pages with these titles from a MediaWiki server, at one moment, or from a Kiwix server.

    A position is a title's place in the list. A title without a page is an error that names it. If several titles
    redirect to one page, it occurs once, at the first of them.
    """

    wiki: MediaWiki | Kiwix
    titles: tuple[str, ...]
    as_of: datetime | None = None
    max_tokens: int = 128

    def __post_init__(self) -> None:
        check_max_tokens(self.max_tokens)

    @property
    def format(self) -> str:
        return "mediawiki" if isinstance(self.wiki, MediaWiki) else "kiwix"

    @property
    def name(self) -> str:
        return self.wiki.url if isinstance(self.wiki, MediaWiki) else f"{self.wiki.url}, {self.wiki.book.name}"

    def identity(self) -> str:
        """A hash of address, titles and moment or, for Kiwix, the book's content. It fetches no page."""
        edition = str(self.as_of) if isinstance(self.wiki, MediaWiki) else self.wiki.book.uuid
        settings = (self.format, VERSION, self.max_tokens, self.wiki.url, edition, self.titles)
        return sha256(repr(settings).encode("utf-8", "backslashreplace")).hexdigest()

    def articles(self, start: int = 0) -> Iterator[tuple[int, tuple[Passage, ...]]]:
        given: set[str] = set()
        for position, title in enumerate(self.titles):
            page = self._page(title)  # also before ``start``, to follow redirects; these pages are cached on disk
            if page.title in given:
                continue
            given.add(page.title)
            if position >= start:
                passages = article_passages(page.title, page.text, self.max_tokens)
                if passages:
                    yield position, passages

    def _page(self, title: str) -> WikiPage:
        try:
            return (
                self.wiki.page(title, as_of=self.as_of) if isinstance(self.wiki, MediaWiki) else self.wiki.page(title)
            )
        except PageNotFoundError as error:
            msg = f"{error} (title {self.titles.index(title) + 1:,} of {len(self.titles):,})"
            raise PageNotFoundError(msg) from error


def open_pages(
    address: str,
    titles: tuple[str, ...],
    cache_folder: Path,
    *,
    as_of: date | str | None = None,
    book: str = "",
    max_tokens: int = 128,
) -> PageStream:
    """The stream of these pages, from MediaWiki if the address has an ``api.php``, else from a Kiwix server.

    ``as_of`` None means the start of today in UTC, so that a build resumed on the same day reads the same revisions.
    ``book`` applies only to Kiwix, ``as_of`` only to MediaWiki. Raises ConfigError, CorpusError.
    """
    if "api.php" in address:
        wiki = MediaWiki(address, cache_folder)
        return PageStream(wiki, titles, moment_of(as_of or datetime.now(UTC).date()), max_tokens)
    return PageStream(Kiwix(address, cache_folder, book), titles, None, max_tokens)


def read_titles(path: Path) -> tuple[str, ...]:
    """The distinct titles in a text file, one a line; blank lines are skipped. Raises CorpusError if there is none."""
    lines = read_utf8(path, path.name).split("\n")
    titles = tuple(dict.fromkeys(title for line in lines if (title := clean_line(line).replace("_", " "))))
    if not titles:
        msg = f"{path.name}: expected titles of pages, one a line, found none; add them and try again"
        raise CorpusError(msg)
    return titles
