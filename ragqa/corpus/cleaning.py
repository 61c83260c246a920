"""Cleans text to what a reader sees: removes invisible characters and unifies white space and symbols."""

from __future__ import annotations

import re


def _codes(*ranges: tuple[int, int]) -> list[int]:
    return [code for first, last in ranges for code in range(first, last + 1)]


_REMOVED = _codes(
    (0x00, 0x08),  # C0 controls; tab and newline stay, vertical tab and form feed end a line
    (0x0E, 0x1F),
    (0x7F, 0x84),  # delete and C1 controls
    (0x86, 0x9F),
    (0xAD, 0xAD),  # soft hyphen
    (0x61C, 0x61C),  # direction marks; the zero-width joiners U+200C and U+200D stay, as they change the visible text
    (0x200B, 0x200B),
    (0x200E, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x2069),
    (0xFEFF, 0xFEFF),
    (0xE0000, 0xE007F),  # tags: invisible ASCII, a known way to hide instructions
)
_LINE_ENDS = (0x0B, 0x0C, 0x85, 0x2028, 0x2029)
_SPACES = (0xA0, 0x2007, 0x202F)
_WINGDINGS = {0xF0FC: "✓", 0xF0A7: "▪", 0xF0B7: "•", 0xF0D8: "➢"}  # private-use codes that word processors write
_TABLE = str.maketrans(
    dict.fromkeys(_REMOVED, "")
    | dict.fromkeys(_LINE_ENDS, "\n")
    | dict.fromkeys(_SPACES, " ")
    | _WINGDINGS
    | dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")  # lone surrogates, which cannot be stored
)

_MARKER = r"[/\\]Table (?:Start|End)\b"
_MARKERS = re.compile(rf"^[ \t]*{_MARKER}(?: and {_MARKER})?[ \t]*|[ \t]*{_MARKER}[ \t]*$")


def clean_text(text: str) -> str:
    r"""The text without invisible characters, table markers and surrounding white space; blank text gives ``""``.

    Direction marks, zero-width characters, soft hyphens and control characters are removed; ``\r\n`` becomes ``\n``, a
    no-break space a space. ``/Table Start`` and ``/Table End`` are removed from the start or end of a line, and so is a
    line that has nothing else; the rows between the markers stay.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isprintable():  # no character in the table is printable
        text = text.translate(_TABLE)
    if "Table Start" in text or "Table End" in text:
        text = "\n".join(_without_markers(text.split("\n")))
    return text.strip()


def clean_line(text: str) -> str:
    """The cleaned text on one line: every run of white space is one space."""
    line = " ".join(text.split())
    return line if line.isprintable() and "Table " not in line else " ".join(clean_text(text).split())


def _without_markers(lines: list[str]) -> list[str]:
    bare = [_MARKERS.sub("", line) for line in lines]
    return [now for line, now in zip(lines, bare, strict=True) if now.strip() or now == line]
