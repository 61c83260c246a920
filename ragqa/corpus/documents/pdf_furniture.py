"""What of a PDF's pages is no text of the document: running headers and footers, page numbers, tables of contents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ragqa.corpus.documents.model import Parsed
from ragqa.corpus.documents.pdf_lines import Line

_EDGE: Final = 0.12  # of a page's height: where headers and footers stand
_LEADERS: Final = re.compile(r"(?:\.\s?){4,}\s*[\divxlc]+$|…+\s*\d+$")
_PAGE_NUMBER: Final = re.compile(r"(?i)(?:page\s*)?[-–—]?\s*(\d{1,4}|[ivxlc]{1,6})\s*[-–—]?(?:\s*(?:of|/)\s*\d{1,4})?$")
_FIRST_PAGES: Final = 8  # where a table of contents may stand
_ENTRIES: Final = 5  # of a table of contents, at least


@dataclass(slots=True)
class Page:
    """What stands on a page: lines in reading order, and tables where they begin."""

    number: int
    height: float
    lines: list[Line]
    tables: list[tuple[float, str, tuple[float, float, float, float]]] = field(default_factory=list)


def without_furniture(pages: Sequence[Page], parsed: Parsed) -> None:
    """Takes out running headers and footers, page numbers and tables of contents."""
    running = _running(pages)
    for page in pages:
        kept = []
        contents = sum(bool(_LEADERS.search(line.text)) for line in page.lines) >= 3
        listed = set(map(id, _contents(page, len(pages))))
        for line in page.lines:
            if _is_edge(line, page) and (_key(line) in running or _is_page_number(line, page)):
                parsed.leave_out("page number" if _PAGE_NUMBER.match(line.text) else "header or footer", line.text)
            elif (
                _LEADERS.search(line.text)
                or id(line) in listed
                or (contents and line.text.lower() in {"contents", "table of contents"})
            ):
                parsed.leave_out("table of contents", line.text)
            else:
                kept.append(line)
        page.lines = kept


def _running(pages: Sequence[Page]) -> set[tuple[str, int]]:
    """Lines at the edges that come back page after page, alike but for a number that counts the pages."""
    seen: dict[tuple[str, int], dict[int, tuple[int, ...]]] = {}
    for page in pages:
        for line in page.lines:
            if _is_edge(line, page):
                numbers = tuple(int(found[-9:]) for found in re.findall(r"\d+", line.text))
                seen.setdefault(_key(line), {})[page.number] = numbers
    least = min(3, max(2, len(pages)))
    return {key for key, by_page in seen.items() if len(by_page) >= least and _only_counts(by_page)}


def _only_counts(by_page: Mapping[int, tuple[int, ...]]) -> bool:
    """Whether each number is the same on most of these pages, or goes on from page to page; a note's does neither."""
    return all(
        max(Counter(column).values()) * 2 > len(column)
        or max(Counter(n - page for n, page in zip(column, by_page, strict=True)).values()) * 2 > len(column)
        for column in zip(*by_page.values(), strict=True)
    )


def _contents(page: Page, n_pages: int) -> Sequence[Line]:
    """The lines of a table of contents without leaders: from its first to its last line that ends in a page's number.

    Such numbers stand at the right edge of one of the first pages, behind a gap, and never fall.
    """
    if page.number > max(_FIRST_PAGES, n_pages // 10):
        return ()
    ends = [
        n
        for n, line in enumerate(page.lines)
        if len(line.words) > 1
        and re.fullmatch(r"\d{1,4}", line.words[-1].text)
        and line.gap_after(len(line.words) - 1) > line.size
    ]
    numbers = [int(page.lines[n].words[-1].text) for n in ends]
    rights = [page.lines[n].right for n in ends]
    rises = numbers == sorted(numbers) and len(set(numbers)) * 2 > len(numbers) and max(numbers, default=0) <= n_pages
    if len(ends) < _ENTRIES or not rises or max(rights) - min(rights) > page.lines[ends[0]].size:
        return ()
    return page.lines[ends[0] : ends[-1] + 1]


def _is_edge(line: Line, page: Page) -> bool:
    return line.bottom < page.height * _EDGE or line.top > page.height * (1 - _EDGE)


def _key(line: Line) -> tuple[str, int]:
    return re.sub(r"\d+", "#", line.text.lower()), round(line.base / 4)


def _is_page_number(line: Line, page: Page) -> bool:
    """Whether the line is a page's number alone, outermost on the page."""
    if not _PAGE_NUMBER.match(line.text):
        return False
    others = [other.base for other in page.lines if other is not line]
    return not others or line.base > max(others) or line.base < min(others)
