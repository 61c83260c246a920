"""The title of a document: what it says of itself, what stands first in it, or the name of its file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from ragqa.corpus.documents.model import Block, Parsed

LONGEST: Final = 300  # characters of a title
LONG: Final = (
    120  # characters from which a title is shortened to its first line and the short title in brackets at its end
)
_OPENING: Final = 10  # blocks among which the title stands
_LINES: Final = 5  # of a title
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_OPEN_END: Final = re.compile(r"(?:[-–—,&(]|\b(?:a|an|and|by|for|from|in|of|on|or|the|to|under|with))$", re.IGNORECASE)
_QUOTES: Final = " \t\"'“”‘’«»"
_VERSION: Final = re.compile(r"\bversion\b|^\W*v\.? ?\d", re.IGNORECASE)
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_SHORT_TITLE: Final = re.compile(r"\([A-Z]\w+ [^()]{3,60}\)$")
# What programs write where the author gave no title.
_UNTITLED: Final = re.compile(r"(?:untitled|(?:word )?document|presentation|microsoft \w+ - .*)[\s\d]*", re.IGNORECASE)


def title_of(parsed: Parsed, name: str) -> str:
    """The title, of at most `LONGEST` characters; ``name`` is the file's, without its folder.

    The title that the document declares, unless it is the name of a file or an unfinished line: then the name of the
    file where it has three words or more, else the lines that the text opens with.
    """
    declared, opening = parsed.title.strip(_QUOTES), _opening(parsed.blocks)
    if _is_title(declared):
        goes_on = len(declared) < len(opening) and opening.casefold().startswith(declared.casefold())
        return _shortened(opening if goes_on else declared)
    if name.count(" ") > 1:
        return name[:LONGEST]
    return _shortened(opening or name)


def _opening(blocks: Sequence[Block]) -> str:
    """The first lines that read as a title, joined; "" where none does."""
    first = [block for block in islice(blocks, _OPENING) if block.kind in {"heading", "text"} and block.text]
    for n, block in enumerate(first):
        if _is_title(block.text, may_be_open=True):
            lines = [block.text]
            for line in first[n + 1 : n + _LINES]:
                is_alike = block.kind == line.kind == "heading" and block.level == line.level
                goes_on = _OPEN_END.search(lines[-1]) or line.text[:1].islower()
                if _VERSION.search(line.text) or not (goes_on or (is_alike and not _YEAR.search(line.text))):
                    break
                lines.append(line.text)
            return " ".join(lines)
    return ""


def _is_title(text: str, *, may_be_open: bool = False) -> bool:
    """Whether a reader would take it for a title: several words, most of them capitalised or none of them open."""
    words = [word for word in _WORD.findall(text) if len(word) > 2]
    is_name = " " not in text.strip() or len(words) <= 0.4 * len(text.split())
    if len(words) < 2 or is_name or _UNTITLED.fullmatch(text) or (_OPEN_END.search(text) and not may_be_open):
        return False
    if not may_be_open:
        return True
    long = [word for word in words if len(word) > 3]
    is_sentence = text.rstrip().endswith((".", ";", ":", "?"))
    return len(text) <= LONGEST and not is_sentence and sum(word[0].isupper() for word in long) >= 0.6 * len(long)


def _shortened(title: str) -> str:
    """A long title up to the end of its first line, with the short title in brackets that it ends with."""
    short = _SHORT_TITLE.search(title)
    if short and len(title) > LONG:
        first = re.split(r" of \d{1,2} | - | — ", title, maxsplit=1)[0]
        return f"{first[: LONGEST - len(short[0]) - 1]} {short[0]}"
    return title if len(title) <= LONGEST else title[:LONGEST].rsplit(" ", 1)[0]
