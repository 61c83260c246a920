"""Finds tables on the pages of a PDF, by ruling lines with pdfplumber or by white space; joins them over pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, zip_longest
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.items import MAX_NAME
from ragqa.corpus.documents.labels import NAMED_BOX, RANKS, is_label, read_label
from ragqa.corpus.documents.model import Block, Kind, Parsed
from ragqa.corpus.documents.pdf_furniture import PdfPage
from ragqa.corpus.documents.pdf_lines import Line, Word
from ragqa.corpus.documents.sheets import CELLS, table_text

Span = tuple[float, float]  # left and right edge in points

_APART: Final = 3.5  # most sizes between the baselines of two rows
_NEAR: Final = 1.7  # most sizes between the baselines of two lines of one cell


def find_tables(path: Path, pages: Sequence[PdfPage], ruled: Sequence[int]) -> None:
    """Moves the words of tables and named boxes from the lines of these pages into tables."""
    import pdfplumber

    with pdfplumber.open(path) as document:
        for index in ruled:
            page, found = pages[index], document.pages[index]
            finder = found.debug_tablefinder()
            grids: list[tuple[Any, list[Any]]] = [
                (table.bbox, [row.cells for row in table.rows]) for table in finder.tables
            ]
            held = {cell for _, rows in grids for row in rows for cell in row}
            boxes = [(cell, [[cell]]) for cell in finder.cells if cell not in held]  # not in a table of pdfplumber
            for edges, grid in (*grids, *boxes):
                rows, inside = _cells(page, grid)
                rows = _columns_joined(rows)
                alone = len(rows) == 1 == len(rows[0]) and not read_label(rows[0][0])[0]
                named = NAMED_BOX.match(rows[0][0]) if alone else None
                if not named and (len(rows) < 2 or max(map(len, rows)) < 2):
                    continue
                page.lines = [
                    replace(line, words=kept)
                    for line in page.lines
                    if (kept := tuple(word for word in line.words if id(word) not in inside))
                ]
                kind: Kind = "note" if named else "table"
                place = place_of([(page.number, *edges)])
                page.tables.append(
                    ((0.0, edges[1]), Block(table_text(rows), kind, named[1] if named else "", place=place))
                )
            found.close()


def _cells(page: PdfPage, grid: Sequence[Sequence[tuple[float, ...] | None]]) -> tuple[list[list[str]], set[int]]:
    """The texts of a table's cells, by the words whose middle is in each, and the ids of those words."""
    words = [word for line in page.lines for word in line.words]
    inside: set[int] = set()
    rows = []
    for boxes in grid:
        row = []
        for box in boxes:
            own = [word for word in words if box and id(word) not in inside and _is_inside(word, box)]
            inside.update(map(id, own))
            row.append(clean_line(" ".join(word.text for word in own)))
        rows.append(row)
    return rows, inside


def _columns_joined(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows without empty columns; neighbouring columns that never overlap in their rows are joined."""
    columns: list[list[str]] = [[""] * len(rows)]
    for column in zip_longest(*rows, fillvalue=""):
        own, other = ([n for n, cell in enumerate(cells) if cell] for cells in (columns[-1], column))
        if not own or not other or own[-1] < other[0] or other[-1] < own[0]:
            columns[-1] = ["".join(cells) for cells in zip(columns[-1], column, strict=True)]
        else:
            columns.append(list(column))
    return [list(row) for row in zip(*columns, strict=True)]


def _is_inside(word: Word, box: tuple[float, ...]) -> bool:
    x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
    return box[0] - 1 <= x <= box[2] + 1 and box[1] - 1 <= y <= box[3] + 1


# Tables without lines ------------------------------------------------------------------------------------------------


def find_open_tables(pages: Sequence[PdfPage]) -> None:
    """Moves tables without ruling lines, whose cells are separated by white space, from the lines into tables."""
    lines = [line for page in pages for line in page.lines]
    by_number = {page.number: page for page in pages}
    taken: set[int] = set()
    n = 0
    while n < len(lines):
        region, edges = _region(lines, n)
        rows = list(_open_rows(region, edges)) if edges else []
        if not _is_open_table(rows):
            n += 1
            continue
        terms = len(edges) == 1 and all(len(cells[1]) > MAX_NAME for _, cells in rows)
        for number, own in groupby(rows, key=lambda row: row[0][0].page):
            held = list(own)
            for part in ([row] for row in held) if terms else (held,):
                boxes = [(number, one.left, one.top, one.right, one.bottom) for inside, _ in part for one in inside]
                text = table_text([clean_line(" ".join(cell)) for cell in cells] for _, cells in part)
                at = region[0].column, part[0][0][0].top
                by_number[number].tables.append((at, Block(text, "table", place=place_of(boxes))))
        taken.update(map(id, region))
        n += len(region)
    for page in pages if taken else ():
        page.lines = [line for line in page.lines if id(line) not in taken]


def _region(lines: Sequence[Line], start: int) -> tuple[list[Line], list[float]]:
    """The lines from this one on that have white space at the same places, and these places; [] if there are none."""
    first = lines[start]
    region, inked = [first], _inked(first)
    edges = _edges(inked, 1.6 * first.size)
    for n in range(start + 1, len(lines) if edges else 0):
        line, step = lines[n], lines[n].base - region[-1].base
        if not (0 < step < _APART * line.size or line.page == region[-1].page + 1) or abs(line.size - first.size) > 1:
            break
        all_inked = _united([*inked, *_inked(line)])
        found = _edges(all_inked, 0.8 * first.size)
        alone = line.right < found[0] and not 0 < step < _NEAR * line.size if found else True
        fewer = len(found) < len(edges) and (len(found) < 2 or len(_edges(_inked(line), 1.6 * line.size)) < 2)
        if fewer or alone:
            break
        steps, rest = read_label(line.text)
        if steps and not rest and steps[0].style in RANKS and line.left > found[0]:  # "Part B" alone
            break
        region, inked, edges = [*region, line], all_inked, found
    return region, edges


def _inked(line: Line) -> list[Span]:
    return _united([(word.left, word.right) for word in line.words])


def _united(spans: Iterable[Span]) -> list[Span]:
    """The union of these spans, from left to right."""
    found: list[Span] = []
    for left, right in sorted(spans):
        if found and left <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], right)
        else:
            found.append((left, right))
    return found


def _edges(inked: Sequence[Span], wide: float) -> list[float]:
    """The middles of the white spaces between these spans that are wide enough to separate cells."""
    return [(right + left) / 2 for (_, right), (left, _) in pairwise(inked) if left - right > wide]


def _open_rows(region: Sequence[Line], edges: Sequence[float]) -> Iterator[tuple[list[Line], list[list[str]]]]:
    """The lines and the cells' words of each row; rows have space between them, or begin in the first column."""
    steps = [after.base - before.base for before, after in pairwise(region)]
    least = min((step for step in steps if step > 0), default=0.0)
    far = [False, *(not 0 < step < 1.25 * least for step in steps)]
    begun = [line.left < edges[0] for line in region]
    spaced = 2 * sum(far) + 2 >= sum(begun)
    held: list[Line] = []
    for line, begins, is_far in zip((*region, None), (*begun, True), (*far, True), strict=True):
        if held and (line is None or is_far or (begins and not spaced)):
            words = [word for own in held for word in own.words]
            inner = zip((0.0, *edges), (*edges, 1e9), strict=True)
            yield held, [[word.text for word in words if left <= word.left < right] for left, right in inner]
            held = []
        held = [*held, line] if line else held


def _is_open_table(rows: Sequence[tuple[list[Line], list[list[str]]]]) -> bool:
    """Whether these rows are a table, and not numbers beside their texts or columns of running text."""
    firsts = [" ".join(cells[0]) for _, cells in rows]
    if len(rows) < 3 or sum(map(bool, firsts)) * 3 < 2 * len(rows):
        return False
    numbered = sum(all(not cell or is_label(" ".join(cell)) for cell in cells[:-1]) for _, cells in rows)
    full = sum(all(cells) for _, cells in rows)
    names = all(len(first.split()) <= MAX_NAME for first in firsts)
    return numbered * 2 < len(rows) <= full * 2 and (names or len(rows[0][1]) > 2)


def whole_tables(blocks: Iterable[Block], parsed: Parsed) -> Iterator[Block]:
    """The blocks, with tables that continue on the next page joined; a repeated head is left out."""
    table: Block | None = None
    notes: list[Block] = []  # of the pages between
    for block in (*blocks, None):
        if table and block and block.kind == "note" and block.label not in {"", table.label} and block.label.isdigit():
            notes.append(block)
            continue
        if table and block and _goes_on(table, block):
            rows, further = table.text.split("\n"), block.text.split("\n")
            if further[0] == rows[0]:
                parsed.leave_out("head of a table on a further page", further.pop(0))
            if further and len(rows) > 1 and not further[0].split(CELLS)[0].strip():  # a row cut by the page break
                cells = zip_longest(rows.pop().split(CELLS), further.pop(0).split(CELLS), fillvalue="")
                further.insert(0, CELLS.join(f"{one} {other}".strip() for one, other in cells))
            table = replace(table, text="\n".join((*rows, *further)), place=f"{table.place};{block.place}")
            continue
        if table:
            yield table
        yield from notes
        notes.clear()
        table = block if block and block.kind == "table" else None
        if block and not table:
            yield block


def _goes_on(table: Block, block: Block) -> bool:
    """Whether the second table is on the page after the first and has the same number of columns."""
    pages = [int(one.place.rpartition("page=")[2].partition("&")[0]) for one in (table, block)]
    columns = [max(row.count(CELLS) for row in one.text.split("\n")) for one in (table, block)]
    return block.kind == "table" and pages[0] + 1 == pages[1] and columns[0] == columns[1]


def place_of(boxes: Sequence[tuple[int, float, float, float, float]]) -> str:
    """The place of these boxes: one box for each page."""
    found = []
    for number in dict.fromkeys(box[0] for box in boxes):
        own = [box[1:] for box in boxes if box[0] == number]
        edges = (min(b[0] for b in own), min(b[1] for b in own), max(b[2] for b in own), max(b[3] for b in own))
        found.append(f"page={number}&box={','.join(f'{edge:.0f}' for edge in edges)}")
    return ";".join(found)
