"""A client for the action API of a MediaWiki server, such as Wikipedia's: pages at a revision or a date, and search."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.wikipedia.article import html_markdown
from ragqa.corpus.wikipedia.fetching import (
    REQUESTS_PER_SECOND,
    HttpReply,
    PageCache,
    PoliteClient,
    checked_address,
    json_object,
)
from ragqa.errors import ConfigError, CorpusError

EXAMPLE: Final = "https://en.wikipedia.org/w/api.php"
MAX_LAG_SECONDS: Final = 5  # no request is served while the server's replicas lag behind by more
MAX_CONTINUATIONS: Final = 50
MAX_REDIRECTS: Final = 3  # followed from an old revision
MAX_RESULTS_A_REQUEST: Final = 50
_TRY_LATER: Final = ("maxlag", "ratelimited", "readonly", "internal_api_error")
_REDIRECT = re.compile(r'class="redirectMsg".{0,400}?<a [^<>]{0,400}?title="([^"<>]+)"', re.DOTALL)


class PageNotFoundError(CorpusError):
    """The wiki has no such page or revision, or had none at that time. Shown with the requested title."""


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page in Markdown; ``title`` is the wiki's, after redirects. ``revision`` is 0 if the server has none."""

    title: str
    text: str
    revision: int
    url: str


class MediaWiki:
    """The pages of one wiki. Threads may share it and then wait for each other."""

    def __init__(self, url: str, cache_folder: Path, *, requests_per_second: float = REQUESTS_PER_SECOND) -> None:
        """``url`` is the address of ``api.php``. Pages are cached in ``cache_folder`` and requested once.

        Raises ConfigError if ``url`` is not an address.
        """
        self.url = checked_address(url, EXAMPLE)
        self._cache = PageCache(cache_folder)
        self._client = PoliteClient(self.url, requests_per_second)

    def page(self, title: str, revision: int | None = None, as_of: date | str | None = None) -> WikiPage:
        """The page at this revision, at this moment or now; redirects are followed.

        ``as_of`` is a date (its first second in UTC), a datetime (in UTC if it has no zone), or either in ISO format.
        It is ignored if ``revision`` is given. Raises PageNotFoundError, CorpusError if the server does not answer,
        ConfigError if ``as_of`` is not a date.
        """
        title = _checked_title(title)
        moment = moment_of(as_of) if as_of is not None else None
        for _ in range(MAX_REDIRECTS + 1):
            number = revision or self._revision_at(title, moment)
            found = self._parsed(title, number)
            target = _REDIRECT.search(found["html"])
            if target is None:
                break
            title, revision = clean_line(html.unescape(target[1])), None
        else:
            msg = f"expected a page, found more than {MAX_REDIRECTS} redirects to {title!r}; name the last one's target"
            raise CorpusError(msg)
        text = html_markdown(found["html"], found["title"])
        return WikiPage(found["title"], text, number, self._address(found["title"], number))

    def search(self, query: str, limit: int = 10) -> tuple[str, ...]:
        """The titles of at most ``limit`` pages that the wiki's search finds, best first."""
        if not query.strip() or limit < 1:
            return ()
        asked = {"action": "query", "list": "search", "srsearch": query, "srprop": ""}
        asked["srlimit"] = str(min(limit, MAX_RESULTS_A_REQUEST))
        titles: list[str] = []
        for answer in self._answers(asked, f"pages for the search {query[:60]!r}"):
            found = _member(_member(answer, "query", dict), "search", list)
            titles += [clean_line(str(hit["title"])) for hit in found if isinstance(hit, dict) and hit.get("title")]
            if len(titles) >= limit or not found:
                break
        return tuple(dict.fromkeys(titles))[:limit]

    def _revision_at(self, title: str, moment: datetime | None) -> int:
        """The number of the page's last revision, up to ``moment`` if given; cached if that is in the past."""
        is_past = moment is not None and moment < datetime.now(UTC)
        stamp = f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""
        key = (self.url, title, f"as of {stamp}")
        if is_past and (cached := self._cache.get(*key)) and isinstance(cached.get("revision"), int):
            return int(cached["revision"])
        wanted = f"a revision of the page {title!r}" + (f" of {stamp} or before" if stamp else "")
        asked = {"action": "query", "prop": "revisions", "titles": title, "redirects": "1", "rvprop": "ids|timestamp"}
        asked |= {"rvlimit": "1", "rvdir": "older"} | ({"rvstart": stamp} if stamp else {})
        number = 0
        for answer in self._answers(asked, wanted):
            pages = _member(_member(answer, "query", dict), "pages", list)
            page = pages[0] if pages and isinstance(pages[0], dict) else {}
            if page.get("invalid"):
                reason = clean_line(str(page.get("invalidreason", "")))[:200]
                msg = f"expected a page's title, found {title!r}, which this wiki refuses: {reason}; correct the title"
                raise PageNotFoundError(msg)
            if page.get("missing") or not page:
                msg = f"expected {wanted}, found that {self.url} has no such page; check the title, or search for it"
                raise PageNotFoundError(msg)
            revisions = page.get("revisions")
            if isinstance(revisions, list) and revisions and isinstance(revisions[0], dict):
                number = int(revisions[0].get("revid", 0))
                break
        if not number:
            msg = f"expected {wanted}, found that the page was written later; choose a later date or another page"
            raise PageNotFoundError(msg)
        if is_past:
            self._cache.put({"revision": number}, *key)
        return number

    def _parsed(self, title: str, revision: int) -> dict[str, Any]:
        """The title and HTML of a revision; cached, as a revision never changes."""
        key = (self.url, title, str(revision))
        cached = self._cache.get(*key)
        if cached and isinstance(cached.get("html"), str) and isinstance(cached.get("title"), str):
            return cached
        wanted = f"the page {title!r} at revision {revision}"
        asked = {"action": "parse", "oldid": str(revision), "prop": "text", "disableeditsection": "1"}
        parsed = _member(self._ask({**asked, "disabletoc": "1"}, wanted), "parse", dict)
        value = {"title": clean_line(str(parsed.get("title") or title)), "html": _member(parsed, "text", str)}
        self._cache.put(value, *key)
        return value

    def _answers(self, parameters: Mapping[str, str], wanted: str) -> Iterator[dict[str, Any]]:
        """Yields the reply and its continuations."""
        further: dict[str, str] = {}
        for _ in range(MAX_CONTINUATIONS):
            answer = self._ask({**parameters, **further}, wanted)
            yield answer
            again = answer.get("continue")
            if not isinstance(again, dict) or (now := {str(k): str(v) for k, v in again.items()}) == further:
                return
            further = now

    def _ask(self, parameters: Mapping[str, str], wanted: str) -> dict[str, Any]:
        """The API's reply. Raises PageNotFoundError or CorpusError with the API's own message if it is an error."""
        common = {"format": "json", "formatversion": "2", "errorformat": "bc", "maxlag": str(MAX_LAG_SECONDS)}
        reply = self._client.get(self.url, {**common, **parameters}, wanted, _asks_to_try_later)
        answer = json_object(reply, wanted)
        code, info = _api_error(answer)
        if code:
            is_missing = code in ("nosuchrevid", "missingtitle", "invalidtitle", "missingcontent-revid", "nosuchpageid")
            kind = PageNotFoundError if is_missing else CorpusError
            msg = f"expected {wanted} from {self.url}, found {code} ({info}); check the title, revision or search"
            raise kind(msg)
        return answer

    def _address(self, title: str, revision: int) -> str:
        parts = urlsplit(self.url)
        path = parts.path.removesuffix("api.php") + "index.php"
        query = f"title={quote(title.replace(' ', '_'))}&oldid={revision}"
        return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


def moment_of(as_of: date | str) -> datetime:
    """The moment in UTC of a date (its first second), a datetime, or either in ISO format. Raises ConfigError."""
    if isinstance(as_of, str):
        try:
            as_of = datetime.fromisoformat(as_of.strip())
        except ValueError as error:
            found = str(as_of)[:40]
            msg = f"a moment must be a date or time like 2023-11-01T12:00:00Z, found {found!r}; correct it"
            raise ConfigError(msg) from error
    if not isinstance(as_of, datetime):
        as_of = datetime.combine(as_of, time(), UTC)
    return as_of.replace(tzinfo=UTC) if as_of.tzinfo is None else as_of.astimezone(UTC)


def _checked_title(title: str) -> str:
    cleaned = clean_line(title.replace("_", " "))
    if not cleaned or "|" in cleaned or len(cleaned.encode("utf-8", "replace")) > 500:
        msg = f"expected the title of one page, found {title[:80]!r}; correct it"
        raise PageNotFoundError(msg)
    return cleaned


def _api_error(answer: Mapping[str, Any]) -> tuple[str, str]:
    error = answer.get("error")
    if not isinstance(error, dict):
        return "", ""
    return str(error.get("code") or "error")[:80], clean_line(str(error.get("info", "")))[:200]


def _asks_to_try_later(reply: HttpReply) -> str:
    """The message of a reply with a temporary error, else ""."""
    if b'"error"' not in reply.content[:2000]:
        return ""
    try:
        answer = json.loads(reply.content)
    except (ValueError, RecursionError):
        return ""
    code, info = _api_error(answer) if isinstance(answer, dict) else ("", "")
    return f"{code} ({info})" if code.startswith(_TRY_LATER) else ""


def _member(answer: Mapping[str, Any], name: str, kind: type) -> Any:  # noqa: ANN401 - of that kind
    value = answer.get(name)
    if not isinstance(value, kind):
        held = ", ".join(list(answer)[:5]) or "nothing"
        msg = f"expected the API's answer to hold {name!r}, found {held[:100]}; check that the address is an api.php"
        raise CorpusError(msg)
    return value
