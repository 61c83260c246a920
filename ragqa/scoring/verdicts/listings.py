"""Splits a sentence that is a list into its lead-in and its items."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from ragqa.types import Span

_MARK = re.compile(r"(?:^|(?<=[\s;:,.]))\(?(?P<mark>[a-z]{1,2}|[ivx]{1,5}|[A-Z]|\d{1,2})\)\s+")
_REFERRING = re.compile(r"(?:\b(?:rules?|paragraphs?|sections?|articles?|chapters?)\s*[\d.]*|\))\s*$", re.IGNORECASE)
REACH = 24  # characters searched before a mark for a word such as "Rule" that it belongs to
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv")
_EDGES = " \t\n\r\f\v;,.:"
DEEPEST = 3  # levels of nested items


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list. ``mark`` is "(a)", or "(b)(i)" for a nested item, whose parent is ``above``."""

    mark: str
    span: Span
    above: Item | None = None

    def after(self, lead: Span) -> str:
        """The full text of the item: the lead-in, its parent items and itself."""
        return f"{self.above.after(lead) if self.above else lead.text} {self.span.text}"


@dataclass(frozen=True, slots=True)
class Listing:
    """``lead`` is the whole sentence if that is not a list; spans are offsets in the sentence."""

    lead: Span
    items: tuple[Item, ...] = ()


@lru_cache(maxsize=4_000)
def taken_apart(text: str) -> Listing:
    """The lead-in and the items of a list with marks such as (a), (ii) or 3), at least two of them."""
    marks = _marks(text)
    if len(marks) < 2:
        return Listing(_span(text, 0, len(text)))
    open_items: list[Item] = []
    items = []
    ends = [after.start() for _, (after, _) in pairwise(marks)] + [len(text)]
    for (match, depth), end in zip(marks, ends, strict=True):
        above = open_items[depth - 1] if depth else None
        mark = f"{above.mark if above else ''}({match['mark']})"
        item = Item(mark, _span(text, match.end(), end), above)
        open_items[depth:] = [item]
        items.append(item)
    return Listing(_span(text, 0, marks[0][0].start()), tuple(item for item in items if item.span.text))


def _marks(text: str) -> list[tuple[re.Match[str], int]]:
    """The marks of items, each with its depth; a number in brackets or a reference such as "Rule 3 (a)" is not one."""
    found: list[tuple[re.Match[str], int]] = []
    due: list[str] = []  # the next mark expected at each depth
    is_roman: list[bool] = []
    for match in _MARK.finditer(text):
        mark = match["mark"]
        if mark in due:
            depth = len(due) - 1 - due[::-1].index(mark)
        elif mark in {"a", "i", "1", "A"} and len(due) < DEEPEST and not _refers(text, match):
            depth = len(due)
            is_roman[depth:] = [mark == "i"]
        else:
            continue
        due[depth:] = [_next(mark, is_roman=is_roman[depth])]
        found.append((match, depth))
    return found


def _next(mark: str, *, is_roman: bool) -> str:
    if mark.isdigit():
        return str(int(mark) + 1)
    if is_roman and mark in _ROMAN[:-1]:
        return _ROMAN[_ROMAN.index(mark) + 1]
    return mark[:-1] + chr(ord(mark[-1]) + 1)


def _refers(text: str, match: re.Match[str]) -> bool:
    return bool(_REFERRING.search(text, max(0, match.start() - REACH), match.start()))


def _span(text: str, start: int, end: int) -> Span:
    """Without surrounding white space, and without punctuation and "and" or "or" at its end."""
    words = text[start:end].rstrip(_EDGES)
    last = words.rpartition(" ")[2]
    if last in {"and", "or"}:
        words = words.removesuffix(last).rstrip(_EDGES)
    kept = words.lstrip()
    start += len(words) - len(kept)
    return Span(kept, start, start + len(kept))
