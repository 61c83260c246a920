"""Keys, passwords and tokens taken out of texts that somebody may read: logs, messages, what a server says."""

from __future__ import annotations

import json
import re
from typing import Final

from ragqa.infra.cleaning import without_controls

_KEY_LIKE: Final = re.compile(r"\b(?:sk|pa)-[\w*.-]{6,}|\bBearer\s+[^\s'\",}]+|(?<=://)[^\s/@'\"]+@", re.IGNORECASE)
_LEAST_CHARS: Final = 4  # "x" as the key of a server that wants none is no secret, and too common a text to cut out


def without_keys(text: str, *secrets: str) -> str:
    """The text without these, logins in addresses, and anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= _LEAST_CHARS:
            text = text.replace(secret, "[key]").replace(json.dumps(secret)[1:-1], "[key]")
    return _KEY_LIKE.sub("[key]", text)


def plain_line(text: str, most_chars: int, *secrets: str) -> str:
    """The text on one line and `without_keys`, at most so many characters."""
    line = without_keys(" ".join(without_controls(text).split()), *secrets)
    return line if len(line) <= most_chars else line[: most_chars - 1] + "…"
