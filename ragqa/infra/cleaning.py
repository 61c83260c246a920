"""Removes characters from text that never help a reader or a model and can do harm. Pure; linear in the text."""

from __future__ import annotations

import json
import re
from typing import Final

_KEY_LIKE: Final = re.compile(
    r"\b(?:sk|pa)-[\w*.-]{6,}|\bBearer\s+[^\s'\",}]+|(?<=://)(?:[^\s/@'\"]+@)+", re.IGNORECASE
)
_LEAST_CHARS: Final = 4  # a placeholder such as "x", for a server without keys, is no secret and too common to remove


def without_keys(text: str, *secrets: str) -> str:
    """The text without these keys, logins in addresses, and anything that looks like a key."""
    for secret in secrets:
        if len(secret) >= _LEAST_CHARS:
            text = text.replace(secret, "[key]").replace(json.dumps(secret)[1:-1], "[key]")
    return _KEY_LIKE.sub("[key]", text)


def plain_line(text: str, most_chars: int, *secrets: str) -> str:
    """The text on one line and `without_keys`, at most ``most_chars`` characters."""
    line = without_keys(" ".join(without_controls(text).split()), *secrets)
    return line if len(line) <= most_chars else line[: most_chars - 1] + "…"


_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # category Cc but tab and line feed
_SURROGATES = re.compile(r"[\ud800-\udfff]")
# Category Cf: soft hyphen, zero-width and direction marks, and the tag characters that can hide a whole message.
_INVISIBLE = re.compile(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def without_controls(text: str) -> str:
    """The text without control characters; tab and line feed stay, a lone surrogate (not encodable) becomes U+FFFD."""
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def writable(text: str) -> str:
    """The text without the characters that XML, and so an Office file, cannot hold."""
    return re.sub("[\ufffe\uffff]", "\ufffd", without_controls(text))


def without_invisible(text: str) -> str:
    """The text without control and invisible format characters; line ends of every system become line feeds."""
    return _INVISIBLE.sub("", without_controls(text.replace("\r\n", "\n").replace("\r", "\n")))


_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def cell(text: str) -> str:
    """The text as a cell of a table, escaped so that no spreadsheet reads it as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text
