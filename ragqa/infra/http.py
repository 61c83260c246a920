"""The client of models behind an API: addresses, keys, retries, errors; and functions shared by all HTTP clients.

`ModelApi` requests embeddings and reranking scores. The key is sent only in the Authorization header. A server may
echo it, so all of the server's text passes through `_plain`. This uses httpx2 and not the `openai` package that writes
answers: that package limits neither the size of a reply nor the time of a slow one, has no reranking, and would need
every check below as well.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from ragqa.errors import ConfigError, ModelError
from ragqa.infra.cleaning import plain_line

if TYPE_CHECKING:
    import httpx2

FIRST_PAUSE_SECONDS: Final = 1.0  # before the second try; doubled before each further one
TRIES: Final = 5
TIMEOUT_SECONDS: Final = 60.0  # for a whole answer
CONNECT_TIMEOUT_SECONDS: Final = 10.0
MAX_PAUSE_SECONDS: Final = 30.0  # even if the server asks for more
MAX_ANSWER_BYTES: Final = 64 * 2**20  # 128 vectors of 4,096 numbers are some 12 MB
MAX_DETAIL_CHARS: Final = 200  # of a server's own text in a message

logger = logging.getLogger(__name__)
_sleep = time.sleep  # tests replace it
_chance = random.Random()  # noqa: S311 - no secret; its own: the process's one may be seeded by others, and compared
_Found = TypeVar("_Found")


def read_body(response: httpx2.Response, max_bytes: int, timeout_seconds: float) -> bytes:
    """The whole body. Raises ValueError if it is too long, httpx2.ReadTimeout if it arrives too slowly."""
    import httpx2

    until, content = time.monotonic() + timeout_seconds, bytearray()
    for piece in response.iter_bytes():
        content += piece
        if len(content) > max_bytes:
            raise ValueError(f"an answer of more than {max_bytes} bytes")
        if time.monotonic() > until:
            raise httpx2.ReadTimeout("the answer comes too slowly")
    return bytes(content)


def retry_after_seconds(header: str) -> float:
    """The seconds from now that a Retry-After header asks for, as a number or a date; 0 if it has neither."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", header):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return 0.0


def pause_seconds(
    n_tries: int, asked_seconds: float, max_seconds: float, first_seconds: float = FIRST_PAUSE_SECONDS
) -> float:
    """The pause after this many tries: doubled each time, at least ``asked_seconds``, with a little random jitter."""
    pause = max(first_seconds * 2.0 ** min(n_tries - 1, 60), asked_seconds)
    return min(pause * (1 + _chance.random() / 4), max_seconds)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a try failed, and whether another may succeed; ``retry_after_seconds`` is the pause the server asks for.

    ``error`` is the exception of the client, for callers that raise it again.
    """

    found: str
    next_step: str = ""
    may_pass: bool = False
    retry_after_seconds: float = 0.0
    error: Exception | None = None


def may_pass(status: int) -> bool:
    """Whether an error with this status is temporary, so that a later try may succeed."""
    return status in (408, 429) or status >= 500


def tried(
    attempt: Callable[[], _Found | Fault],
    n_tries: int,
    pause: Callable[[int, float], float],
    wait: Callable[[float], object],
    server: str,
) -> tuple[_Found | Fault, int]:
    """Tries until one succeeds or fails permanently, at most ``n_tries``; the last result and the number of tries.

    ``pause`` gives the seconds to ``wait`` from the number of tries and the pause that the server asks for.
    """
    n_made = 1
    while isinstance(outcome := attempt(), Fault) and outcome.may_pass and n_made < n_tries:
        seconds = pause(n_made, outcome.retry_after_seconds)
        logger.info("%s: %s; next try in %.1f s", server, outcome.found, seconds)
        wait(seconds)
        n_made += 1
    return outcome, n_made


def exchange(
    client: httpx2.Client, method: str, url: str, max_bytes: int, timeout_seconds: float, content: Mapping[str, Any]
) -> tuple[httpx2.Response, bytes] | Fault:
    """The server's answer of any status with its whole body; a `Fault` has the client's own words in ``found``."""
    import httpx2

    try:
        with client.stream(method, url, **content) as response:
            return response, read_body(response, max_bytes, timeout_seconds)
    except httpx2.TimeoutException:
        return Fault(f"no whole answer within {timeout_seconds:g} s", "try again later", may_pass=True)
    except Exception as error:  # a server can make the client raise anything; the user gets an explanation
        is_transport = isinstance(error, httpx2.TransportError)
        return Fault(f"{type(error).__name__}: {error}", may_pass=is_transport)


def is_address(url: str) -> bool:
    """Whether this is an address of a server without a login, ? or #."""
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return has_host and "@" not in parts.netloc and not set(url) & set("?# ") and url.isprintable()


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider's protocol, and the variables of its settings."""

    key_variable: str
    url_variable: str
    default_url: str
    is_voyage: bool  # requests say what a text is for, and that it may be truncated


PROVIDERS: Final = {
    "openai": Provider("OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1", is_voyage=False),
    "voyage": Provider("VOYAGE_API_KEY", "VOYAGE_BASE_URL", "https://api.voyageai.com/v1", is_voyage=True),
}


@dataclass(frozen=True, slots=True)
class Service:
    """The service requested from a server, with the words for its errors."""

    kind: str  # "an encoder"
    path: str  # "/embeddings"
    server: str  # "embedding server"
    serves: str  # "embeddings"
    instead: str  # the alternative to it, the end of each message


def missing_key(name: str, environ: Mapping[str, str] | None = None) -> str:
    """The variable in which this model's key is missing; empty if it is set, or no key is needed."""
    env = os.environ if environ is None else environ
    provider = PROVIDERS.get(name.partition(":")[0])
    is_set = provider is None or any((env.get(v) or "").strip() for v in (provider.key_variable, provider.url_variable))
    return "" if provider is None or is_set else provider.key_variable


class ModelApi:
    """One model behind one server: sends requests, retries, returns checked answers. Safe between threads."""

    def __init__(self, name: str, service: Service, environ: Mapping[str, str] | None = None) -> None:
        """A model called ``openai:MODEL`` or ``voyage:MODEL``; makes no request yet.

        Address and key are read from ``environ`` (None: the process's own). Raises ModelError for a name of another
        form, ConfigError for an invalid address or key.
        """
        import httpx2  # takes 0.1 s, needed only for an API

        kind, _, self.model = name.partition(":")
        if kind not in PROVIDERS or not self.model.strip() or not self.model.isprintable():
            msg = f"expected {service.kind} called openai:MODEL or voyage:MODEL, found {name!r}; name one, "
            raise ModelError(msg + service.instead)
        env = os.environ if environ is None else environ
        self.provider = provider = PROVIDERS[kind]
        self._service = service
        self.base_url = _checked_url(env.get(provider.url_variable) or provider.default_url, provider)
        self._host = urlsplit(self.base_url).netloc
        self._key = _checked_key(env.get(provider.key_variable) or "", provider)
        self.identity = (kind, self.base_url, self.model)  # all that is known of the weights
        self._client = httpx2.Client(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=httpx2.Timeout(TIMEOUT_SECONDS, connect=CONNECT_TIMEOUT_SECONDS),
        )
        self.close = weakref.finalize(self, self._client.close)

    def post(self, body: Mapping[str, Any], expected: str, longest: int, checked: Callable[[bytes], _Found]) -> _Found:
        """The result of ``checked`` on the answer to ``body``; ``checked`` raises ValueError to refuse an answer.

        ``expected`` ("3 vectors") and ``longest``, the characters of the longest text sent, are for messages. Raises
        ModelError, and ConfigError if the server needs a key and none is set.
        """
        provider, service = self.provider, self._service
        if not self._key and self.base_url == provider.default_url:
            msg = f"{self.base_url} wants a key, found none; set {provider.key_variable}, {service.instead}"
            raise ConfigError(msg)
        attempt = partial(self._attempt, {"model": self.model, **body}, longest, checked)
        pause = partial(pause_seconds, max_seconds=MAX_PAUSE_SECONDS)
        outcome, n_made = tried(attempt, TRIES, pause, _sleep, self._host)
        if isinstance(outcome, Fault):
            msg = (
                f"expected {expected} by {self.model!r} from the {service.server} at {self._host}, "
                f"found {outcome.found} in try {n_made} of {TRIES}; {outcome.next_step}, {service.instead}"
            )
            raise ModelError(msg)  # not chained: the client's exceptions may hold a key that the server echoed
        return outcome

    def _attempt(self, body: Mapping[str, Any], longest: int, checked: Callable[[bytes], _Found]) -> _Found | Fault:
        service = self._service
        is_right = f"check that {self.provider.url_variable} names a server of {service.serves} (it often ends in /v1)"
        address = f"{self.base_url}{service.path}"
        answer = exchange(self._client, "POST", address, MAX_ANSWER_BYTES, TIMEOUT_SECONDS, {"json": body})
        if isinstance(answer, Fault):
            next_step = answer.next_step or f"check that it runs, and {is_right}"
            return replace(answer, found=self._plain(answer.found), next_step=next_step)
        response, content = answer
        if response.status_code != 200:
            return self._refusal(response, content, longest)
        try:
            return checked(content)
        except ValueError as error:
            return Fault(self._plain(str(error)), is_right)

    def _refusal(self, response: httpx2.Response, content: bytes, longest: int) -> Fault:
        status, key, url = response.status_code, self.provider.key_variable, self.provider.url_variable
        next_step = {
            401: f"check {key}",
            403: f"check that {key} may use this model",
            404: f"check the model name and {url} (it often ends in /v1)",
            429: "wait a minute and try again",
        }.get(status, "try again later")
        if status in (400, 413, 422):
            next_step = f"check the model name and the texts' lengths (up to {longest:,} characters here)"
        retry_after = retry_after_seconds(response.headers.get("retry-after", ""))
        return Fault(f"HTTP {status} ({self._plain(_message(content))})", next_step, may_pass(status), retry_after)

    def _plain(self, text: str) -> str:
        return plain_line(text, MAX_DETAIL_CHARS, self._key)


def sendable(text: str) -> str:
    """The text in a form that APIs accept: encodable as UTF-8 and not empty."""
    return text.encode("utf-8", "replace").decode() or " "


def batches(texts: Sequence[str], most: int, max_chars: int, extra_chars: int = 0) -> Iterator[list[str]]:
    """The texts in their order, at most ``most`` and within ``max_chars`` together; a longer text goes alone.

    ``extra_chars`` are counted with each text.
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        more = extra_chars + len(text)
        if batch and (len(batch) == most or size + more > max_chars):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += more
    if batch:
        yield batch


def items_in_order(content: bytes, n_texts: int, names: tuple[str, ...] = ("data",)) -> list[dict[str, Any]]:
    """The answer's items in the order of the texts sent, from its list under one of ``names``, by their indexes.

    Raises ValueError if it is not JSON, has no such list, or not exactly one item for each text.
    """
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError(f"an answer that is not JSON: {_message(content)}") from None
    lists = answer if isinstance(answer, dict) else {}
    name = next((name for name in names if isinstance(lists.get(name), list)), None)
    if name is None:
        raise ValueError(f"an answer without a list called {' or '.join(names)}: {_message(content)}")
    items = lists[name]
    indexed = [item for item in items if isinstance(item, dict) and type(item.get("index")) is int]
    by_index: dict[int, dict[str, Any]] = {item["index"]: item for item in indexed}
    if len(items) != n_texts or by_index.keys() != set(range(n_texts)):
        raise ValueError(f"{len(items)} items of {name}, {len(by_index)} of them with an index of its own")
    return [by_index[index] for index in range(n_texts)]


def _message(content: bytes) -> str:
    """The server's error message, else its whole text; only the length of a long text, for a cut might halve a key."""
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
    if not is_address(url):
        raise ConfigError(
            f"{provider.url_variable} must be an address like http://127.0.0.1:11434/v1 without a login, ? or #, "
            "found another; set it again"
        )
    return url.rstrip("/")
