"""Finds the furniture of PDF pages: running headers and footers, page numbers and tables of contents."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from ragqa.corpus.documents.labels import RANKS, from_roman, read_label
from ragqa.corpus.documents.model import Block, Parsed
from ragqa.corpus.documents.pdf_lines import Line
from ragqa.corpus.documents.titles import pages_rise

_EDGE: Final = 0.12  # share of a page's height, at its top and bottom, that may have headers and footers
_LEADERS: Final = re.compile(r"(?:\.\s?){4,}\s*[\divxlc]+$|…+\s*\d+$")
_NUMBER: Final = re.compile(r"\d+|\b[ivxlc]+\b")
_CONTENTS: Final = frozenset(("contents", "tableofcontents"))
_ENTRY_ENDS: Final = re.compile(r"\d{1,4}(?:[–-]\d{1,4})?")
_PAGE_NUMBER: Final = re.compile(r"(?i)(?:page\s*)?[-–—]?\s*(\d{1,4}|[ivxlc]{1,6})\s*[-–—]?(?:\s*(?:of|/)\s*\d{1,4})?$")
_FIRST_PAGES: Final = 8  # pages that may have a table of contents
_ENTRIES: Final = 5  # least entries of a table of contents
_APART: Final = 1.6  # least distance of a running head from the text, as a multiple of the usual line distance
_MOST_PAGES: Final = 0.5  # least share of pages with a line in the place of a running head
_LEAST_PAGES: Final = 5  # least number of such pages


@dataclass(slots=True)
class PdfPage:
    """A page: its lines in reading order, and its tables and boxes with the column and top of each."""

    number: int
    height: float
    lines: list[Line]
    tables: list[tuple[tuple[float, float], Block]] = field(default_factory=list)


def without_furniture(pages: Sequence[PdfPage], parsed: Parsed, body: float) -> None:
    """Removes running headers and footers, page numbers and tables of contents; ``body`` is the usual text size."""
    running = _running(pages, body)
    places = _running_places(pages, body)
    listed: set[int] = set()
    for page in pages:
        kept = []
        listed = set(map(id, _contents(page, len(pages), goes_on=bool(listed))))
        dotted = [line.text for line in page.lines if _LEADERS.search(line.text)]
        rises = pages_rise(dotted)
        for line in page.lines:
            stands = round(line.base / 4) in places and line.size < body * 1.12
            if _is_edge(line, page) and (_key(line) in running or stands or _is_page_number(line, page)):
                parsed.leave_out("page number" if _PAGE_NUMBER.match(line.text) else "header or footer", line.text)
            elif (rises and line.text in dotted) or id(line) in listed:
                parsed.leave_out("table of contents", line.text)
            else:
                kept.append(line)
        page.lines = kept


def _running(pages: Sequence[PdfPage], body: float) -> set[tuple[str, int]]:
    """The lines at page edges that recur on other pages and are equal except for a page number.

    A numbered line in larger print is a heading, such as "Application" if each chapter begins on a new page; so is
    "Annex 3" if no two pages have the same number.
    """
    begun: dict[tuple[str, int], dict[int, object]] = {}
    seen: dict[tuple[str, int], dict[int, tuple[int, ...]]] = {}
    for page in pages:
        for line in page.lines:
            if _is_edge(line, page) and not _is_numbered_heading(line, body):
                numbers = tuple(
                    int(n[-9:]) if n.isdigit() else from_roman(n) for n in _NUMBER.findall(line.text.lower())
                )
                seen.setdefault(_key(line), {})[page.number] = numbers
                for step in read_label(line.text)[0][:1]:
                    if step.style in RANKS:
                        begun.setdefault(_key(line), {})[page.number] = step.value
    least = min(3, max(2, len(pages)))
    return {
        key
        for key, by_page in seen.items()
        if len(by_page) >= least
        and _only_counts(by_page)
        and not (key in begun and len({*begun[key].values()}) == len(by_page))
    }


def _running_places(pages: Sequence[PdfPage], body: float) -> set[int]:
    """The heights at which most pages have their outermost line, of any text, far from the body and not larger."""
    steps = [after.base - before.base for page in pages for before, after in pairwise(page.lines)]
    usual = statistics.median([step for step in steps if 0 < step < 4 * body] or [body])
    gaps: dict[int, list[float]] = {}
    for page in pages:
        lines = sorted(page.lines, key=lambda line: line.base)
        for outer, inner in ((lines[0], lines[1]), (lines[-1], lines[-2])) if len(lines) > 2 else ():
            if _is_edge(outer, page) and outer.size < body * 1.12:
                gaps.setdefault(round(outer.base / 4), []).append(abs(outer.base - inner.base))
    least = max(_LEAST_PAGES, _MOST_PAGES * len(pages))
    return {height for height, own in gaps.items() if len(own) >= least and statistics.median(own) > _APART * usual}


def _only_counts(by_page: Mapping[int, tuple[int, ...]]) -> bool:
    """Whether each number is the same on most pages, or rises with the pages, which the number of a note does not."""
    return all(
        max(Counter(column).values()) * 2 > len(column)
        or max(Counter(n - page for n, page in zip(column, by_page, strict=True)).values()) * 2 > len(column)
        for column in zip(*by_page.values(), strict=True)
    )


def _contents(page: PdfPage, n_pages: int, *, goes_on: bool) -> Sequence[Line]:
    """The lines of a table of contents: from its first to its last entry, including wrapped lines, and its heading.

    An entry ends in leaders and a page number. Without leaders, the page numbers must be at the right edge of one of
    the first pages, after a gap, and never fall. If the table ``goes_on`` from the page before, one entry at the top is
    enough.
    """
    ends = [n for n, line in enumerate(page.lines) if _LEADERS.search(line.text)]
    if ends and not pages_rise([page.lines[n].text for n in ends]):
        return ()
    if len(ends) < 3 or len(ends) * 2 < ends[-1] - ends[0]:
        if page.number > max(_FIRST_PAGES, n_pages // 10):
            return ()
        ends = [
            n
            for n, line in enumerate(page.lines)
            if len(line.words) > 1
            and _ENTRY_ENDS.fullmatch(line.words[-1].text)
            and line.gap_after(len(line.words) - 1) > line.size
        ]
        numbers = [int(re.split("[–-]", page.lines[n].words[-1].text)[0]) for n in ends]
        rights = [page.lines[n].right for n in ends]
        rises = numbers == sorted(numbers) and len(set(numbers)) * 3 > len(numbers) and max([0, *numbers]) <= n_pages
        usual = statistics.median(rights or [0.0])
        aligned = sum(abs(right - usual) < page.lines[n].size for right, n in zip(rights, ends, strict=True))
        enough = len(ends) >= _ENTRIES or (goes_on and [0, 1, 2][: len(ends)] == ends)
        if not enough or not rises or aligned * 5 < len(ends) * 4:
            return ()
    first = ends[0]
    while first and page.lines[first - 1].text.lower().replace(" ", "") in _CONTENTS:
        first -= 1
    return page.lines[first : ends[-1] + 1]


def _is_edge(line: Line, page: PdfPage) -> bool:
    return line.bottom < page.height * _EDGE or line.top > page.height * (1 - _EDGE)


def _is_numbered_heading(line: Line, body: float) -> bool:
    return line.size > body * 1.12 and all(read_label(line.text, bare=True))


def _key(line: Line) -> tuple[str, int]:
    return _NUMBER.sub("#", line.text.lower()), round(line.base / 4)


def _is_page_number(line: Line, page: PdfPage) -> bool:
    """Whether the line is only a page number and is the outermost line of the page."""
    if not _PAGE_NUMBER.match(line.text):
        return False
    others = [other.base for other in page.lines if other is not line]
    return not others or line.base > max(others) or line.base < min(others)
