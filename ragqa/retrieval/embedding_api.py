"""One embedding server over HTTP: what is sent, when it is tried again, what of an answer is believed.

The key goes nowhere but into the Authorization header; a server may echo it: none of its words leave without `_plain`.
"""

from __future__ import annotations

import json
import logging
import re
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import numpy as np

from ragqa.cleaning import without_controls
from ragqa.errors import ConfigError, ModelError
from ragqa.http_client import pause_seconds, read_body, retry_after_seconds
from ragqa.protocols import FloatMatrix

if TYPE_CHECKING:
    import httpx2

__all__ = ["INSTEAD", "PROVIDERS", "EmbeddingApi", "Provider", "Role"]

Role = Literal["document", "query"]

TRIES: Final = 5
TIMEOUT_SECONDS: Final = 60.0  # for a whole answer
CONNECT_TIMEOUT_SECONDS: Final = 10.0
MAX_PAUSE_SECONDS: Final = 30.0  # whatever the server asks for
MAX_ANSWER_BYTES: Final = 64 * 2**20  # 128 vectors of 4,096 numbers are some 12 MB
MAX_DETAIL_CHARS: Final = 200  # of a server's own words
INSTEAD: Final = "or use all-MiniLM-L6-v2, which comes with ragqa"
_KEY_LIKE: Final = re.compile(r"\b(?:sk|pa)-[\w*.-]{6,}|\bBearer\s+[^\s'\",}]+", re.IGNORECASE)

logger = logging.getLogger(__name__)
_sleep = time.sleep  # tests put another in


@dataclass(frozen=True, slots=True)
class Provider:
    """Whose protocol is spoken, and where its settings are read."""

    key_variable: str
    url_variable: str
    default_url: str
    has_roles: bool  # it is told whether a text is a passage or a question


PROVIDERS: Final = {
    "openai": Provider("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1", has_roles=False),
    "voyage": Provider("VOYAGE_API_KEY", "VOYAGE_BASE_URL", "https://api.voyageai.com/v1", has_roles=True),
}


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a try gave no vectors, in words that may be shown, and whether another try may."""

    found: str
    next_step: str
    may_pass: bool = False
    retry_after_seconds: float = 0.0


class EmbeddingApi:
    """One model of one server: sends texts, tries again, checks what comes back. Safe to use from several threads."""

    def __init__(self, provider: Provider, model: str, environ: Mapping[str, str]) -> None:
        import httpx2  # 0.1 s: only those who ask an API pay for it

        self._provider, self._model = provider, model
        self.base_url = _checked_url(environ.get(provider.url_variable) or provider.default_url, provider)
        self._host = urlsplit(self.base_url).netloc
        self._key = _checked_key(environ.get(provider.key_variable) or "", provider)
        self._client = httpx2.Client(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
        )
        self.close = weakref.finalize(self, self._client.close)

    def embed(self, texts: Sequence[str], role: Role) -> FloatMatrix:
        """float32 array of shape (n_texts, dimension), rows of length 1. Raises ModelError, and ConfigError: no key."""
        if not self._key and self.base_url == self._provider.default_url:
            msg = f"{self.base_url} wants a key, found none; set {self._provider.key_variable}, {INSTEAD}"
            raise ConfigError(msg)
        option = {"input_type": role} if self._provider.has_roles else {"encoding_format": "float"}
        tries = 0
        while True:
            tries += 1
            outcome = self._attempt({"model": self._model, "input": list(texts), **option})
            if not isinstance(outcome, _Fault):
                return outcome
            if not outcome.may_pass or tries == TRIES:
                msg = (
                    f"expected {len(texts)} vectors by {self._model!r} from the embedding server at {self._host}, "
                    f"found {outcome.found} in try {tries} of {TRIES}; {outcome.next_step}, {INSTEAD}"
                )
                raise ModelError(msg)  # nothing chained: the client's exceptions may hold what the server echoed
            pause = pause_seconds(tries, outcome.retry_after_seconds, MAX_PAUSE_SECONDS)
            logger.info("%s: %s; next try in %.1f s", self._host, outcome.found, pause)
            _sleep(pause)

    def _attempt(self, body: Mapping[str, Any]) -> FloatMatrix | _Fault:
        import httpx2

        is_right = f"check that {self._provider.url_variable} names a server of embeddings (it often ends in /v1)"
        try:
            with self._client.stream("POST", f"{self.base_url}/embeddings", json=body) as response:
                content = read_body(response, MAX_ANSWER_BYTES, TIMEOUT_SECONDS)
        except httpx2.TimeoutException:
            return _Fault(f"no whole answer within {TIMEOUT_SECONDS:g} s", "try again later", may_pass=True)
        except Exception as error:  # a server can make the client raise anything; a reader gets it explained
            found = self._plain(f"{type(error).__name__}: {error}")
            return _Fault(found, f"check that it runs, and {is_right}", isinstance(error, httpx2.TransportError))
        if response.status_code != 200:
            return self._refusal(response, content, body["input"])
        try:
            return _rows(content, len(body["input"]))
        except ValueError as error:
            return _Fault(self._plain(str(error)), is_right)

    def _refusal(self, response: httpx2.Response, content: bytes, texts: Sequence[str]) -> _Fault:
        status, key, url = response.status_code, self._provider.key_variable, self._provider.url_variable
        next_step = {
            401: f"check {key}",
            403: f"check that {key} may use this model",
            404: f"check the model name and {url} (it often ends in /v1)",
            429: "wait a minute and try again",
        }.get(status, "try again later")
        if status in (400, 413, 422):
            next_step = f"check the model name and the texts' lengths (up to {max(map(len, texts)):,} characters here)"
        may_pass = status in (408, 429) or status >= 500
        retry_after = retry_after_seconds(response.headers.get("retry-after", ""))
        return _Fault(f"HTTP {status} ({self._plain(_message(content))})", next_step, may_pass, retry_after)

    def _plain(self, text: str) -> str:
        """The text on one line without the key or anything like one, at most `MAX_DETAIL_CHARS` long."""
        line = " ".join(without_controls(text).split())
        if len(self._key) >= 4:  # "x" as the key of a server that wants none is no secret
            line = line.replace(self._key, "[key]").replace(json.dumps(self._key)[1:-1], "[key]")
        line = _KEY_LIKE.sub("[key]", line)
        return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1] + "…"


def _rows(content: bytes, n_texts: int) -> FloatMatrix:
    """The answer's vectors in the order of the texts, float32 (n_texts, dimension), made 1 long. Raises ValueError."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        msg = f"an answer that is not JSON: {_message(content)}"
        raise ValueError(msg) from None
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        msg = f"an answer without a list called data: {_message(content)}"
        raise ValueError(msg)
    indexed = [item for item in items if isinstance(item, dict) and type(item.get("index")) is int]
    by_index: dict[int, Any] = {item["index"]: item.get("embedding") for item in indexed}
    if len(items) != n_texts or by_index.keys() != set(range(n_texts)):
        msg = f"{len(items)} items of data, {len(by_index)} of them with an index of its own"
        raise ValueError(msg)
    rows = [by_index[index] for index in range(n_texts)]
    if not all(isinstance(row, list) and {type(number) for number in row} <= {int, float} for row in rows):
        msg = "an embedding that is not a list of numbers"
        raise ValueError(msg)
    dimensions = sorted({len(row) for row in rows})
    if len(dimensions) > 1 or dimensions == [0]:
        msg = f"embeddings of {' and '.join(map(str, dimensions))} numbers"
        raise ValueError(msg)
    try:
        matrix = np.array(rows, np.float64)
    except OverflowError:  # an integer of 400 digits
        matrix = np.full((n_texts, 1), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        msg = "an embedding that is zero or not finite"
        raise ValueError(msg)
    return np.asarray(matrix / lengths, np.float32)


def _message(content: bytes) -> str:
    """What the server says went wrong, else all it says; nothing of a book, where cutting might cut a key in two."""
    text = content.decode("utf-8", "replace")
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return text if len(text) <= 100_000 else f"{len(text):,} characters"
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    for name in ("message", "detail"):
        if isinstance(error, dict) and isinstance(error.get(name), str):
            return str(error[name])
    return json.dumps(error, ensure_ascii=False)


def _checked_key(key: str, provider: Provider) -> str:
    key = key.strip()  # a key read from a file ends in a line feed
    if not (key.isascii() and key.isprintable()) or " " in key:
        msg = f"{provider.key_variable} must be printable ASCII without spaces, found other characters; copy it again"
        raise ConfigError(msg)
    return key


def _checked_url(url: str, provider: Provider) -> str:
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host or "@" in parts.netloc or parts.query or parts.fragment or not url.isprintable() or " " in url:
        msg = (
            f"{provider.url_variable} must be an address like http://127.0.0.1:11434/v1 without a login, ? or #, "
            "found another; set it again"
        )
        raise ConfigError(msg)
    return url.rstrip("/")
