"""What a server refuses only for now is asked again after a pause, unless nobody waits for it any more.

The `openai` package tries again by itself, but knows no Stop: an answer that was stopped would be asked, and paid for,
again. It draws its pauses from the process's one source of chance, too, which others may have seeded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from ragqa.infra.http import pause_seconds, retry_after_seconds

if TYPE_CHECKING:
    import openai

FIRST_PAUSE_SECONDS: Final = 0.5  # before the second try; doubled before each further one
MAX_PAUSE_SECONDS: Final = 8.0  # unless the server asks for more
MAX_ASKED_SECONDS: Final = 120.0  # a server that asks for more has refused

logger = logging.getLogger(__name__)
_Found = TypeVar("_Found")


def with_retries(ask: Callable[[], _Found], n_tries: int, stopped: threading.Event | None = None) -> _Found:
    """What ``ask`` gives, which is called ``n_tries`` times at most and not again once ``stopped`` is set.

    Raises what its last call raised.
    """
    import openai

    stopped = stopped or threading.Event()
    n_made = 1
    while True:
        try:
            return ask()
        except openai.APIConnectionError:  # a time-out is one, too
            asked = 0.0
            if n_made >= n_tries:
                raise
        except openai.APIStatusError as error:
            asked = _asked_seconds(error)
            if n_made >= n_tries or not _may_pass(error) or asked > MAX_ASKED_SECONDS:
                raise
        pause = asked or pause_seconds(n_made, 0.0, MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS)
        logger.info("try %d of %d brought nothing; the next one in %.1f s", n_made, n_tries, pause)
        if stopped.wait(pause):
            msg = "nobody waits for this answer any more"
            raise openai.OpenAIError(msg)
        n_made += 1


def _may_pass(error: openai.APIStatusError) -> bool:
    said = error.response.headers.get("x-should-retry")  # OpenAI's own word for it
    return (
        said == "true"
        if said in ("true", "false")
        else error.status_code in (408, 409, 429) or error.status_code >= 500
    )


def _asked_seconds(error: openai.APIStatusError) -> float:
    """How long the server asks to be left alone; 0 where it does not say."""
    headers = error.response.headers
    return retry_after_seconds(headers.get("retry-after-ms", "")) / 1000 or retry_after_seconds(
        headers.get("retry-after", "")
    )
