"""Tables as CSV or XLSX for spreadsheets; no cell written here is read as a formula."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeAlias
from zipfile import BadZipFile

from ragqa.errors import CorpusError
from ragqa.infra.cleaning import cell as plain_cell
from ragqa.infra.cleaning import writable
from ragqa.infra.files import replacing

Value: TypeAlias = str | float
LONGEST_CELL: Final = 32_000  # characters; Excel takes 32,767
_DAMAGE: Final = (BadZipFile, LookupError, ValueError, SyntaxError, TypeError, EOFError, zlib.error, RuntimeError)
_MOST_COLUMNS: Final = 100  # that are read of a workbook, which may claim 16,384
_GUARD: Final = "'"
_WIDTH: Final = 16  # characters of a column without a given width


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of a workbook. By head, ``widths`` gives a column's characters, ``choices`` the values of its cells."""

    title: str
    heads: tuple[str, ...]
    rows: Sequence[Sequence[Value]]
    widths: Mapping[str, int] = field(default_factory=dict)
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hidden: str = ""  # the head of a column that is not shown


def write_sheets(path: Path, sheets: Sequence[Sheet]) -> None:
    """Writes all sheets as ``.xlsx``, or the first as ``.csv``; replaces the file in one step. Raises CorpusError."""
    if path.suffix.lower() not in {".csv", ".xlsx"}:
        raise CorpusError(f"expected a file ending in .csv or .xlsx, found {path.name!r}; name another")
    with replacing(path) as beside:
        if path.suffix.lower() == ".xlsx":
            _write_book(beside, sheets)
            return
        with beside.open("w", newline="", encoding="utf-8-sig") as file:
            rows = ([plain_cell(writable(str(value))) for value in row] for row in sheets[0].rows)
            csv.writer(file).writerows([sheets[0].heads, *rows])


def put(place: Any, value: Value) -> None:  # noqa: ANN401 - a cell of openpyxl
    """Writes a value into a cell of a workbook; a string is always text, even if it begins like a formula."""
    place.value = writable(value)[:LONGEST_CELL] if isinstance(value, str) else value
    if isinstance(value, str):
        place.data_type = "s"
        place.quotePrefix = int(plain_cell(value) != value)


def open_book(path: Path | IO[bytes], **how: bool) -> Any:  # noqa: ANN401 - openpyxl has no types
    """A workbook, opened with openpyxl's options. Raises ValueError if it is damaged, and OSError."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        return load_workbook(path, **how)
    except (InvalidFileException, *_DAMAGE) as error:
        raise ValueError(str(error)) from error


def read_lines(path: Path) -> list[list[str]]:
    """The rows of a CSV file, or the filled ones of a workbook's first sheet, as texts. Raises CorpusError."""
    try:
        if path.suffix.lower() == ".xlsx":
            with path.open("rb") as packed, closing(open_book(packed, read_only=True, data_only=True)) as book:
                sheet = book.worksheets[0]
                widest = min(sheet.max_column or _MOST_COLUMNS, _MOST_COLUMNS)  # each row is padded to it
                rows = sheet.iter_rows(values_only=True, max_col=widest)
                return [[_as_text(value) for value in row] for row in rows if any(value is not None for value in row)]
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [[_unguarded(value) for value in row] for row in csv.reader(file)]
    except (OSError, csv.Error, *_DAMAGE) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        msg = f"{path.name} cannot be read as a sheet ({why}); expected .csv or .xlsx as ragqa wrote it"
        raise CorpusError(msg) from error


def _write_book(path: Path, sheets: Sequence[Sheet]) -> None:
    from openpyxl import Workbook
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    book = Workbook()
    book.remove(book.active)
    for each in sheets:
        sheet = book.create_sheet(each.title)
        for n_row, row in enumerate((each.heads, *each.rows), start=1):
            for n_column, value in enumerate(row, start=1):
                put(sheet.cell(n_row, n_column), value)
        for n_column, head in enumerate(each.heads, start=1):
            letter = get_column_letter(n_column)
            sheet.column_dimensions[letter].width = each.widths.get(head, _WIDTH)
            sheet.column_dimensions[letter].hidden = head == each.hidden
            if head in each.choices:
                choice = DataValidation(type="list", formula1=f'"{",".join(each.choices[head])}"', allow_blank=True)
                sheet.add_data_validation(choice)
                choice.add(f"{letter}2:{letter}{max(2, len(each.rows) + 1)}")
        sheet.freeze_panes = "B2"
    book.save(path)


def _as_text(value: Any) -> str:  # noqa: ANN401 - text, number, day or nothing
    if value is None:
        return ""
    return value.date().isoformat() if hasattr(value, "date") else str(value).strip()


def _unguarded(value: str) -> str:
    return value.removeprefix(_GUARD) if plain_cell(value[1:]) == value else value
