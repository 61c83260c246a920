"""An answer written by a language model behind any OpenAI-compatible server, streamed as it is written."""

from __future__ import annotations

import logging
import re
from collections.abc import Generator as Stream
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from ragqa.config import GenerationConfig
from ragqa.errors import ConfigError, GenerationError
from ragqa.events import Token
from ragqa.generation.answers import nothing_kept
from ragqa.generation.prompts import Message, build_prompt
from ragqa.generation.reply import Reply
from ragqa.generation.server_errors import Server
from ragqa.types import Answer, Passage, Question

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletionChunk

__all__ = ["DEFAULT_BASE_URL", "LlmGenerator"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"
CONNECT_TIMEOUT_SECONDS = 10.0  # a server that is there answers the door at once, however long it then thinks

logger = logging.getLogger(__name__)


class LlmGenerator:
    """Sends the kept passages as quoted data, streams the answer and verifies what it cites.

    The key comes as an argument and goes nowhere but into the request's header. May be shared by threads.
    """

    name = "LLM"

    def __init__(self, config: GenerationConfig, api_key: str | None = None) -> None:
        """A generator for this model; asks no server yet. Raises ConfigError for a base URL or key that cannot work.

        ``api_key`` may be empty for a server that wants none.
        """
        import openai  # takes most of a second: only those who ask a language model pay for it

        self._config = config
        self._key = _checked_key(api_key)
        base_url = _checked_url(config.base_url or DEFAULT_BASE_URL)
        self._server = Server(base_url, config.model, config.timeout_seconds, config.max_retries + 1)
        self._client = openai.OpenAI(
            api_key=self._key or "none",
            base_url=base_url,
            timeout=openai.Timeout(
                config.timeout_seconds, connect=min(config.timeout_seconds, CONNECT_TIMEOUT_SECONDS)
            ),
            max_retries=config.max_retries,  # after 408, 409, 429, 5xx, a time-out or no connection
        )

    def __repr__(self) -> str:
        return f"LlmGenerator(model={self.model!r}, server={self._server.name!r})"

    @property
    def model(self) -> str:
        return self._config.model

    def close(self) -> None:
        """Closes the connections kept open for the next question; the generator is of no use afterwards."""
        self._client.close()

    def stream(self, question: Question, passages: Sequence[Passage]) -> Stream[Token, None, Answer]:
        """Yields the text as it arrives, returns the answer with the citations that hold.

        Nothing is asked where no passage was kept. A stream that breaks after some text leaves an answer with finish
        reason ``"interrupted"``; before any text it raises RateLimitedError, TimedOutError, RefusedError or, for
        anything else, GenerationError.
        """
        if not passages:
            return nothing_kept(self.name, self.model)
        prompt = build_prompt(question, passages)
        reply = Reply()
        response, left_out = self._open(prompt.messages)
        broke = ""
        try:
            for chunk in self._chunks(response):
                if text := reply.take(chunk):
                    yield Token(text)
                if reply.is_too_long:
                    break
        except GenerationError as error:
            if not reply.raw.strip():
                raise
            broke = str(error)
            logger.warning("The answer broke off: %s", broke)
        finally:
            response.close()
        if text := reply.finish():
            yield Token(text)
        if reply.is_nothing:
            raise self._server.explained(ValueError("a stream without any text, broken off or never begun"), self._key)
        return reply.answer(self, prompt, broke=broke, left_out=left_out, max_tokens=self._config.max_tokens)

    def _open(self, messages: Sequence[Message]) -> tuple[openai.Stream[ChatCompletionChunk], tuple[str, ...]]:
        """The stream of chunks, and the optional parameters that the server made us leave out."""
        options: dict[str, Any] = {
            "temperature": self._config.temperature,
            "max_tokens": self._config.max_tokens,
            "stream_options": {"include_usage": True},
        }
        left_out: list[str] = []
        while True:
            try:
                response = self._client.chat.completions.create(
                    model=self.model, messages=cast("Any", messages), stream=True, **options
                )
            except Exception as error:  # a server can make the client raise anything; a reader gets it explained
                unsupported = _unsupported(error, options)
                if unsupported is None:
                    raise self._server.explained(error, self._key) from error
                value = options.pop(unsupported)
                if unsupported == "max_tokens":  # renamed for reasoning models
                    options["max_completion_tokens"] = value
                else:
                    left_out.append(unsupported)
            else:
                return cast("openai.Stream[ChatCompletionChunk]", response), tuple(left_out)

    def _chunks(self, response: openai.Stream[ChatCompletionChunk]) -> Iterator[ChatCompletionChunk]:
        iterator = iter(response)
        while True:
            try:
                chunk = next(iterator)
            except StopIteration:
                return
            except Exception as error:  # as above: cut connection, time-out, malformed chunk, error inside the stream
                raise self._server.explained(error, self._key) from error
            yield chunk


def _unsupported(error: Exception, options: dict[str, Any]) -> str | None:
    """The optional parameter that a refusal (400 or 422) names, None where it names none of these."""
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
    found = f"got {_without_login(url)!r}; set OPENAI_BASE_URL again"
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        msg = f"the base URL must be an address like http://127.0.0.1:11434/v1, {found}"
        raise ConfigError(msg) from error
    if not is_usable or not url.isprintable() or " " in url:
        msg = f"the base URL must begin with http:// or https:// and name a host, {found}"
        raise ConfigError(msg)
    return url


def _without_login(url: str) -> str:
    return re.sub(r"//[^/@]*@", "//", url)
