"""Reads spreadsheets: XLSX with openpyxl (values, never formulas or macros) and CSV; a sheet becomes a table."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.cleaning import clean_line, clean_text
from ragqa.corpus.documents.catalogue import blocks_of, columns_of
from ragqa.corpus.documents.model import Block, Parsed, UnreadableError, count_words

CELLS: Final = " | "
_MAX_ROWS: Final = 100_000
MAX_COLUMNS: Final = 256
_PER_CENT: Final = re.compile(r"[#,0]*(?:\.[0#?]*)?%(?:$|;)")  # the number format of a share
_LONG: Final = 12  # most words of a heading cell
_ROWS_AT_ONCE: Final = 20  # rows of a table in one block, under its headings


def parse_xlsx(path: Path) -> Parsed:
    """The cells of every visible sheet, with the values that were last computed."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    parsed = Parsed()
    with path.open("rb") as file:  # closed even if the workbook is damaged, as the process reads others after it
        try:
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        except (InvalidFileException, KeyError, ValueError, OSError, SyntaxError, TypeError) as error:
            found = str(error)[:80]
            msg = f"expected a whole workbook, found a damaged one ({found}); open it in Excel and save it again"
            raise UnreadableError(msg) from error
        _add_sheets(parsed, book)
    parsed.words = _raw_words(path)
    if path.suffix.lower() == ".xlsm":
        parsed.warnings.append("its macros are not read")
    return parsed


def _raw_words(path: Path) -> Counter[str]:
    """The words of all text cells, from the XML of the file; not of numbers, which may be shown in many ways."""
    from lxml import etree

    found: list[str] = []
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)

        def read(name: str) -> Any:  # noqa: ANN401 - an lxml element
            return etree.fromstring(archive.read(name), parser)

        shared = [
            "".join(text.text or "" for text in item.iterfind(".//{*}t") if not text.getparent().tag.endswith("rPh"))
            for name in names
            if name.endswith("sharedStrings.xml")
            for item in read(name)
        ]
        for name in names:
            if re.match(r"/?xl/worksheets/[^/]+\.xml$", name):
                for cell in read(name).iterfind(".//{*}c"):
                    value = cell.findtext("{*}v") or ""
                    if cell.get("t") == "s" and value.isdigit() and int(value) < len(shared):
                        found.append(shared[int(value)])
                    elif cell.get("t") == "inlineStr":
                        found.append("".join(cell.itertext()))
    return count_words("\n".join(map(clean_text, found)))


def _add_sheets(parsed: Parsed, book: Any) -> None:  # noqa: ANN401 - openpyxl has no types
    for sheet in book.worksheets:
        sheet.reset_dimensions()
        if sheet.sheet_state != "visible":
            shown = " ".join(_shown(value) for row in sheet.iter_rows(values_only=True) for value in row)
            parsed.leave_out("hidden sheet", clean_line(f"{sheet.title} {shown}"))
            continue
        rows = [[_printed(cell) for cell in row[:MAX_COLUMNS]] for row in islice(sheet.iter_rows(), _MAX_ROWS + 1)]
        if not re.fullmatch(r"Sheet ?\d*", sheet.title):
            parsed.add(Block(clean_line(sheet.title), "heading", level=1, place=f"sheet={sheet.title}"))
        place = f"sheet={sheet.title}&row="
        columns = columns_of(rows)
        if columns is None:
            _add_table(parsed, ([clean_line(cell) for cell in row] for row in rows), place)
            continue
        for block in blocks_of(rows, columns, place):
            if block.kind == "version":
                parsed.leave_out("heads of columns", block.text)
            else:
                parsed.add(block)
    book.close()


def parse_csv(path: Path) -> Parsed:
    """The rows of a file in UTF-8, UTF-16 or else Windows-1252; the delimiter is detected from the first lines."""
    text, parsed = decoded(path.read_bytes()), Parsed()
    parsed.words = count_words(clean_text(text))
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:20_000], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel_tab if path.suffix.lower() == ".tsv" else csv.excel
    rows = csv.reader(io.StringIO(text, newline=""), dialect, doublequote=True)  # the first lines may have no quotes
    try:
        _add_table(parsed, ([clean_line(cell) for cell in row[:MAX_COLUMNS]] for row in rows), "row=")
    except csv.Error as error:
        msg = f"expected rows of cells, found row {rows.line_num:,} that is none ({error}); fix it"
        raise UnreadableError(msg) from error
    return parsed


def decoded(data: bytes) -> str:
    """The text of a file without a stated encoding."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                break
    return data.decode("cp1252", "replace")


def table_text(rows: Iterable[Sequence[str]]) -> str:
    """The text of a table: one line for each row that is not empty."""
    return "\n".join(CELLS.join(row).strip() for row in rows if any(row))


def _printed(cell: Any) -> str:  # noqa: ANN401 - openpyxl has no types
    """The value of a cell; a share that the sheet shows in per cent has all its digits."""
    value = cell.value
    if isinstance(value, int | float) and not isinstance(value, bool) and _PER_CENT.match(cell.number_format or ""):
        return f"{_shown(round(100.0 * value, 10))}%"
    return _shown(value)


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return clean_text(str(value))


def _add_table(parsed: Parsed, rows: Iterator[list[str]], place: str) -> None:
    """Adds blocks of several rows, each under the headings: the first row with more than one cell."""
    heading: list[str] = []
    waiting: list[list[str]] = []
    first = number = n_rows = 0
    for number, row in enumerate(islice(rows, _MAX_ROWS), start=1):
        if not any(row):
            continue
        while row and not row[-1]:
            row.pop()
        filled = [cell for cell in row if cell]
        if not heading and len(filled) == 1 and len(filled[0].split()) > _LONG:  # running text before the table
            parsed.add(Block(filled[0], place=f"{place}{number}"))
            continue
        if not heading and len(row) > 1:
            heading = row
            continue
        first, n_rows = first or number, n_rows + 1
        waiting.append(row)
        if len(waiting) == _ROWS_AT_ONCE:
            parsed.add(Block(table_text([heading, *waiting]), "table", place=f"{place}{first}"))
            waiting, first = [], 0
    if waiting or (heading and not n_rows):
        parsed.add(Block(table_text([heading, *waiting]), "table", place=f"{place}{first or 1}"))
    if number == _MAX_ROWS and next(rows, None) is not None:
        parsed.warnings.append(f"only the first {_MAX_ROWS:,} rows of a sheet are read")
