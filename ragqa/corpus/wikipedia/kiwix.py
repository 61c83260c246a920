"""A Kiwix server (kiwix-serve): its books, search in a book, and pages by their titles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urljoin, urlsplit
from xml.etree.ElementTree import Element

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.wikipedia.article import html_markdown
from ragqa.corpus.wikipedia.fetching import (
    REQUESTS_PER_SECOND,
    HttpReply,
    PageCache,
    PoliteClient,
    checked_address,
    json_list,
)
from ragqa.corpus.wikipedia.mediawiki import PageNotFoundError, WikiPage
from ragqa.errors import CorpusError

EXAMPLE: Final = "http://127.0.0.1:8080"
BOOKS_A_REQUEST: Final = 50
HITS_A_REQUEST: Final = 25
MAX_REQUESTS: Final = 200  # of one list
_ATOM: Final = "{http://www.w3.org/2005/Atom}"


@dataclass(frozen=True, slots=True)
class Book:
    """A ZIM file that the server offers. ``name`` is its name in addresses; ``uuid`` changes with its content."""

    name: str
    title: str
    language: str
    uuid: str
    n_articles: int


class Kiwix:
    """One book of one server; fetched pages are cached. Threads may share it and then wait for each other."""

    def __init__(
        self, url: str, cache_folder: Path, book: str = "", *, requests_per_second: float = REQUESTS_PER_SECOND
    ) -> None:
        """``url`` is the server's first page. ``book`` may be empty if the server offers only one book.

        Raises ConfigError if ``url`` is not an address.
        """
        self.url = checked_address(url, EXAMPLE)
        self._client = PoliteClient(self.url, requests_per_second)
        self._cache = PageCache(cache_folder)
        self._named = book
        self._book: Book | None = None

    def books(self) -> tuple[Book, ...]:
        """The books that the server offers, in the server's order. Raises CorpusError."""
        books: list[Book] = []
        for _ in range(MAX_REQUESTS):
            asked = {"start": str(len(books)), "count": str(BOOKS_A_REQUEST)}
            reply = self._get("/catalog/v2/entries", asked, "a catalogue of books")
            found = list(_books(_xml(reply, "feed", "a catalogue of books")))
            books += found
            if len(found) < BOOKS_A_REQUEST:
                break
        return tuple(books)

    @property
    def book(self) -> Book:
        """The chosen book. Raises CorpusError with the names of the available books."""
        if self._book is None:
            books = self.books()
            chosen = [book for book in books if book.name == self._named or not self._named]
            if len(chosen) != 1:
                names = ", ".join(book.name for book in books[:10]) or "no book"
                wanted = f"the book {self._named!r}" if self._named else "one book, as none was named"
                msg = f"expected {wanted} at {self.url}, found {names}; choose one of them"
                raise CorpusError(msg)
            self._book = chosen[0]
        return self._book

    def page(self, title: str) -> WikiPage:
        """The page with this title, after redirects. Raises PageNotFoundError, CorpusError."""
        title = clean_line(title.replace("_", " "))
        if not title:
            msg = "expected the title of a page, found an empty one; correct it"
            raise PageNotFoundError(msg)
        key = (self.url, title, self.book.uuid)
        cached = self._cache.get(*key)
        if not cached or not all(isinstance(cached.get(name), str) for name in ("title", "html", "url")):
            cached = self._fetched(title)
            self._cache.put(cached, *key)
        return WikiPage(cached["title"], html_markdown(cached["html"], cached["title"]), 0, cached["url"])

    def search(self, query: str, limit: int = 10) -> tuple[str, ...]:
        """The titles of at most ``limit`` pages that the book's full-text index finds, best first."""
        titles: dict[str, None] = {}
        wanted = f"pages for the search {query[:60]!r}"
        asked = {"pattern": query, "books.name": self.book.name, "format": "xml"}
        first = 1
        while query.strip() and len(titles) < limit and first < MAX_REQUESTS * HITS_A_REQUEST:
            reply = self._get("/search", {**asked, "start": str(first), "pageLength": str(HITS_A_REQUEST)}, wanted)
            items = _xml(reply, "rss", wanted).findall("channel/item")
            titles |= dict.fromkeys(title for item in items if (title := clean_line(item.findtext("title") or "")))
            first += HITS_A_REQUEST
            if len(items) < HITS_A_REQUEST:
                break
        return tuple(titles)[:limit]

    def _fetched(self, title: str) -> dict[str, str]:
        """Title, HTML and address of a page, by the usual path of Wikipedia's books or by the book's list of titles."""
        wanted = f"the page {title!r}"
        name = title.replace(" ", "_")
        for path in (name, f"A/{name}"):  # the second in books from before 2021
            reply = self._client.get(f"{self.url}/content/{quote(self.book.name)}/{quote(path)}", {}, wanted)
            if reply.status == 200 and "html" in reply.content_type:
                return {"title": _title_of(reply, title), "html": reply.text, "url": reply.url}
        for path in self._suggested(title):
            reply = self._client.get(f"{self.url}/content/{quote(self.book.name)}/{quote(path)}", {}, wanted)
            if reply.status == 200 and "html" in reply.content_type:
                return {"title": title, "html": reply.text, "url": reply.url}
        msg = f"expected {wanted} in the book {self.book.name!r} at {self.url}, found none; search for its title"
        raise PageNotFoundError(msg)

    def _suggested(self, title: str) -> Iterator[str]:
        """The paths of pages with exactly this title."""
        asked = {"content": self.book.name, "term": title, "count": "10"}
        wanted = f"titles like {title!r}"
        for item in json_list(self._get("/suggest", asked, wanted), wanted):
            path = item.get("path") if isinstance(item, dict) and item.get("value") == title else None
            if isinstance(path, str):
                yield path

    def _get(self, path: str, parameters: Mapping[str, str], wanted: str) -> HttpReply:
        reply = self._client.get(f"{self.url}{path}", parameters, wanted)
        if reply.status != 200:
            found = f"HTTP {reply.status}"
            msg = f"expected {wanted} at {self.url}{path}, found {found}; check that the address is a Kiwix server's"
            raise CorpusError(msg)
        return reply


def _title_of(reply: HttpReply, asked: str) -> str:
    """The title of the page in the reply, from the last part of its address after redirects."""
    last = clean_line(unquote(urlsplit(reply.url).path.rpartition("/")[2]).replace("_", " "))
    return asked if "/" in asked else last or asked


def _xml(reply: HttpReply, root: str, wanted: str) -> Element:
    """The root element of the reply. Entity declarations are refused. Raises CorpusError."""
    from xml.etree.ElementTree import ParseError, XMLParser

    found = "a document type declaration"
    if b"<!DOCTYPE" not in reply.content and b"<!ENTITY" not in reply.content:
        parser = XMLParser()  # noqa: S314 - nothing can be declared
        try:
            parser.feed(reply.content)
            element: Element = parser.close()
        except ParseError as error:
            found = f"XML that cannot be read ({error})"
        else:
            if element.tag.rpartition("}")[2] == root:
                return element
            found = f"the element <{element.tag[:40]}>"
    msg = f"expected {wanted} as XML from {urlsplit(reply.url).netloc}, found {found}; check the address"
    raise CorpusError(msg)


def _books(feed: Element) -> Iterator[Book]:
    for entry in feed.iter(f"{_ATOM}entry"):
        links = [link for link in entry.iter(f"{_ATOM}link") if link.get("type") == "text/html"]
        address = urlsplit(urljoin("/", links[0].get("href", ""))).path if links else ""
        name = unquote(address.rstrip("/").rpartition("/")[2])
        count = entry.findtext(f"{_ATOM}articleCount") or ""
        yield Book(
            name=name or clean_line(entry.findtext(f"{_ATOM}name") or ""),
            title=clean_line(entry.findtext(f"{_ATOM}title") or ""),
            language=clean_line(entry.findtext(f"{_ATOM}language") or ""),
            uuid=clean_line(entry.findtext(f"{_ATOM}id") or ""),
            n_articles=int(count) if count.isascii() and count.isdigit() else 0,
        )
