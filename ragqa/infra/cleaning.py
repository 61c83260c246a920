"""Characters that never help a reader or a model and can do harm, taken out of text. Pure, linear in the text."""

from __future__ import annotations

import re

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


def without_invisible(text: str) -> str:
    """The text without control and invisible format characters; line ends of every system become line feeds."""
    return _INVISIBLE.sub("", without_controls(text.replace("\r\n", "\n").replace("\r", "\n")))


_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def cell(text: str) -> str:
    """The text as a cell of a table that somebody may open in a spreadsheet: never a formula there."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text
