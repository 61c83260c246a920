"""Reads the identifiers of controls, requirements and rules: those of the rows of a sheet, and codes before texts.

The identifier is a cell of its own ("AC-2(1)"), comes before a text ("GV.OC-01: …") or in brackets after a name
("Organizational Context (GV.OC): …"). The first running text of a row is the text of the unit. Each further text is a
unit named by its column, or by its mark if the lines of its cell begin with marks ("Ex1: …"). A short cell names the
row.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ragqa.corpus.cleaning import clean_line
from ragqa.corpus.documents.labels import MARKED, Value, parted
from ragqa.corpus.documents.model import Block, Kind

ID: Final = "id"  # the style of these numbers
CODE: Final = re.compile(r"\[([A-Z]{1,5}[ .-]?\d{1,4}(?:[.-]\d{1,3}|\(\d{1,3}\))*)\]\s*")  # "[H201] Use lamps"
_CODED: Final = re.compile(r"([A-Z]{2,5})-(\d{1,3})(?:\((\d{1,3})\))?[.:]?\s+(?=[A-Z])")  # "AC-2(1) Title" in a heading
_BOOKED: Final = re.compile(  # "SYSC 3.2 Title. …"
    r"([A-Z]{2,6})\s(\d{1,4}(?:\.\d{1,4}[A-Z]{0,2})+)\.?\s+(?=[A-Z“\"‘(\[])"
)
_ID = r"[A-Z][A-Za-z]{0,7}(?:[.-]?[A-Z0-9][A-Za-z0-9]{0,5}){0,4}(?:\(\w{1,4}\))*"
_WORD = r"[A-Z][A-Za-z]{1,12}[ _]"  # "Requirement 1.2", "CTL_101"
_ALONE: Final = re.compile(rf"(?=.*\d)((?:{_WORD})?(?:{_ID}|\d+(?:\.\w{{1,4}})+)|{_WORD}\d+)\.?$")
_BEFORE: Final = re.compile(rf"(?=\S*\d)({_ID})(?:: | [–—-] )(?=\S)")
_BEHIND: Final = re.compile(rf"[^():]{{2,80}} \(({_ID})\)(?:: ?|$)")
_MARK: Final = re.compile(r"(\w{1,8}\d{1,3}): ")
_RUNNING: Final = 6  # median words of a column's cells from which it may be running text
_LONG: Final = 15  # ... and from which it always is
_MOST: Final = 0.8  # share of a column's filled cells that must have an identifier
_LEAST: Final = 3

Row = Sequence[str]  # cells with their lines


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a sheet with identifiers and with running text; other columns are short. ``names`` are heads."""

    ids: tuple[int, ...]
    running: tuple[int, ...]
    names: tuple[str, ...]
    first: int  # the first row below the heads


def columns_of(rows: Sequence[Row]) -> Columns | None:
    """The columns of a sheet that lists items with identifiers; None for another sheet."""
    width = max(map(len, rows), default=0)
    filled = [[row[n] for row in rows if n < len(row) and row[n].strip()] for n in range(width)]
    known = [n for n, cells in enumerate(filled) if _has_ids(cells)]
    coded = [n for n in known if not any(re.match(_WORD, _id_of(cell)) for cell in filled[n])]
    ids = tuple(coded or known)  # "Count 1" beside "HB-1" is a name
    if not ids:
        return None
    first = next(n for n, row in enumerate(rows) if any(c < len(row) and _id_of(row[c]) for c in ids))
    heads = [row for row in rows[:first] if sum(bool(cell.strip()) for cell in row) > 1]
    names = tuple(
        clean_line(" ".join(row[n] for row in heads if n < len(row) and len(row[n].split()) < _RUNNING))
        for n in range(width)
    )
    running = tuple(n for n in range(width) if n not in ids and _is_running(filled[n]))
    return Columns(ids, running, names, first)


def blocks_of(rows: Sequence[Row], columns: Columns, place: str) -> Iterator[Block]:
    """The blocks of a sheet, with rows counted from 1. Heads of columns get the kind ``version``."""
    held = ""
    heads = {tuple(row) for row in rows[: columns.first]}
    for number, row in enumerate(rows, start=1):
        where = f"{place}{number}"
        cells = {n: cell for n, cell in enumerate(row) if cell.strip()}
        known = [n for n in columns.ids if n in cells and _id_of(cells[n])]
        if not known:
            if len(cells) == 1:
                text = clean_line(next(iter(cells.values())))
                yield Block(text, "heading" if len(text.split()) <= 2 * _RUNNING else "text", level=2, place=where)
            elif cells:
                kind: Kind = "version" if tuple(row) in heads else "text"
                yield Block(" | ".join(clean_line(cell) for cell in cells.values()), kind, place=where)
            continue
        running = [n for n in columns.running if n in cells]
        short = [n for n in cells if n not in (*columns.ids, *running)]
        own_text = not _is_alone(cells[known[-1]])
        for n in known:
            held, name, text = _parted(cells[n])
            if n == known[-1] and not own_text and short:
                name = clean_line(cells[short.pop(0)])
            kind = "heading" if name and (text or running) else "text"
            yield Block(name, kind, held, 3, place=where)
            if text:
                yield Block(text, place=where)
        for n in running[: not own_text]:
            yield from (Block(line, place=where) for line in _lines(cells[n]))
        for n in short:
            yield Block(": ".join(filter(None, (columns.names[n], clean_line(cells[n])))), "table", place=where)
        for n in running[not own_text :]:
            yield from _further(_lines(cells[n]), held, columns.names[n], where)


def _lines(cell: str) -> list[str]:
    return [clean_line(line) for line in cell.split("\n") if line.strip()]


def _further(lines: Sequence[str], above: str, name: str, where: str) -> Iterator[Block]:
    """A further text of a row, named by its column; if all lines have marks, each is named by its mark."""
    marks = [found[1] for line in lines if (found := _MARK.match(line))]
    if len(lines) == len(set(marks)):
        yield from (
            Block(line, label=f"{above}.{mark}", level=3, place=where) for line, mark in zip(lines, marks, strict=True)
        )
        return
    yield Block(lines[0], label=f"{above}.{name}", level=3, place=where)
    yield from (Block(line, place=where) for line in lines[1:])


def _is_running(cells: Sequence[str]) -> bool:
    """Whether a column's cells are sentences or lists, and not names."""
    usual = statistics.median(len(cell.split()) for cell in cells) if cells else 0
    said = sum(cell.rstrip().endswith((".", ";", "]")) or "\n" in cell.strip() for cell in cells)
    return usual >= _LONG or (usual >= _RUNNING and said * 2 >= len(cells))


def _has_ids(cells: Sequence[str]) -> bool:
    found = [known for cell in cells if (known := _id_of(cell))]
    words = Counter(known.split(" ")[0] for known in found if " " in known and not known.split(" ")[0].isupper())
    if sum(words.values()) > max(words.values(), default=0):  # "May 2024" and "June 2024" are dates
        return False
    numbered = sum(any(char.isdigit() for char in known) for known in found)
    return (
        len(found) >= max(_LEAST, _MOST * (len(cells) - 2))
        and len(set(found)) * 2 >= len(found)
        and (numbered * 2 >= len(found) or any(_BEHIND.match(clean_line(cell)) for cell in cells))
    )


def _id_of(cell: str) -> str:
    text = clean_line(cell)
    found = (_ALONE if _is_alone(cell) else _BEFORE).match(text) or _BEHIND.match(text)
    return found[1] if found else ""


def _is_alone(cell: str) -> bool:
    return bool(_ALONE.match(clean_line(cell)))


def _parted(cell: str) -> tuple[str, str, str]:
    """The identifier, name and text of a cell; text after an identifier includes it, as printed."""
    text = clean_line(cell)
    if _is_alone(cell):
        return _id_of(cell), "", ""
    if _BEFORE.match(text):
        return _id_of(cell), "", text
    found = _BEHIND.match(text)
    return _id_of(cell), text[: found.end()].rstrip(" :") if found else "", text[found.end() :] if found else text


def codes_of(blocks: Sequence[Block]) -> dict[int, tuple[str, int]]:
    """By place the codes before texts and headings, if there are several, each with where its text begins."""
    return {**_in_brackets(blocks), **_coded_headings(blocks), **_booked(blocks)}


def _in_brackets(blocks: Sequence[Block]) -> dict[int, tuple[str, int]]:
    """By place the codes in brackets before texts, if there are several, each with where its text begins."""
    texts = ((n, block.text) for n, block in enumerate(blocks) if block.kind == "text" and not block.label)
    found = {n: code for n, text in texts if (code := CODE.match(text)) and code.end() < len(text)}
    several = len({code[1] for code in found.values()}) >= MARKED
    return {n: (f"[{code[1]}]", code.end()) for n, code in found.items()} if several else {}


def _booked(blocks: Sequence[Block]) -> dict[int, tuple[str, int]]:
    """By place the codes of a book with a number of several parts before texts, if several rise: "SYSC 3.2 …"."""
    found: dict[str, list[tuple[Value, int, int]]] = {}
    for n, block in enumerate(blocks):
        if block.kind == "text" and not block.label and (code := _BOOKED.match(block.text)):
            found.setdefault(code[1], []).append((parted("", code[2]).value, n, code.end()))
    rising = (
        held
        for held in found.values()
        if len({value for value, *_ in held}) >= MARKED
        and sum(one[0] >= other[0] for one, other in pairwise(held)) * 4 <= len(held)  # contents may come before
    )
    return {n: (blocks[n].text[:end].rstrip(" ."), end) for held in rising for _, n, end in held}


def _coded_headings(blocks: Sequence[Block]) -> dict[int, tuple[str, int]]:
    """By place the codes before the titles of headings, such as "AC-2", if there are several and they rise."""
    found: dict[str, dict[tuple[int, int], tuple[int, str, int]]] = {}
    for n, block in enumerate(blocks):
        if block.kind == "heading" and not block.label and (code := _CODED.match(block.text)):
            value = int(code[2]), int(code[3] or 0)
            printed = block.text[: code.end()].rstrip(" .:")
            found.setdefault(code[1], {}).setdefault(value, (n, f"[{printed}]", code.end()))
    rising = [held for held in found.values() if all(one < other for one, other in pairwise(held))]
    several = sum(map(len, rising)) >= MARKED
    return {n: (label, at) for held in rising for n, label, at in held.values()} if several else {}
