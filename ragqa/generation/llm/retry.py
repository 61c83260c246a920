"""Retries requests after temporary failures, with a pause, unless nobody waits for the reply any more.

The retries of the `openai` package cannot be stopped, so a stopped answer would be requested, and paid for, again. They
also draw their pauses from the process's global random generator, which other code may have seeded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ragqa.infra import http
from ragqa.infra.http import Fault, may_pass, pause_seconds, retry_after_seconds

if TYPE_CHECKING:
    import openai

FIRST_PAUSE_SECONDS: Final = 0.5  # before the second try; doubled before each further try
MAX_PAUSE_SECONDS: Final = 8.0  # unless the server asks for more
MAX_ASKED_SECONDS: Final = 120.0  # a longer request to wait counts as a refusal

_Found = TypeVar("_Found")


def with_retries(ask: Callable[[], _Found], n_tries: int, stopped: threading.Event | None = None) -> _Found:
    """The result of ``ask``, called at most ``n_tries`` times and not again once ``stopped`` is set.

    Raises what the last call raised.
    """
    import openai

    stopped = stopped or threading.Event()

    def attempt() -> _Found | Fault:
        try:
            return ask()
        except openai.APIConnectionError as error:  # includes time-outs
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
    hint = error.response.headers.get("x-should-retry")  # a header of OpenAI's
    return hint == "true" if hint in ("true", "false") else error.status_code == 409 or may_pass(error.status_code)


def _asked_seconds(error: openai.APIStatusError) -> float:
    """The seconds that the server asks us to wait; 0 if it does not say."""
    headers = error.response.headers
    return retry_after_seconds(headers.get("retry-after-ms", "")) / 1000 or retry_after_seconds(
        headers.get("retry-after", "")
    )
