"""One language model behind an OpenAI-compatible server: its address, its key, and the text it streams.

A local model is such a server, too: `ragqa.generation.local.server` starts it at the first question.
"""

from __future__ import annotations

import logging
import re
import weakref
from collections.abc import Generator as Pieces
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from ragqa.errors import ConfigError, GenerationError, RateLimitedError, RefusedError, TimedOutError
from ragqa.generation.llm.reply import Reply
from ragqa.generation.llm.reply_cache import reply_cache, request_key
from ragqa.generation.llm.retry import with_retries
from ragqa.generation.local.server import Local, ModelLease
from ragqa.generation.prompts import Message
from ragqa.infra.cleaning import plain_line
from ragqa.settings.config import GenerationConfig

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionChunk

MAX_DETAIL_CHARS = 301  # of a server's message

_INSTEAD = "or choose a generator without a language model"
_NEXT_STEP = {
    400: f"keep fewer passages, shorten the question or choose another model, {_INSTEAD}",
    401: f"check OPENAI_API_KEY, {_INSTEAD}",
    403: f"check that OPENAI_API_KEY may use this model, {_INSTEAD}",
    404: f"check the model name and that OPENAI_BASE_URL ends as the server wants it (often /v1), {_INSTEAD}",
    413: f"keep fewer passages, {_INSTEAD}",
}


def redacted(text: str, *secrets: str) -> str:
    """The text on one line without these or anything that looks like a key, at most `MAX_DETAIL_CHARS` long."""
    return plain_line(text[: 20 * MAX_DETAIL_CHARS], MAX_DETAIL_CHARS, *secrets)


@dataclass(frozen=True, slots=True)
class Server:
    """What error messages need to know about the server and how it is asked. ``base_url`` is without a login."""

    base_url: str
    model: str
    timeout_seconds: float
    n_tries: int
    password: str = field(default="", repr=False)  # of the login in its address, to be redacted in its messages

    @property
    def name(self) -> str:
        """Host and port, never user name, password or path."""
        parts = urlsplit(self.base_url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.hostname}{port}"

    def explained(self, error: Exception, key: str) -> GenerationError:
        """Translates the client's exception into ours; redacts the key in it, so that it may be chained."""
        import openai

        detail = redacted(_detail(error), key, self.password)
        _scrub(error, key, self.password)
        where = f"the language model server at {self.name}"
        if isinstance(error, openai.APITimeoutError):
            return TimedOutError(
                f"expected {where} to send something within {self.timeout_seconds:g} s, found silence; try again, "
                f"raise the time-out, {_INSTEAD}"
            )
        if isinstance(error, openai.APIConnectionError):
            return GenerationError(
                f"expected a connection to {where} that lasts, found: {detail}; check that it runs and that "
                f"OPENAI_BASE_URL is right, {_INSTEAD}"
            )
        if isinstance(error, openai.APIStatusError):
            return self._explained_status(error.status_code, f"{where}, found HTTP {error.status_code} ({detail})")
        return GenerationError(
            f"expected a stream of chat completion chunks from {where}, found {detail or type(error).__name__}; try "
            f"again, check that OPENAI_BASE_URL names an OpenAI-compatible server (often ending in /v1), {_INSTEAD}"
        )

    def _explained_status(self, status: int, found: str) -> GenerationError:
        if status == 429:
            return RateLimitedError(
                f"expected an answer from {found} in {self.n_tries} tries; wait a minute and ask again, {_INSTEAD}"
            )
        if status in (408, 504):
            return TimedOutError(f"expected an answer in time from {found}; try again, {_INSTEAD}")
        if 400 <= status < 500:
            next_step = _NEXT_STEP.get(status, _NEXT_STEP[400])
            return RefusedError(f"expected an answer by model {self.model!r} from {found}; {next_step}")
        return GenerationError(f"expected an answer from {found} in {self.n_tries} tries; try again later, {_INSTEAD}")


def _detail(error: BaseException) -> str:
    """The message of the server, or else of the connection."""
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    if error.__cause__ is not None and str(error.__cause__):
        return str(error.__cause__)
    return str(error)


def _scrub(error: BaseException | None, *secrets: str) -> None:
    """Redacts the secrets in the texts of this exception and of its causes, in place."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.args = tuple(redacted(value, *secrets) if isinstance(value, str) else value for value in error.args)
        for name in ("message", "body"):
            if hasattr(error, name):
                setattr(error, name, redacted(str(getattr(error, name)), *secrets))
        error = error.__cause__ or error.__context__


_CHECK_SECONDS = 3.0  # for the list of models; a slower server is called without the check
DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_REPLY_BYTES = 24 * 2**20  # 32,768 tokens, the highest setting, in chunks of 350 bytes are half of it
MAX_REPLY_SECONDS = 1_800.0  # of a whole reply, so that a server that trickles is given up
CONNECT_TIMEOUT_SECONDS = 10.0  # a running server accepts a connection at once, however long it then takes to answer

logger = logging.getLogger(__name__)


class ChatClient:
    """Calls one model as configured. The key is sent only in the request's header. May be shared by threads."""

    def __init__(self, config: GenerationConfig, api_key: str | None = None) -> None:
        """Sends no request yet. Raises ConfigError for an unusable base URL or key, ModelError for a local model.

        ``api_key`` may be empty for a server that needs none.
        """
        self._local = Local(config.local_model) if config.local_model else None
        self._config = config = replace(config, model=self._local.name) if self._local else config
        self._key = _checked_key(api_key)
        base_url = _checked_url(config.base_url or DEFAULT_BASE_URL)
        self.server = Server(
            _without_login(base_url),
            config.model,
            config.timeout_seconds,
            config.max_retries + 1,
            password=unquote(urlsplit(base_url).password or ""),
        )
        self._reported = ""
        self._is_listed = bool(self._local)
        self._client = self._connected(base_url, self._key)

    def _connected(self, base_url: str, key: str, *, is_local: bool = False) -> openai.OpenAI:
        import openai  # takes most of a second, so it is imported only when a model is called

        from ragqa.generation.llm.bounded import bounds

        config, parts = self._config, urlsplit(base_url)
        options = bounds(MAX_REPLY_BYTES, MAX_REPLY_SECONDS)
        if is_local:
            options["trust_env"] = False  # past any proxy
        if parts.username:  # a login in the address would be logged with every request
            options["auth"] = (unquote(parts.username), unquote(parts.password or ""))
        connections = openai.DefaultHttpxClient(**options)
        client = openai.OpenAI(
            api_key=key or "none",
            base_url=_without_login(base_url),
            timeout=openai.Timeout(
                config.timeout_seconds, connect=min(config.timeout_seconds, CONNECT_TIMEOUT_SECONDS)
            ),
            max_retries=0,  # `with_retries` does
            http_client=connections,
        )
        weakref.finalize(client, connections.close)  # openai closes only clients that it created
        return client

    @property
    def model(self) -> str:
        """The name that the server last reported for its model; before that the configured name."""
        return self._reported or self._config.model

    def close(self) -> None:
        """Closes the open connections; the client cannot be used afterwards."""
        self._client.close()

    def models(self) -> tuple[str, ...]:
        """The names of the models that the server lists, sorted; possibly none.

        Raises GenerationError as `write` does, before any text.
        """
        try:
            return tuple(sorted({model.id for model in with_retries(self._client.models.list, self.server.n_tries)}))
        except Exception as error:  # as in `_open`
            raise self.server.explained(error, self._key) from error

    def write(
        self, messages: Sequence[Message], reply: Reply, *, temperature: float | None = None, seed: int | None = None
    ) -> Pieces[str, None, None]:
        """Yields the text as it arrives and collects everything in ``reply``; temperature None is the configured one.

        An empty piece means that ``reply.progress`` has changed: a local model waits for its turn, is loaded and reads
        the prompt before it writes.

        A stream that breaks after some text ends, and ``reply.broke`` says why. One that breaks before any text raises
        RateLimitedError, TimedOutError, RefusedError or, for any other reason, GenerationError. A reply in the
        `ragqa.generation.llm.reply_cache` is not requested again.
        """
        cache = reply_cache()
        key = request_key(messages, self._config.temperature if temperature is None else temperature, seed)
        if cache and (cached := cache.get(key)) is not None:
            text = reply.restore(cached)
            self._reported = reply.model
            yield text
            return
        with ExitStack() as held:
            asked = _Asked(self._client, self.server, self._key)
            if self._local:
                turn = held.enter_context(self._local.turn())
                for reply.progress in self._local.waiting(turn):
                    yield ""
                asked = self._asked_locally(turn)
                held.callback(asked.client.close)
            yield from self._written(asked, messages, reply, temperature, seed)
        self._reported = reply.model
        if cache and not reply.broke:
            cache.put(key, reply.to_json())

    def _asked_locally(self, turn: ModelLease) -> _Asked:
        url, key = turn.address.base_url, turn.address.key
        return _Asked(
            self._connected(url, key, is_local=True), replace(self.server, base_url=url, n_tries=1), key, turn
        )

    def _written(
        self, asked: _Asked, messages: Sequence[Message], reply: Reply, temperature: float | None, seed: int | None
    ) -> Pieces[str, None, None]:
        response = self._open(asked, messages, reply, temperature, seed)
        with closing(response):
            try:
                for chunk in self._chunks(asked, response):
                    if progress := _progress(chunk):
                        reply.progress = progress
                        yield ""
                    if text := reply.take(chunk):
                        yield text
                    if reply.is_over:
                        break
            except GenerationError as error:
                if not reply.raw.strip():
                    raise
                reply.broke = str(error)
                logger.warning("The answer broke off: %s", reply.broke)
        if text := reply.finish():
            yield text
        if reply.instead:
            msg = (
                f"expected an answer in words by model {self._config.model!r} at {asked.server.name}, found "
                f"{reply.instead} and no text; raise the limit of tokens, ask again, choose another model, {_INSTEAD}"
            )
            raise GenerationError(msg)
        if reply.is_nothing:
            raise asked.explained(ValueError("a stream without any text, broken off or never begun"))

    def _check_listed(self, asked: _Asked) -> None:
        """Raises RefusedError if the server lists models, but not this one. A server without a list passes."""
        if self._is_listed:
            return
        try:
            patient = asked.client.with_options(timeout=_CHECK_SECONDS)
            listed = sorted({str(model.id) for model in patient.models.list()})
        except Exception as error:  # many servers have no such address
            logger.debug("no list of models: %s", type(error).__name__)
            listed = []
        name = self._config.model
        if listed and not {name, f"{name}:latest"} & set(listed):  # Ollama lists a model without a tag as "NAME:latest"
            shown = redacted(", ".join(listed[:20]) + (" …" if len(listed) > 20 else ""), self._key)
            msg = (
                f"expected a model that the server at {asked.server.name} lists ({shown}), found {name!r}; name one of "
                f"them in RAGQA_MODEL or --model, {_INSTEAD}"
            )
            raise RefusedError(msg)
        self._is_listed = True

    def _open(
        self, asked: _Asked, messages: Sequence[Message], reply: Reply, temperature: float | None, seed: int | None
    ) -> openai.Stream[ChatCompletionChunk]:
        """The stream of chunks; ``reply.left_out`` collects optional parameters that the server rejected."""
        from ragqa.generation.llm.bounded import until

        options: dict[str, Any] = {
            "temperature": self._config.temperature if temperature is None else temperature,
            "max_tokens": self._config.max_tokens,
            "stream_options": {"include_usage": True},
        }
        if seed is not None:
            options["seed"] = seed
        if self._local:
            options["extra_body"] = {"return_progress": True}
        self._check_listed(asked)
        create: Any = partial(
            asked.client.chat.completions.create, model=self._config.model, messages=cast("Any", messages), stream=True
        )
        while True:
            try:
                with until(reply.stopped):
                    response = with_retries(partial(create, **options), asked.server.n_tries, reply.stopped)
            except Exception as error:  # a server can make the client raise anything
                unsupported = _unsupported(error, options)
                if unsupported is None:
                    raise asked.explained(error) from error
                value = options.pop(unsupported)
                if unsupported == "max_tokens":  # renamed for reasoning models
                    options["max_completion_tokens"] = value
                else:
                    reply.left_out += (unsupported,)
            else:
                return cast("openai.Stream[ChatCompletionChunk]", response)

    def _chunks(self, asked: _Asked, response: openai.Stream[ChatCompletionChunk]) -> Iterator[ChatCompletionChunk]:
        try:
            yield from response
        except Exception as error:  # as above: cut connection, time-out, malformed chunk, error inside the stream
            raise asked.explained(error) from error


@dataclass(frozen=True, slots=True)
class _Asked:
    """The server of one call: the configured one, or the local model as it runs now."""

    client: openai.OpenAI
    server: Server
    key: str
    turn: ModelLease | None = None

    def explained(self, error: Exception) -> GenerationError:
        """As `Server.explained`; if the local model's process has ended, that is the reason."""
        explained = self.server.explained(error, self.key)
        why = self.turn.why_gone() if self.turn else ""
        if not why:
            return explained
        return GenerationError(
            f"expected the local model {self.server.model} to answer to the end, found that {why}; ask again, which "
            f"starts it anew, {_INSTEAD}"
        )


def _progress(chunk: ChatCompletionChunk) -> str:
    """A llama.cpp server's progress in reading the prompt, in words; empty if the chunk does not report it."""
    progress = getattr(chunk, "prompt_progress", None)
    if not isinstance(progress, dict):
        return ""
    counts = [progress.get(name) for name in ("total", "processed", "cache", "time_ms")]
    total, done, cached, ms = (count if isinstance(count, int | float) else 0 for count in counts)
    if done >= total:
        return "Writing the answer"
    pace = f", {1000 * (done - cached) / ms:.0f} a second" if ms > 0 else ""
    return f"Reading the prompt: {done:,} of {total:,} tokens{pace}"


def _unsupported(error: Exception, options: dict[str, Any]) -> str | None:
    """The optional parameter that a rejection (400 or 422) names; None if it names none of these."""
    import openai

    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return None
    if error.param:
        name = str(error.param).split(".", maxsplit=1)[0]
        return name if name in options else None
    return next((name for name in options if re.search(rf"\b{name}\b", str(error))), None)


def _checked_key(api_key: str | None) -> str:
    key = (api_key or "").strip()  # a key read from a file ends in a line feed
    if not (key.isascii() and key.isprintable()):
        msg = "the API key must consist of printable ASCII characters, found others; copy it again into OPENAI_API_KEY"
        raise ConfigError(msg)
    return key


def _checked_url(url: str) -> str:
    problem = f"got {_without_login(url)!r}; set OPENAI_BASE_URL again"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        msg = f"the base URL must be an address like http://127.0.0.1:11434/v1, {problem}"
        raise ConfigError(msg) from error
    if not is_usable or not url.isprintable() or " " in url:
        msg = f"the base URL must begin with http:// or https:// and name a host, {problem}"
        raise ConfigError(msg)
    return url


def _without_login(url: str) -> str:
    return re.sub(r"(\A|//)[^/?#]*@", r"\1", url)  # a password may hold an @
