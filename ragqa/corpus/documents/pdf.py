"""Reads PDF: words and their boxes with PDFium, tables with ruling lines with pdfplumber; removes page furniture.

PDFium is not thread-safe, so this runs only in the worker process (see `ragqa.corpus.documents.process`).
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.labels import RUN_IN, Step, follows, read_label
from ragqa.corpus.documents.model import BOLD_LEVEL, MAX_PAGES, Block, Parsed, UnreadableError, count_words
from ragqa.corpus.documents.pdf_furniture import PdfPage, without_furniture
from ragqa.corpus.documents.pdf_lines import RAISED, Line, line_numbers, lines_of, opened
from ragqa.corpus.documents.pdf_tables import find_open_tables, find_tables, place_of, whole_tables

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_MIN_CHARS: Final = 25  # a page with fewer and a large picture is a scan
_MIN_RULES: Final = 2  # ruling lines in each direction: fewer make no table
_RULE_POINTS: Final = 8  # shorter lines are not ruling lines
_LARGE: Final = 1.12  # multiple of the usual size from which a line is a heading
_SMALL: Final = 0.93  # multiple of the usual size below which a line is small print
_MARK: Final = re.compile(r"(?:\(\s?\d{1,3}\s?\)|\d{1,3}[).]?|[*†‡]{1,3})(?=\s)")  # before a footnote
_BULLET: Final = re.compile(r"[•●▪■◦○‣\uf0a7\uf0b7\uf0d8➢❖–—−-]")
_PARTED: Final = re.compile(r"\w[–-]$")  # a number that goes on in the next line: "FAA–2020–"
_ENDS: Final = (".", ":", ";", "?", "!", "—", "–", "”", '"')


def parse_pdf(path: Path) -> Parsed:
    """The paragraphs, with their pages and boxes. Raises UnreadableError, also for a scan without text."""
    import pypdfium2

    parsed = Parsed()
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise UnreadableError(_why(str(error))) from error
    try:
        n_pages = len(document)
        if not 0 < n_pages <= MAX_PAGES:
            msg = f"expected 1 to {MAX_PAGES:,} pages, found {n_pages:,}; split the document"
            raise UnreadableError(msg)
        pages, scanned = _read_pages(document, path, parsed)
        meta = clean_line(document.get_metadata_value("Title"))
    finally:
        document.close()
    if scanned and len(scanned) * 2 > n_pages:
        msg = (
            f"expected text, found pictures of it on {len(scanned):,} of {n_pages:,} pages: a scan; recognise its text "
            "first, for instance with `ocrmypdf FILE.pdf FILE-text.pdf`, and add what that writes"
        )
        raise UnreadableError(msg)
    if scanned:
        shown = ", ".join(map(str, scanned[:8])) + (" …" if len(scanned) > 8 else "")
        parsed.warnings.append(f"{len(scanned):,} pages are pictures without text and are not read: {shown}")
    body = _body_size(pages)
    without_furniture(pages, parsed, body)
    find_open_tables(pages)
    for block in whole_tables(_blocks(pages, body), parsed):
        parsed.add(block)
    if not parsed.blocks:
        msg = f"expected text, found none on {n_pages:,} pages; print the document to PDF again from its source"
        raise UnreadableError(msg)
    parsed.title = meta
    return parsed


def _why(error: str) -> str:
    if "password" in error.lower():
        return "expected an open PDF, found one that is protected by a password; save it without one"
    return f"expected a whole PDF, found a damaged one ({error[:80]}); download or print it to PDF again"


def _read_pages(document: PdfDocument, path: Path, parsed: Parsed) -> tuple[list[PdfPage], list[int]]:
    """The pages, and the numbers (from 1) of those that are pictures of text."""
    import pypdfium2.raw as raw

    pages, scanned, ruled = [], [], []
    for index in range(len(document)):
        page, textpage, words, unseen = opened(document, index)
        if unseen:
            parsed.leave_out("text that stands askew or off the page", unseen)
        if counted := {id(word): word.text for word in line_numbers(words)}:
            parsed.leave_out("line number", " ".join(counted.values()))
            words = [word for word in words if id(word) not in counted]
        parsed.words += count_words(textpage.get_text_range().replace("\x02", "-").replace("\ufffe", "-"))
        width, height = page.get_size()
        if sum(len(word.text) for word in words) < _MIN_CHARS and _is_picture(page, raw, width * height):
            scanned.append(index + 1)
        if _is_ruled(page, raw):
            ruled.append(index)
        pages.append(PdfPage(index + 1, height, lines_of(words, index + 1)))
        textpage.close()
        page.close()
    if ruled:
        find_tables(path, pages, ruled)
    return pages, scanned


def _bounds(page: Any, raw: Any, kind: int) -> Iterator[tuple[float, float, float, float]]:  # noqa: ANN401
    """The edges of the drawn objects of this kind, also one level inside groups: left, bottom, right, top.

    This uses the raw API: pypdfium2 makes a Python object of each letter, which takes as long as reading the page.
    """
    edges = [ctypes.c_float() for _ in range(4)]
    for n in range(raw.FPDFPage_CountObjects(page)):
        found = raw.FPDFPage_GetObject(page, n)
        what = raw.FPDFPageObj_GetType(found)
        inner = [found] if what == kind else []
        if what == raw.FPDF_PAGEOBJ_FORM:
            inside = (raw.FPDFFormObj_GetObject(found, k) for k in range(raw.FPDFFormObj_CountObjects(found)))
            inner = [one for one in inside if raw.FPDFPageObj_GetType(one) == kind]
        for one in inner:
            if raw.FPDFPageObj_GetBounds(one, *edges):
                yield edges[0].value, edges[1].value, edges[2].value, edges[3].value


def _is_picture(page: Any, raw: Any, area: float) -> bool:  # noqa: ANN401
    for left, bottom, right, top in _bounds(page, raw, raw.FPDF_PAGEOBJ_IMAGE):
        if (right - left) * (top - bottom) > area / 3:
            return True
    return False


def _is_ruled(page: Any, raw: Any) -> bool:  # noqa: ANN401
    """Whether the page has horizontal and vertical lines or boxes, as around cells."""
    across, down = set(), set()
    for bounds in _bounds(page, raw, raw.FPDF_PAGEOBJ_PATH):
        left, bottom, right, top = map(round, bounds)
        if right - left > _RULE_POINTS:
            across |= {top, bottom}
        if top - bottom > _RULE_POINTS:
            down |= {left, right}
        if len(across) > _MIN_RULES and len(down) > _MIN_RULES:
            return True
    return False


# Paragraphs ---------------------------------------------------------------------------------------------------------


def _body_size(pages: Sequence[PdfPage]) -> float:
    sizes = Counter[float]()
    for page in pages:
        for line in page.lines:
            sizes[round(line.size * 2) / 2] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


@dataclass(slots=True)
class _Paragraph:
    """Lines of one paragraph; ``label`` is a number before a gap, ``indent`` the left edge of the text."""

    lines: list[Line]
    label: str
    indent: float
    hanging: bool
    steps: tuple[Step, ...] = ()

    @property
    def last(self) -> Line:
        return self.lines[-1]


def _blocks(pages: Sequence[PdfPage], body: float) -> Iterator[Block]:
    leading, levels = _leading(pages, body), _levels(pages, body)
    paragraph: _Paragraph | None = None
    waiting: list[Block] = []  # tables in the middle of a paragraph
    notes: list[Block] = []  # until the text that refers to them is read
    for page in pages:
        notes += _notes(page, body)
        tables = sorted(page.tables, key=lambda table: table[0])
        for line in page.lines:
            while tables and tables[0][0] < (line.column, line.top):
                waiting.append(tables.pop(0)[1])
            beside = sorted(other.right for other in page.lines if paragraph and other.left < paragraph.last.right)
            right = beside[int(0.9 * (len(beside) - 1))] if beside else 0.0  # of the column; a heading may cross both
            apart = bool(waiting) and _is_marked(line, body)  # a heading does not go on behind a table
            if paragraph and not apart and _reads_on(paragraph, line, leading, right, body):
                paragraph.lines.append(line)
                continue
            if paragraph:
                yield _block(paragraph, body, levels)
                yield from _called(notes, paragraph)
            yield from waiting
            waiting.clear()
            paragraph = _begun(line)
        waiting += [table for _, table in tables]
    if paragraph:
        yield _block(paragraph, body, levels)
    yield from (*waiting, *notes)


def _called(notes: list[Block], paragraph: _Paragraph) -> Iterator[Block]:
    """Removes and yields the notes whose raised marks are in the paragraph, and unreferenced ones of earlier pages."""
    words = [(line, word) for line in paragraph.lines for word in line.words]
    small = {word.text.strip("().,;:[]") for line, word in words if word.size < 0.8 * line.size}
    usual = tuple(word.text.rstrip('().,;:”"') for line, word in words if not word.text.isascii())
    for note in tuple(notes):
        raised = note.label.translate(RAISED)
        earlier = int(note.place[5 : note.place.index("&")]) < paragraph.lines[0].page
        if earlier or note.label in small or (raised != note.label and any(word.endswith(raised) for word in usual)):
            notes.remove(note)
            yield note


def _notes(page: PdfPage, body: float) -> Iterator[Block]:
    """Removes the footnotes from a page's lines and yields them: its foot, in small print or after a raised mark."""
    first = len(page.lines)
    while first and page.lines[first - 1].size < body * _SMALL:
        first -= 1
    for n in range(first - 1, 0, -1):
        line = page.lines[n]
        raised = line.words[0].size < 0.8 * line.size and _MARK.match(line.text)
        if raised and line.base - page.lines[n - 1].base > 1.5 * line.size and line.base > page.height / 2:
            first = n
    foot = page.lines[first:]
    starts = [n for n, line in enumerate(foot) if _MARK.match(line.text)]
    if not starts:
        return
    page.lines = [*page.lines[:first], *foot[: starts[0]]]
    for n, end in zip(starts, [*starts[1:], len(foot)], strict=True):
        lines = foot[n:end]
        text = _joined_text(lines)
        label = text[: _MARK.match(text).end()] if _MARK.match(text) else ""  # type: ignore[union-attr]
        text = text[len(label) :].strip()
        boxes = [(line.page, line.left, line.top, line.right, line.bottom) for line in lines]
        yield Block(text, "note", label.strip("(). "), place=place_of(boxes))


def _leading(pages: Sequence[PdfPage], body: float) -> float:
    """The usual distance between the baselines of a paragraph in the usual size."""
    steps = Counter[float]()
    for page in pages:
        for before, after in pairwise(page.lines):
            if 0.8 * body < after.base - before.base < 40 and abs(after.size - body) < 1 > abs(before.size - body):
                steps[round((after.base - before.base) * 2) / 2] += 1
    if not steps:
        return body * 1.2
    most = max(steps.values())
    return min(step for step, times in steps.items() if times * 3 >= most)


def _begun(line: Line) -> _Paragraph:
    label, n_words = ("", 0) if line.beside else _hanging_label(line)
    if n_words:
        indent = line.words[n_words].left if n_words < len(line.words) else line.left
        return _Paragraph([line], label, indent, True, read_label(label, bare=True)[0])
    return _Paragraph([line], "", line.left, False, read_label(line.text)[0])


def _hanging_label(line: Line) -> tuple[str, int]:
    """A number at the start of the line, before a gap or alone, and its number of words; ("", 0) if there is none."""
    for n_words in (1, 2, 3):
        if n_words > len(line.words):
            break
        head = " ".join(word.text for word in line.words[:n_words])
        steps, rest = read_label(head, bare=True)
        if steps and not rest and (n_words == len(line.words) or line.gap_after(n_words) > line.size * 0.6):
            return head, n_words
    return "", 0


def _reads_on(paragraph: _Paragraph, line: Line, leading: float, right: float, body: float) -> bool:
    """Whether the line continues the paragraph."""
    last = paragraph.last
    if line.beside or last.beside:
        return line.beside == last.beside and 0 < line.base - last.base <= 1.6 * line.size
    if abs(line.size - last.size) > 0.6 or _has_bullet(line) or _is_numbered_heading(line, last, right, body):
        return False
    if line.bold != last.bold and line.words[0].bold != last.words[-1].bold:
        return False
    _, n_words = _hanging_label(line)
    fits = abs(line.left - _margin(paragraph, line)) < line.size * 0.6
    ended = last.text.endswith(_ENDS) or last.right < right - 8 * body
    if _parts_number(last, line) or (
        _wraps(paragraph, line, leading) and not ended and not last.text.endswith((" and", " or"))
    ):
        return True  # in the middle of a sentence, a number at the start of the line is a reference
    if paragraph.steps and line.left < paragraph.lines[0].left - line.size * 0.6 and read_label(line.text)[0]:
        return False  # a number further left than the paragraph's own
    if n_words and not (paragraph.hanging and fits and not last.text.endswith((".", ";", ":"))):
        return False
    if _begins_anew(paragraph, line, fits=fits):
        return False
    if last.page != line.page or line.base < last.base:  # another page or column
        fits = fits or (len(paragraph.lines) > 1 and abs(line.left - last.left) < line.size * 0.6)
        return not last.text.endswith((".", ":", ";")) and (fits or line.text[:1].islower())
    if line.base - last.base > leading * 1.35 + (body if line.size > body * 1.15 else 0):
        return False
    if len(paragraph.lines) == 1 and not paragraph.hanging:
        fits = line.left <= paragraph.indent + 3 * body  # the second line may begin further right
    if not fits and line.left < paragraph.indent and paragraph.hanging:
        return not ended and len(paragraph.lines) == 1
    return fits or not ended


def _begins_anew(paragraph: _Paragraph, line: Line, *, fits: bool) -> bool:
    """Whether the line begins with a number or a title in capitals behind the end of a sentence or item."""
    said = paragraph.last.text
    if said.endswith(".") and RUN_IN.match(line.text):
        return True
    steps = read_label(line.text)[0] if said.endswith((*_ENDS, " and", " or")) else ()
    return bool(steps) and (not (paragraph.hanging and fits) or _continue(paragraph.steps, steps))


def _margin(paragraph: _Paragraph, line: Line) -> float:
    """Where a further line of the paragraph begins: not where its first line does if that is set in."""
    first, *further = paragraph.lines
    is_inset = bool(further) and further[0].left < first.left - 0.6 * first.size
    return paragraph.last.left if is_inset and paragraph.last.page == line.page else paragraph.indent


def _parts_number(last: Line, line: Line) -> bool:
    return bool(_PARTED.search(last.text)) and line.text[:1].isdigit()


def _is_numbered_heading(line: Line, last: Line, right: float, body: float) -> bool:
    """Whether a line looks like a heading with a number, and the line before had room for its first word."""
    had_room = right - last.right > line.words[0].right - line.left + 0.5 * line.size
    return had_room and _is_marked(line, body) and bool(read_label(line.text, bare=True)[0])


def _is_marked(line: Line, body: float) -> bool:
    return line.bold or line.size > body * _LARGE


def _has_bullet(line: Line) -> bool:
    mark = line.words[0].text
    return bool(_BULLET.fullmatch(mark)) or (mark == "o" and line.gap_after(1) > 0.6 * line.size)


def _continue(before: Sequence[Step], after: Sequence[Step]) -> bool:
    """Whether the second label is the next one after the first."""
    return bool(before) and any(
        style == other and follows(value, later)
        for style, value in before[-1].readings()
        for other, later in after[-1].readings()
    )


def _wraps(paragraph: _Paragraph, line: Line, leading: float) -> bool:
    """Whether the line is directly below the paragraph's last line and aligned with its further lines."""
    first, last = paragraph.lines[0], paragraph.last
    if line.page != last.page or not 0 < line.base - last.base <= leading * 1.35:
        return False
    begins = paragraph.indent if len(paragraph.lines) == 1 else last.left
    if len(paragraph.lines) == 1 and not paragraph.hanging:
        return first.left - 0.6 * line.size < line.left <= begins + 6 * line.size
    return abs(line.left - begins) < line.size * 0.6


def _levels(pages: Sequence[PdfPage], body: float) -> dict[tuple[float, bool], int]:
    """The levels of headings, 1 to 9, by size; at the same size, headings in capitals have a higher rank."""
    looks = {_look(line) for page in pages for line in page.lines if _is_marked(line, body)}
    return {look: min(n, 9) for n, look in enumerate(sorted(looks, reverse=True), start=1)}


def _look(line: Line) -> tuple[float, bool]:
    """The size to half a point, and whether the line is in capitals."""
    return round(line.size * 2) / 2, line.text.isupper()


def _block(paragraph: _Paragraph, body: float, levels: Mapping[tuple[float, bool], int]) -> Block:
    text = _joined_text(paragraph.lines)
    label = paragraph.label
    if label:
        text = text.removeprefix(label).strip()
    boxes = [(line.page, line.left, line.top, line.right, line.bottom) for line in paragraph.lines]
    first = paragraph.lines[0]
    indent, margin = (round(left - first.column, 1) for left in (paragraph.indent, first.left))
    place, margin = place_of(boxes), margin if paragraph.steps else 0.0
    if first.beside:
        return Block(text, first.beside, "", BOLD_LEVEL if first.beside == "heading" else 0, place=place)
    marked = first.size > body * _LARGE or all(line.bold for line in paragraph.lines)
    if not marked or len(text.split()) > 25 or text.endswith(";"):
        return Block(text, "text", label, 0, indent, place, margin)
    return Block(text, "heading", label, levels.get(_look(first), 0), indent, place, margin)


def _joined_text(lines: Sequence[Line]) -> str:
    """The lines as one text; after a hyphen at the end of a line, or a dash in a number, both are joined."""
    text = ""
    for line in lines:
        joins = (text.endswith("-") and not text.endswith(" -")) or (
            line.text[:1].isdigit() and bool(_PARTED.search(text))
        )
        text = f"{text}{line.text}" if joins else f"{text} {line.text}"
    return clean_line(text)
