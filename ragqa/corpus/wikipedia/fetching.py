"""Fetches pages from other people's servers: slowly, one request at a time, and each page only once."""

from __future__ import annotations

import gzip
import json
import logging
import time
import weakref
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Final
from urllib.parse import urlsplit

from ragqa.errors import ConfigError, CorpusError
from ragqa.infra.cleaning import plain_line
from ragqa.infra.files import replacing
from ragqa.infra.http import (
    MAX_DETAIL_CHARS,
    Fault,
    exchange,
    is_address,
    may_pass,
    pause_seconds,
    retry_after_seconds,
    tried,
)
from ragqa.infra.version import __version__

logger = logging.getLogger(__name__)


class PageCache:
    """A cache of files below ``folder``, named by the sha256 of their key. It may be deleted at any time.

    Files are written aside and moved into place, so several processes may share it. If the disk fails, pages are only
    requested again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, *key: str) -> dict[str, Any] | None:
        """The value cached under this key; None if there is none or it cannot be read."""
        try:
            value = json.loads(gzip.decompress(self._path(key).read_bytes()))
        except (OSError, EOFError, ValueError, zlib.error):
            return None
        return value if isinstance(value, dict) and value.pop("key", None) == list(key) else None

    def put(self, value: dict[str, Any], *key: str) -> None:
        """Caches the value under this key; a failure is only logged."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path, shared=True) as new:
                new.write_bytes(gzip.compress(json.dumps({**value, "key": key}).encode(), 6, mtime=0))
        except OSError as error:
            logger.warning("%s could not be cached in %s: %s", key[1] if len(key) > 1 else key, self.folder, error)

    def _path(self, key: tuple[str, ...]) -> Path:
        digest = sha256(json.dumps(key).encode()).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json.gz"


REQUESTS_PER_SECOND: Final = 5.0
TRIES: Final = 6
TIMEOUT_SECONDS: Final = 60.0
CONNECT_TIMEOUT_SECONDS: Final = 10.0
MAX_PAUSE_SECONDS: Final = 120.0  # even if the server asks for more
MAX_ANSWER_BYTES: Final = 64 * 2**20
MAX_REDIRECTS: Final = 5
USER_AGENT: Final = f"ragqa/{__version__} (question answering over passages; one request at a time)"

_sleep = time.sleep  # replaced in tests


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A server's complete reply; ``url`` is its address after redirects."""

    status: int
    content: bytes
    url: str
    content_type: str = ""
    retry_after_seconds: float = 0.0

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


class PoliteClient:
    """Sends GET requests to one server, one at a time. Threads may share it: a request waits for the one before."""

    def __init__(self, address: str, requests_per_second: float = REQUESTS_PER_SECOND) -> None:
        import httpx2  # takes 0.1 s, so it is imported only here

        if not 0 < requests_per_second <= 1000:
            msg = f"requests per second must be above 0 and at most 1000, found {requests_per_second}; change it"
            raise ConfigError(msg)
        self._host = urlsplit(address).netloc
        self._interval = 1 / requests_per_second
        self._next_at = 0.0
        self._lock = Lock()
        self._client = httpx2.Client(
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "gzip"},
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
        )
        self.close = weakref.finalize(self, self._client.close)

    def get(
        self,
        url: str,
        parameters: Mapping[str, str],
        wanted: str,
        refusal: Callable[[HttpReply], str] = lambda _reply: "",
    ) -> HttpReply:
        """The server's reply with a status below 500, other than 408 and 429. Errors say that ``wanted`` was expected.

        ``refusal`` returns the message of a reply that asks the client to come back later, else "". There are up to 6
        tries, with pauses that double and last at least as long as Retry-After asks for (at most 2 minutes). Raises
        CorpusError.
        """
        pause = partial(pause_seconds, max_seconds=MAX_PAUSE_SECONDS)
        attempt = partial(self._attempt, url, parameters, refusal)
        outcome, n_made = tried(attempt, TRIES, pause, lambda seconds: _sleep(seconds), self._host)
        if isinstance(outcome, Fault):
            msg = (
                f"expected {wanted} from {self._host}, found {outcome.found} in try {n_made} of {TRIES}; "
                "check the address and the network, or try again later: pages already fetched are cached"
            )
            raise CorpusError(msg)
        return outcome

    def _attempt(
        self, url: str, parameters: Mapping[str, str], refusal: Callable[[HttpReply], str]
    ) -> HttpReply | Fault:
        """The reply, or a fault, which is always treated as temporary."""
        with self._lock:
            if (early := self._next_at - time.monotonic()) > 0:
                _sleep(early)
            sent = {"params": dict(parameters) or None}
            answer = exchange(self._client, "GET", url, MAX_ANSWER_BYTES, TIMEOUT_SECONDS, sent)
            self._next_at = time.monotonic() + self._interval
        if isinstance(answer, Fault):
            return Fault(plain_line(answer.found, MAX_DETAIL_CHARS), may_pass=True)
        response, content = answer
        status, headers = response.status_code, response.headers
        seconds = retry_after_seconds(headers.get("retry-after", ""))
        reply = HttpReply(status, content, str(response.url), headers.get("content-type", ""), seconds)
        found = f"HTTP {status}" if may_pass(status) else refusal(reply)
        return Fault(found, may_pass=True, retry_after_seconds=seconds) if found else reply


def json_object(reply: HttpReply, wanted: str) -> dict[str, Any]:
    """The JSON object in the reply. Raises CorpusError for other content, which mostly means a wrong address."""
    value = _json(reply)
    if not isinstance(value, dict):
        raise _no_json(reply, wanted)
    return value


def json_list(reply: HttpReply, wanted: str) -> list[Any]:
    """The JSON list in the reply. Raises CorpusError for other content."""
    value = _json(reply)
    if not isinstance(value, list):
        raise _no_json(reply, wanted)
    return value


def _json(reply: HttpReply) -> object:
    try:
        return json.loads(reply.content)
    except (ValueError, RecursionError):
        return None


def _no_json(reply: HttpReply, wanted: str) -> CorpusError:
    host, found = urlsplit(reply.url).netloc, " ".join(reply.text[:80].split())
    return CorpusError(
        f"expected {wanted} as JSON from {host}, found HTTP {reply.status} and {found!r}; check the address"
    )


def checked_address(url: str, example: str) -> str:
    """The address without a slash at its end. Raises ConfigError if it is invalid or contains a login, ? or #."""
    if not is_address(url):
        msg = f"a wiki's address must be like {example}, without a login, ? or #, found {url[:80]!r}; correct it"
        raise ConfigError(msg)
    return url.rstrip("/")
