"""Markdown that language models write, taken off a line so that sentences read cleanly. Pure, linear in the line.

Taken off: a list marker (``-``, ``*``, ``+``, ``•``, ``1.``, ``1)`` followed by white space), heading marks (``## ``),
a quotation mark of Markdown (``> ``), a whole horizontal rule (``---``, ``***``, ``___``) and emphasis by asterisks
around words of one line (``*…*``, ``**…**``, ``***…***``). Everything else stays verbatim: ``(a)`` and ``3.2.1`` are
the rulebook's own numbering, a lone asterisk is a footnote sign or a product.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RULE = re.compile(r"\s*(?:-[ \t]*){3,}|\s*(?:\*[ \t]*){3,}|\s*(?:_[ \t]*){3,}")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_QUOTE = re.compile(r"[ \t]*>[ \t]+")
_LIST_MARKER = re.compile(r"[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]+)(?<=[^\s*])\1(?![\w*])")


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A line without its Markdown, and whether a list marker or heading marks opened it."""

    text: str
    is_item: bool = False
    is_heading: bool = False


def plain_line(line: str) -> PlainLine:
    """The line without Markdown; a horizontal rule leaves an empty line."""
    if _RULE.fullmatch(line):
        return PlainLine("")
    if quote := _QUOTE.match(line):
        line = line[quote.end() :]
    is_item = is_heading = False
    if marker := _HEADING.match(line):
        is_heading = True
    elif marker := _LIST_MARKER.match(line):
        is_item = True
    if marker:
        line = line[marker.end() :]
    return PlainLine(_EMPHASIS.sub(r"\2", line), is_item, is_heading)
