"""Names places within a passage: rows and cells of a table, paragraphs, bullets and dashes."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from ragqa.corpus.documents.counting import MAX_TITLE
from ragqa.corpus.documents.labels import GUIDANCE, ORDINALS, split_label
from ragqa.corpus.documents.model import OUTERMOST, TOLERANCE, VERBS, Block, Unit, is_outside
from ragqa.corpus.documents.sheets import CELLS

_TABLE: Final = re.compile(r"((?:Table|TABLE)\s[\dA-Z][\w.-]*)")
_DASHES: Final = "–—−-"
_MARK: Final = re.compile(r"([•●▪■◦○‣\uf0a7\uf0b7\uf0d8➢❖–—−-]|o(?=\s))\s*(?=\S)")  # before a paragraph in a list
_NAMED: Final = re.compile(r"(\w+(?: \w+){0,3}), \w+(?: \w+)?:?")  # "Unusual fees, such as"
_DEFINES: Final = re.compile(
    r"[“\"‘']?((?:[\w-]+ ){0,5}?[\w-]+)[”\"’']?(?: or [^.;:]{2,60}|, [^.;:]{2,120},)? "
    r"(?:means|includes|has the meaning)\b"
)
_OPENS_TERM: Final = re.compile(r"[“\"‘']([^”\"’']{2,80})[”\"’']")
_MOST_COUNTED: Final = 10  # paragraphs that are counted
TERM: Final = "(term)"  # the style of a defined term with a list of its own
MAX_NAME: Final = 6  # most words of a cell that names its row
Item = tuple[int, int, str]  # start and end offset in a text, and number
Counted = tuple[str, int, str]  # a paragraph, the length of its mark, and its number


def table_number(unit: Unit) -> str:
    """The number of a table: that in its heading, such as "Table 7: …", or that of its unit."""
    found = _TABLE.match(unit.captions[-1][1]) if unit.captions else None
    return found[1] if found else unit.number


def is_caption(block: Block) -> bool:
    """Whether a paragraph only names the table after it: "Table 7: Ratings"."""
    few = block.kind == "text" and not block.label and len(block.text.split()) <= MAX_TITLE
    return few and bool(_TABLE.match(block.text)) and not VERBS.search(block.text)


def lists_terms(text: str) -> bool:
    """Whether the table has no heads, but a term and its definition in each row."""
    rows = [row.split(CELLS) for row in text.split("\n")]
    return len(rows[0][-1].split()) > MAX_NAME and all(len(row) == 2 for row in rows)


def cells_of(text: str, number: str, at: int, *, terms: bool) -> Iterator[Item]:
    """The rows of a table, named by their first cell, and its long cells, named by the row or the head of the column.

    If the first cells repeat, the first column of other cells names the rows. In a list of ``terms``, the term does.
    """
    heads, *further = [row.split(CELLS) for row in text.split("\n")]
    column = _naming_column(further)
    tail = _common_tail([cells[0].split() for cells in further])
    for n, cells in enumerate((heads, *further)):
        marks = takewhile(bool, (split_label(cell)[0].rstrip(".") for cell in cells[:-1]))
        name = ".".join(marks) or cells[column % len(cells)].removesuffix(tail).strip()
        place, end = at, at + len(CELLS.join(cells))
        by_row = 0 < len(name.split()) <= MAX_NAME and len(cells) > 1
        row = f"{number.rstrip('.')}.{'' if terms and not name.isdigit() else 'row '}{name}".lstrip(".")
        if by_row and (n or terms):
            yield at, end, row
        for cell, head in zip(cells, heads, strict=False):
            if (n or terms) and len(cell.split()) > MAX_NAME:
                yield (
                    place,
                    place + len(cell),
                    row if by_row else f"{number.rstrip('.')}.column {head.partition(' (')[0]}".lstrip("."),
                )
            place += len(cell) + len(CELLS)
        at = end + 1


def _naming_column(rows: Sequence[Sequence[str]]) -> int:
    """The column that tells the rows apart: the first, or a later one with another short cell in each row."""
    columns = [list(cells) for cells in zip(*rows, strict=False)]
    if not columns or len(set(columns[0])) * 2 > len(rows):
        return 0
    apart = (n for n, cells in enumerate(columns) if len({cell for cell in cells if _is_name(cell)}) == len(rows))
    return next(apart, 0)


def _is_name(cell: str) -> bool:
    return 0 < len(cell.split()) <= MAX_NAME


def terms_of(blocks: Sequence[Block]) -> list[tuple[str, int]]:
    """For each paragraph the term that it defines, empty if none, and where its definition begins.

    A sentence with a verb of definitions counts only beside another.
    """
    listed = [block.label if block.label and block.text.startswith(f"{block.label} ") else "" for block in blocks]
    said = [_DEFINES.match(block.text) for block in blocks]
    several = sum(map(bool, (*said, *listed))) > 1
    return [
        (term.rstrip(" :"), len(term) + 1) if term else (found[1] if found and several else "", 0)
        for term, found in zip(listed, said, strict=True)
    ]


def defines_a_term(text: str) -> bool:
    """Whether a paragraph begins with a quoted term and what it means."""
    return text[:1] in set("“\"‘'") and bool(_DEFINES.match(text))


def is_ended(unit: Unit, block: Block) -> bool:
    """Whether a text is outside this box, or introduces another list further left, such as "For others:"."""
    if unit.style == GUIDANCE and not unit.is_heading:
        return 0 < block.indent < unit.indent <= TOLERANCE  # by the levels of a web page
    if TERM in {unit.style, *(above.style for above in unit.above())} and _OPENS_TERM.match(block.text):
        return True
    if unit.is_item and unit.parent and defines_a_term(block.text):  # behind the list of the term before
        return any(defines_a_term(own.text) for own in unit.parent.texts)
    listed = unit.is_item or (unit.style == "1." and not unit.is_heading)
    return listed and (block.text.endswith(":") or unit.indent <= TOLERANCE) and is_outside(block, unit)


def ends_before(unit: Unit, block: Block) -> bool:
    """Whether the text is further left than this item, or than a rule's number, and so not part of it."""
    if not unit.is_item:
        return unit.is_rule and 0 < block.indent < unit.margin - TOLERANCE
    if block.indent and unit.indent and not block.indent == unit.indent == OUTERMOST:
        return is_outside(block, unit)
    if block.text.isupper() and " " in block.text and not any(own.text.isupper() for own in unit.texts[:1]):
        return True  # "HAS ADOPTED THIS REGULATION:"
    return block.text[:1].islower() and unit.style != "(1)"  # "…, as the Regulator may direct" ends its items


def opened_term(text: str) -> str:
    """The quoted term with which a paragraph begins, if a list of what it means comes next; else ""."""
    found = _OPENS_TERM.match(text) if text.endswith((":", "—", "–")) else None
    return found[1] if found else ""


def _common_tail(names: Sequence[Sequence[str]]) -> str:
    """The ending, of three words or more with a capital first, that at least three names and most of them share."""
    tails = Counter(tuple(words[n:]) for words in names for n in range(1, len(words) - 2) if words[n][0].isupper())
    least = max(3, len(names) // 2 + 1)
    return max((" ".join(tail) for tail, times in tails.items() if times >= least), key=len, default="")


def counted_paragraphs(blocks: list[Block], number: str) -> Iterator[Counted]:
    """Paragraphs, bullets and dashes, each with a number by its place among its kind, from first to tenth.

    Bullets restart after each paragraph. A bullet that is only a name, such as "Unusual fees, such as", names those
    below it. A single paragraph gets no number.
    """
    held: list[tuple[str, int, str]] = []  # marks, outermost first, with their counts and names
    n_paragraphs = 0
    for block, (term, start) in zip(blocks, terms_of(blocks), strict=True) if len(blocks) > 1 else ():
        found = _MARK.match(block.text)
        marks = [mark for mark, _, _ in held]
        if not found:
            held.clear()
            n_paragraphs += 1
            path = [(" paragraph", n_paragraphs)]
        else:
            known = marks.index(found[1]) if found[1] in marks else len(held)
            opens = _NAMED.fullmatch(block.text, found.end())
            held[known:] = [(found[1], held[known][1] + 1 if known < len(held) else 1, opens[1] if opens else "")]
            path = [(name or (" dash" if mark in _DASHES else " bullet"), 0 if name else n) for mark, n, name in held]
            path[-1] = (" dash" if found[1] in _DASHES else " bullet", held[-1][1])
        steps = (f"{ORDINALS[n - 1] if 0 < n <= _MOST_COUNTED else ''}{name}" for name, n in path)
        known_all = all(n <= _MOST_COUNTED for _, n in path)
        name = ".".join((number.rstrip("."), *steps)).lstrip(".") if known_all else ""
        name = f"{number.rstrip('.')}.{term}".lstrip(".") if term else name
        yield block.text, start or (found.end() if found else 0), name


def whole_paragraphs(text: str, counted: deque[Counted]) -> Iterator[Item]:
    """The paragraphs that the text contains whole; removes them and those before from ``counted``."""
    at = 0
    for line in text.split("\n"):
        if any(line == said for said, _, _ in counted):
            while (one := counted.popleft())[0] != line:
                pass
            if one[2]:
                yield at + one[1], at + len(line), one[2]
        at += len(line) + 1
