"""What a server refuses only for now is asked again after a pause, unless nobody waits for it any more.

The `openai` package tries again by itself, but knows no Stop: an answer that was stopped would be asked, and paid for,
again. It draws its pauses from the process's one source of chance, too, which others may have seeded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ragqa.infra import http
from ragqa.infra.http import Fault, may_pass, pause_seconds, retry_after_seconds

if TYPE_CHECKING:
    import openai

FIRST_PAUSE_SECONDS: Final = 0.5  # before the second try; doubled before each further one
MAX_PAUSE_SECONDS: Final = 8.0  # unless the server asks for more
MAX_ASKED_SECONDS: Final = 120.0  # a server that asks for more has refused

_Found = TypeVar("_Found")


def with_retries(ask: Callable[[], _Found], n_tries: int, stopped: threading.Event | None = None) -> _Found:
    """What ``ask`` gives, which is called ``n_tries`` times at most and not again once ``stopped`` is set.

    Raises what its last call raised.
    """
    import openai

    stopped = stopped or threading.Event()

    def attempt() -> _Found | Fault:
        try:
            return ask()
        except openai.APIConnectionError as error:  # a time-out is one, too
            return Fault("no answer", may_pass=True, error=error)
        except openai.APIStatusError as error:
            asked = _asked_seconds(error)
            is_passing = _may_pass(error) and asked <= MAX_ASKED_SECONDS
            return Fault(f"HTTP {error.status_code}", may_pass=is_passing, retry_after_seconds=asked, error=error)

    def pause(n_made: int, asked: float) -> float:
        return asked or pause_seconds(n_made, 0.0, MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS)

    def wait(seconds: float) -> None:
        if stopped.wait(seconds):
            msg = "nobody waits for this answer any more"
            raise openai.OpenAIError(msg)

    outcome, _ = http.tried(attempt, n_tries, pause, wait, "the language model")
    if not isinstance(outcome, Fault):
        return outcome
    assert outcome.error  # noqa: S101 - each fault here stands for one
    raise outcome.error


def _may_pass(error: openai.APIStatusError) -> bool:
    hint = error.response.headers.get("x-should-retry")  # OpenAI's own word for it
    return hint == "true" if hint in ("true", "false") else error.status_code == 409 or may_pass(error.status_code)


def _asked_seconds(error: openai.APIStatusError) -> float:
    """How long the server asks to be left alone; 0 where it does not say."""
    headers = error.response.headers
    return retry_after_seconds(headers.get("retry-after-ms", "")) / 1000 or retry_after_seconds(
        headers.get("retry-after", "")
    )
