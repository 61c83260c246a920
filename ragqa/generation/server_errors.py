"""What went wrong with a language model server, in our errors and words, with every secret taken out.

A server may echo the key it was sent, so no text of a server reaches a reader, a log or a chained exception before it
has been through `redacted`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from ragqa.cleaning import without_controls
from ragqa.errors import GenerationError, RateLimitedError, RefusedError, TimedOutError

MAX_DETAIL_CHARS = 300  # of a server's own words
_MIN_SECRET_CHARS = 4  # "x" or "no" as a key of a server that wants none is no secret, and too common a text to cut out
_KEY_LIKE = re.compile(r"\bsk-[\w*.-]{6,}|\bBearer\s+[^\s'\",}]+", re.IGNORECASE)

_INSTEAD = "or choose a generator without a language model"
_NEXT_STEP = {
    400: f"keep fewer passages, shorten the question or choose another model, {_INSTEAD}",
    401: f"check OPENAI_API_KEY, {_INSTEAD}",
    403: f"check that OPENAI_API_KEY may use this model, {_INSTEAD}",
    404: f"check the model name and that OPENAI_BASE_URL ends as the server wants it (often /v1), {_INSTEAD}",
    413: f"keep fewer passages, {_INSTEAD}",
}


def redacted(text: str, key: str) -> str:
    """The text on one line without this key or anything that looks like a key, at most `MAX_DETAIL_CHARS` long."""
    line = " ".join(without_controls(text[: 20 * MAX_DETAIL_CHARS]).split())
    if len(key) >= _MIN_SECRET_CHARS:
        line = line.replace(key, "[key]")
    line = _KEY_LIKE.sub("[key]", line)
    return line if len(line) <= MAX_DETAIL_CHARS else line[:MAX_DETAIL_CHARS] + "…"


@dataclass(frozen=True, slots=True)
class Server:
    """What error messages need to know about the server and how it is asked."""

    base_url: str
    model: str
    timeout_seconds: float
    n_tries: int

    @property
    def name(self) -> str:
        """Host and port, never user name, password or path."""
        parts = urlsplit(self.base_url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.hostname}{port}"

    def explained(self, error: Exception, key: str) -> GenerationError:
        """This exception of the client as ours; strips the key from the exception's own texts, so it may be chained."""
        import openai

        detail = redacted(_detail(error), key)
        _scrub(error, key)
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
    """What the server, or failing that the connection, said."""
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    if error.__cause__ is not None and str(error.__cause__):
        return str(error.__cause__)
    return str(error)


def _scrub(error: BaseException | None, key: str) -> None:
    """Takes the key out of the texts of this exception and of those behind it, in place."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        error.args = tuple(redacted(value, key) if isinstance(value, str) else value for value in error.args)
        for name in ("message", "body"):
            if hasattr(error, name):
                setattr(error, name, redacted(str(getattr(error, name)), key))
        error = error.__cause__ or error.__context__
