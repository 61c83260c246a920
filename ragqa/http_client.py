"""What every client of somebody else's server shares: whole answers of bounded size, and pauses between tries."""

from __future__ import annotations

import random
import re
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import httpx2

FIRST_PAUSE_SECONDS: Final = 1.0  # before the second try; doubled before each further one


def read_body(response: httpx2.Response, max_bytes: int, timeout_seconds: float) -> bytes:
    """The whole body. Raises ValueError where it is too long, httpx2.ReadTimeout where it comes too slowly."""
    import httpx2

    until, content = time.monotonic() + timeout_seconds, bytearray()
    for piece in response.iter_bytes():
        content += piece
        if len(content) > max_bytes:
            msg = f"an answer of more than {max_bytes} bytes"
            raise ValueError(msg)
        if time.monotonic() > until:
            msg = "the answer comes in drops"
            raise httpx2.ReadTimeout(msg)
    return bytes(content)


def retry_after_seconds(header: str) -> float:
    """What a Retry-After header asks for, in seconds from now: a number or a date; 0 where it says neither."""
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", header):
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return 0.0


def pause_seconds(n_tries: int, asked_seconds: float, max_seconds: float) -> float:
    """How long to wait after this many tries: doubled each time, no less than asked for, a little by chance."""
    pause = max(FIRST_PAUSE_SECONDS * 2.0 ** (n_tries - 1), asked_seconds)
    return min(pause * (1 + random.random() / 4), max_seconds)  # noqa: S311 - no secret
