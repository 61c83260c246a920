"""Tables with ruling lines and boxes on the pages of a PDF, found by pdfplumber; a table over several pages is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.labels import NAMED_BOX, read_label
from ragqa.corpus.documents.model import Block, Kind, Parsed
from ragqa.corpus.documents.pdf_furniture import PdfPage
from ragqa.corpus.documents.pdf_lines import Word
from ragqa.corpus.documents.sheets import CELLS, table_text


def find_tables(path: Path, pages: Sequence[PdfPage], ruled: Sequence[int]) -> None:
    """Takes the words of tables and named boxes out of the lines of these pages and keeps their cells instead."""
    import pdfplumber

    with pdfplumber.open(path) as document:
        for index in ruled:
            page, found = pages[index], document.pages[index]
            finder = found.debug_tablefinder()
            grids: list[tuple[Any, list[Any]]] = [
                (table.bbox, [row.cells for row in table.rows]) for table in finder.tables
            ]
            held = {cell for _, rows in grids for row in rows for cell in row}
            boxes = [(cell, [[cell]]) for cell in finder.cells if cell not in held]  # pdfplumber: no table
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
                page.tables.append((edges[1], Block(table_text(rows), kind, named[1] if named else "", place=place)))
            found.close()


def _cells(page: PdfPage, grid: Sequence[Sequence[tuple[float, ...] | None]]) -> tuple[list[list[str]], set[int]]:
    """The texts of a table's cells, each of the words whose middle stands in it, and those words; no word is lost."""
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
    """The rows without empty columns; of two side by side one that ends where the other begins is cut by a rule."""
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


def whole_tables(blocks: Iterable[Block], parsed: Parsed) -> Iterator[Block]:
    """Tables that go on on the next page put together; a head that is printed again is left out."""
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
            if further and len(rows) > 1 and not further[0].split(CELLS)[0].strip():  # a row that the page's end cuts
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
    """Whether the second is on the page behind the first and has as many columns."""
    pages = [int(one.place.rpartition("page=")[2].partition("&")[0]) for one in (table, block)]
    columns = [max(row.count(CELLS) for row in one.text.split("\n")) for one in (table, block)]
    return block.kind == "table" and pages[0] + 1 == pages[1] and columns[0] == columns[1]


def place_of(boxes: Sequence[tuple[int, float, float, float, float]]) -> str:
    """One box a page."""
    found = []
    for number in dict.fromkeys(box[0] for box in boxes):
        own = [box[1:] for box in boxes if box[0] == number]
        edges = (min(b[0] for b in own), min(b[1] for b in own), max(b[2] for b in own), max(b[3] for b in own))
        found.append(f"page={number}&box={','.join(f'{edge:.0f}' for edge in edges)}")
    return ";".join(found)
