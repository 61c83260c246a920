"""Real HTTP servers on 127.0.0.1 that answer as MediaWiki's action API and as kiwix-serve do, and fail on demand.

::

    with MediaWikiServer({"Lake": [Revision(7, "2023-10-01T00:00:00Z", "<p>Deep.</p>")]}) as server:
        server.failures += [Failure(429, retry_after="1"), api_failure("maxlag")]
        MediaWiki(server.url, folder).page("Lake")

Each request is met by the next failure while there is one. The shapes of answers are those of MediaWiki 1.42 with
``formatversion=2`` and of libkiwix 13 (its templates catalog_v2_entries.xml and search_result.xml).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Revision:
    number: int
    timestamp: str
    html: str


@dataclass(frozen=True)
class Failure:
    """Sent in place of an answer; status 0 cuts the connection."""

    status: int
    body: bytes = b"<html>busy</html>"
    retry_after: str = ""


def api_failure(
    code: str, info: str = "Waiting for a database server: 8.2 seconds lagged.", status: int = 200
) -> Failure:
    return Failure(status, json.dumps({"error": {"code": code, "info": info, "lag": 8.2}}).encode(), "1")


@dataclass(frozen=True)
class Asked:
    path: str
    query: dict[str, str]
    headers: dict[str, str]


@dataclass
class Answer:
    status: int
    body: bytes
    content_type: str = "application/json; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


class _Server:
    """Runs from ``with`` to the end of the block; ``requests`` holds what came in."""

    def __init__(self) -> None:
        self.requests: list[Asked] = []
        self.failures: list[Failure] = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError

    def __enter__(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                asked = Asked(
                    unquote(parts.path),
                    dict(parse_qsl(parts.query, keep_blank_values=True)),
                    {name.lower(): value for name, value in self.headers.items()},
                )
                with outer._lock:
                    outer.requests.append(asked)
                    failure = outer.failures.pop(0) if outer.failures else None
                    outer._now += 1
                    outer.most_at_once = max(outer.most_at_once, outer._now)
                try:
                    self._send(failure, asked)
                finally:
                    with outer._lock:
                        outer._now -= 1

            def _send(self, failure: Failure | None, asked: Asked) -> None:
                if failure and not failure.status:
                    self.close_connection = True
                    self.connection.close()
                    return
                if failure:
                    headers = {"Retry-After": failure.retry_after} if failure.retry_after else {}
                    answer = Answer(failure.status, failure.body, "text/html", headers)
                else:
                    answer = outer.answer(asked)
                self.send_response(answer.status)
                headers = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.body))}
                for name, value in {**headers, **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_words: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_words: object) -> None:
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class MediaWikiServer(_Server):
    """A wiki of these pages (revisions oldest first) with redirects of today, and 2 results a search request."""

    RESULTS = 2

    def __init__(self, pages: dict[str, list[Revision]], redirects: dict[str, str] | None = None) -> None:
        super().__init__()
        self.pages, self.redirects = pages, redirects or {}
        self.splits_revisions = False  # the first answer holds the page only, its continuation the revision

    @property
    def url(self) -> str:
        return f"{self.root}/w/api.php"

    def answer(self, asked: Asked) -> Answer:
        if asked.path != "/w/api.php":
            return Answer(404, b"<html>no such page</html>", "text/html")
        query = asked.query
        if query.get("format") != "json" or query.get("formatversion") != "2":
            return Answer(200, b"<html>documentation</html>", "text/html")
        if query.get("action") == "parse":
            value = self._parse(query)
        elif query.get("list") == "search":
            value = self._search(query)
        else:
            value = self._revisions(query)
        return Answer(200, json.dumps(value).encode())

    def _parse(self, query: dict[str, str]) -> dict[str, Any]:
        for title, revisions in self.pages.items():
            for revision in revisions:
                if str(revision.number) == query["oldid"]:
                    html = f'<div class="mw-content-ltr mw-parser-output" lang="en" dir="ltr">{revision.html}</div>'
                    return {"parse": {"title": title, "pageid": 1, "revid": revision.number, "text": html}}
        return {
            "error": {"code": "nosuchrevid", "info": f"There is no revision with ID {query['oldid']}.", "docref": ""}
        }

    def _search(self, query: dict[str, str]) -> dict[str, Any]:
        words = query["srsearch"].lower()
        titles = [title for title in self.pages if words in title.lower()]
        first = int(query.get("sroffset", 0))
        last = first + min(self.RESULTS, int(query["srlimit"]))
        found = [{"ns": 0, "title": title, "pageid": place} for place, title in enumerate(titles)][first:last]
        value: dict[str, Any] = {"query": {"searchinfo": {"totalhits": len(titles)}, "search": found}}
        if last < len(titles):
            value["continue"] = {"sroffset": last, "continue": "-||"}
        else:
            value["batchcomplete"] = True
        return value

    def _revisions(self, query: dict[str, str]) -> dict[str, Any]:
        title = query["titles"]
        found: dict[str, Any] = {}
        if any(character in title for character in "<>[]{}"):
            reason = 'The requested page title contains invalid characters: "<".'
            return {
                "batchcomplete": True,
                "query": {"pages": [{"title": title, "invalidreason": reason, "invalid": True}]},
            }
        first = title[:1].upper() + title[1:]
        if first != title:
            found["normalized"] = [{"fromencoded": False, "from": title, "to": first}]
        if first in self.redirects and query.get("redirects"):
            found["redirects"] = [{"from": first, "to": self.redirects[first]}]
            first = self.redirects[first]
        if first not in self.pages:
            return {"batchcomplete": True, "query": {**found, "pages": [{"ns": 0, "title": first, "missing": True}]}}
        page: dict[str, Any] = {"pageid": 1, "ns": 0, "title": first}
        if self.splits_revisions and "rvcontinue" not in query:
            again = {"rvcontinue": "20231001|7", "continue": "||"}
            return {"continue": again, "query": {**found, "pages": [page]}}
        start = query.get("rvstart", "9999")
        before = [revision for revision in self.pages[first] if revision.timestamp <= start]
        if before:
            page["revisions"] = [{"revid": before[-1].number, "parentid": 0, "timestamp": before[-1].timestamp}]
        return {"batchcomplete": True, "query": {**found, "pages": [page]}}


class KiwixServer(_Server):
    """kiwix-serve with these books: name -> path -> (title, HTML), or path -> the path it leads to."""

    def __init__(self, books: dict[str, dict[str, tuple[str, str] | str]], prefix: str = "") -> None:
        super().__init__()
        self.books, self.prefix = books, prefix
        self.decorate: Callable[[str], str] = lambda xml: xml

    @property
    def url(self) -> str:
        return self.root + self.prefix

    def answer(self, asked: Asked) -> Answer:
        path, query = asked.path.removeprefix(self.prefix), asked.query
        if path == "/catalog/v2/entries":
            return Answer(200, self.decorate(self._catalogue(query)).encode(), "application/atom+xml;charset=utf-8")
        if path == "/search" and query.get("books.name") in self.books:
            return Answer(200, self._search(query).encode(), "application/rss+xml; charset=utf-8")
        if path == "/suggest" and query.get("content") in self.books:
            return Answer(200, json.dumps(self._suggestions(query)).encode())
        parts = path.split("/", 3)
        if path.startswith("/content/") and len(parts) == 4 and parts[2] in self.books:
            entry = self.books[parts[2]].get(parts[3])
            if isinstance(entry, str):
                return Answer(302, b"", "text/html", {"Location": f"{self.prefix}/content/{parts[2]}/{quote(entry)}"})
            if entry:
                return Answer(200, entry[1].encode(), "text/html; charset=utf-8")
        return Answer(404, b"<html>Not Found</html>", "text/html")

    def _catalogue(self, query: dict[str, str]) -> str:
        first = int(query["start"])
        names = list(self.books)[first : first + int(query["count"])]
        entries = "".join(
            f"<entry><id>urn:uuid:{name}-1</id><title>Book {escape(name)}</title><language>eng</language>"
            f"<name>any</name><articleCount>{len(self.books[name])}</articleCount>"
            f'<link rel="http://opds-spec.org/image/thumbnail" href="/x" type="image/png"/>'
            f'<link type="text/html" href="{self.prefix}/content/{quote(name)}" /></entry>'
            for name in names
        )
        return f'<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'

    def _search(self, query: dict[str, str]) -> str:
        book, words = query["books.name"], query["pattern"].lower()
        found = [(path, page) for path, page in self.books[book].items() if not isinstance(page, str)]
        hits = [(path, page) for path, page in found if words in page[1].lower()]
        first = int(query["start"]) - 1
        items = "".join(
            f"<item><title>{escape(page[0])}</title><link>{self.prefix}/content/{book}/{quote(path)}</link></item>"
            for path, page in hits[first : first + int(query["pageLength"])]
        )
        return f'<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel>{items}</channel></rss>'

    def _suggestions(self, query: dict[str, str]) -> list[dict[str, str]]:
        pages = self.books[query["content"]].items()
        found = [(path, page) for path, page in pages if not isinstance(page, str)]
        paths = [
            {"value": page[0], "label": f"<b>{page[0]}</b>", "kind": "path", "path": path}
            for path, page in found
            if page[0].lower().startswith(query["term"].lower())
        ]
        return [*paths, {"value": query["term"], "label": f"containing '{query['term']}'...", "kind": "pattern"}]
