"""Wikitext's tables, line by line, and the Markdown tables that they and infoboxes become."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

PIPE: Final = "\x02"  # stands for a "|" that is text; wikitext itself holds no control characters
BREAK: Final = "\x03"  # stands for <br>
MAX_COLUMNS: Final = 60  # a span that asks for more is cut
MAX_ROWS_SPANNED: Final = 200
MAX_DEPTH: Final = 10  # of tables in tables; deeper ones are read as part of the table around them
_SPAN = re.compile(r"\b(colspan|rowspan)\s*=\s*[\"']?\s*(\d{1,4})", re.IGNORECASE)
_MARKER = re.compile(r"^[*#:;]+\s*")


def one_line(text: str) -> str:
    """The text of a cell on one line: what stands on lines of a list or is parted by <br> is parted by commas."""
    words = ""
    for line in text.replace(BREAK, "\n* ").split("\n"):
        marker = _MARKER.match(line)
        item = " ".join(line[marker.end() if marker else 0 :].split())
        if item:
            words += (("" if words.endswith((",", ":", ";")) else ",") if marker and words else "") + " " + item
    return words.strip()


def markdown_table(rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table in Markdown, its first row as the head; one column gives paragraphs, no row ``""``."""
    filled = [row for row in rows if any(row)]
    width = max(map(len, filled), default=0)
    if width < 2:
        return "\n\n".join([*([caption] if caption else []), *(cell for row in filled for cell in row)])
    lines = [_row([*row, *[""] * (width - len(row))]) for row in filled]
    lines.insert(1, _row(["---"] * width))
    return "\n".join([*([caption, ""] if caption else []), *lines]).replace("|", PIPE)


def _row(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


@dataclass(slots=True)
class _Cell:
    lines: list[str]
    columns: int = 1
    rows: int = 1


@dataclass(slots=True)
class _Table:
    rows: list[list[_Cell]] = field(default_factory=lambda: [[]])
    caption: str = ""
    inner: list[str] = field(default_factory=list)  # tables that stood in its cells, already Markdown

    def markdown(self) -> str:
        """The table, then those that stood in its cells. A cell that spans rows is repeated in each, so all can be read
        alone; one that spans columns is followed by empty ones.
        """
        grid: list[list[str]] = []
        waiting: dict[int, tuple[int, str]] = {}  # of each column, how many more rows a cell above reaches into
        for cells in self.rows:
            row: list[str] = []
            pending = list(reversed(cells))
            if not pending:
                continue
            while pending or len(row) in waiting:
                column = len(row)
                if column >= MAX_COLUMNS:
                    break
                if column in waiting:
                    left, text = waiting.pop(column)
                    row.append(text)
                    if left > 1:
                        waiting[column] = (left - 1, text)
                    continue
                cell = pending.pop()
                text = one_line("\n".join(cell.lines))
                shown = [text, *[""] * (min(cell.columns, MAX_COLUMNS - column) - 1)]
                if cell.rows > 1:
                    further = min(cell.rows, MAX_ROWS_SPANNED) - 1
                    waiting |= {column + place: (further, words) for place, words in enumerate(shown)}
                row += shown
            grid.append(row)
        return "\n\n".join(text for text in (markdown_table(grid, one_line(self.caption)), *self.inner) if text)


class TableReader:
    """Reads the lines of ``{| … |}``; text of a line outside of tables is no concern of it."""

    def __init__(self) -> None:
        self._open: list[_Table] = []

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def take(self, line: str) -> str | None:
        """Whether the line belongs to a table: None if not; else the Markdown of the outermost table it ends, or ""."""
        bare = line.lstrip(" \t:")
        if bare.startswith("{|") and len(self._open) < MAX_DEPTH:
            self._open.append(_Table())
            return ""
        if not self._open:
            return None
        table = self._open[-1]
        if bare.startswith("|}"):
            return self._end()
        if bare.startswith("|-"):
            table.rows.append([])
        elif bare.startswith("|+"):
            table.caption = bare[2:].rpartition("|")[2]
        elif bare.startswith(("|", "!")):
            parts = re.split(r"\|\||!!", bare[1:]) if bare[0] == "!" else bare[1:].split("||")
            table.rows[-1] += map(_cell, parts)
        elif table.rows[-1]:
            table.rows[-1][-1].lines.append(line)
        elif table.caption:
            table.caption += f" {line}"
        return ""

    def close(self) -> str:
        """The Markdown of what is still open: a heading or the page's end closes every table."""
        closed = ""
        while self._open:
            closed = self._end()
        return closed

    def _end(self) -> str:
        markdown = self._open.pop().markdown()
        if not self._open:
            return markdown
        if markdown:
            self._open[-1].inner.append(markdown)
        return ""


def _cell(source: str) -> _Cell:
    attributes, pipe, text = source.partition("|")
    if not pipe:
        return _Cell([source])
    spans = {name.lower(): max(1, int(number)) for name, number in _SPAN.findall(attributes)}
    return _Cell([text], spans.get("colspan", 1), spans.get("rowspan", 1))
