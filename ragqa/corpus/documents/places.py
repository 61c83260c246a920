"""Words for the number of a passage and for its place in its file (`ragqa.corpus.documents.model`). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ragqa.corpus.documents.labels import ARTICLE, RANKS

_DIVISIONS: Final = "|".join(word for word, rank in RANKS.items() if 0 < rank < ARTICLE and word.isalpha())
_RULES: Final = "|".join(word for word, rank in RANKS.items() if rank == ARTICLE)
_ABOVE_A_RULE: Final = re.compile(rf"(^|\.)(?:(?:sub)?(?:{_DIVISIONS})\b[^.]*\.)*(?=(?:{_RULES})\b)", re.IGNORECASE)
_PARAGRAPH: Final = re.compile(r"\b(article \d+[a-z]{0,2})\.(\d+[a-z]{0,2})(?![\w.]*\d)", re.IGNORECASE)
_ITEM: Final = re.compile(r"\.(?:(\([^().]+\))|([a-z]{1,5}|\d{1,3})\))(?=\.|$)")
_NOTE: Final = re.compile(r"\.(note \d+)$")


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """A page, from 1, and the boxes on it: left, top, right, bottom in points from the top left."""

    page: int
    boxes: tuple[tuple[float, float, float, float], ...]


def pages_of(place: str) -> tuple[PageBoxes, ...]:
    """The pages of a passage; () if its place has no page."""
    found: dict[int, list[tuple[float, float, float, float]]] = {}
    for piece in place.split(";"):
        match = re.fullmatch(r"page=(\d{1,6})&box=([\d.,-]+)", piece)
        edges = match[2].split(",") if match else []
        if match and len(edges) == 4:
            left, top, right, bottom = (float(edge) if edge else 0.0 for edge in edges)
            found.setdefault(int(match[1]), []).append((left, top, right, bottom))
    return tuple(PageBoxes(page, tuple(boxes)) for page, boxes in found.items())


def place_words(place: str) -> str:
    """The place of a passage in its file, in words; empty if unknown."""
    pages = pages_of(place)
    if pages:
        return f"page {pages[0].page}" if len(pages) == 1 else f"pages {pages[0].page}–{pages[-1].page}"
    found = dict(piece.partition("=")[::2] for piece in place.split("&"))
    if "sheet" in found:
        return f"sheet {found['sheet']}, row {found.get('row', '?')}"
    return next((f"{name} {found[name]}" for name in ("paragraph", "line") if name in found), "")


def cited_number(number: str) -> str:
    """The number as it is cited: ``CHAPTER IV.Section 2.Article 33.1.(a)`` is ``Article 33(1)(a)``.

    Articles, rules, regulations and recitals are counted through the chapters of a document, so that these are left
    out; an annex or a numbered chapter, in which they may begin anew, is not: ``4 Article 30(1)``.
    """
    short = _ABOVE_A_RULE.sub(lambda match: match[1] and " ", number.strip().rstrip("."))
    short = _PARAGRAPH.sub(r"\1(\2)", short)
    return _NOTE.sub(r" \1", _ITEM.sub(lambda match: match[1] or f"({match[2]})", short))
