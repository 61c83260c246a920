"""The register as CSV or XLSX and back: who deals with a row and how far that is, merged row by row by id.

A sheet holds beside these what they were when it was written, so that what somebody changed there is told from
what was changed here since: both changed to different words is a conflict, shown and not taken. No cell is a formula.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ragqa.errors import CorpusError
from ragqa.infra.cleaning import cell as plain_cell
from ragqa.infra.files import replacing
from ragqa.library.register import Obligation
from ragqa.library.register_store import FIELDS, STATUSES, Handling, Register

HEADS: Final = (
    "id", "document", "rule", "strength", "text", "who", "deadline", "condition",
    "owner", "status", "due", "note", "reason", "as written",
)  # fmt: skip
_WIDTHS: Final = (14, 24, 12, 10, 80, 24, 24, 30, 16, 14, 12, 30, 30, 4)
_GUARD: Final = "'"


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row of a sheet: what it says now, and what it said when it was written."""

    now: Handling
    written: Handling


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field of a row that was changed here and in the sheet, to different words; ``here`` stays."""

    obligation_id: str
    field: str
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a sheet: the register with its edits, how many fields were taken, what was not."""

    register: Register
    n_taken: int
    conflicts: tuple[Conflict, ...]
    unknown: tuple[str, ...]  # ids that the register does not have

    def lines(self, name: str) -> list[str]:
        """What came of the sheet of this name, in words: counts, then each conflict."""
        found = (
            f"{name}: {self.n_taken:,} fields taken over, {len(self.conflicts):,} conflicts, "
            f"{len(self.unknown):,} rows that are not in the register"
        )
        number = {row.obligation_id: row.number for row in self.register.rows}
        told = (
            f"conflict in {number[one.obligation_id]} ({one.obligation_id}), {one.field}: {one.here!r} stays, "
            f"not {one.there!r}"
            for one in self.conflicts
        )
        return [found, *told]


def merged(register: Register, sheet: Mapping[str, SheetRow]) -> Taken:
    """The register with what was changed in the sheet, field by field."""
    known, handlings = {row.obligation_id for row in register.rows}, dict(register.handlings)
    n_taken, conflicts = 0, []
    for name in sheet.keys() & known:
        row, here = sheet[name], register.handling(name)
        for field in FIELDS:
            now, written, mine = (getattr(one, field) for one in (row.now, row.written, here))
            if now in (written, mine):
                continue
            if mine != written:
                conflicts.append(Conflict(name, field, mine, now))
                continue
            here, n_taken = replace(here, **{field: now}), n_taken + 1
        handlings[name] = here
    handlings = {name: one for name, one in handlings.items() if one != Handling()}
    unknown = tuple(sorted(sheet.keys() - known))
    return Taken(replace(register, handlings=handlings), n_taken, tuple(sorted(conflicts, key=_order)), unknown)


def _order(one: Conflict) -> tuple[str, str]:
    return one.obligation_id, one.field


# Sheets -------------------------------------------------------------------------------------------------------------


def write_sheet(path: Path, register: Register, rows: Sequence[Obligation]) -> None:
    """These rows of the register as ``.csv`` or ``.xlsx``. Raises CorpusError for another suffix."""
    cells = _cells(register, rows)
    if path.suffix.lower() == ".csv":
        with replacing(path) as beside, beside.open("w", newline="", encoding="utf-8-sig") as file:
            csv.writer(file).writerows([HEADS, *([plain_cell(cell) for cell in row] for row in cells)])
    elif path.suffix.lower() == ".xlsx":
        _write_xlsx(path, list(cells))
    else:
        raise CorpusError(_no_sheet(path))


def read_sheet(path: Path) -> dict[str, SheetRow]:
    """The rows of a sheet that `write_sheet` wrote and somebody edited, by id. Raises CorpusError."""
    try:
        lines = list(_read_xlsx(path) if path.suffix.lower() == ".xlsx" else _read_csv(path))
    except (OSError, ValueError, KeyError, csv.Error) as error:  # also BadZipFile's and openpyxl's, by their bases
        msg = (
            f"{path.name} cannot be read as a register ({error}); expected .csv or .xlsx as `ragqa register` writes it"
        )
        raise CorpusError(msg) from error
    heads = [cell.strip().lower() for cell in lines[0]] if lines else []
    missing = [name for name in ("id", *FIELDS, "as written") if name not in heads]
    if missing:
        msg = f"{path.name}: expected columns {', '.join(HEADS)}, found no {missing[0]!r}; keep the first row as it was"
        raise CorpusError(msg)
    found = {}
    for line in lines[1:]:
        row = dict(zip(heads, line, strict=False))
        if row.get("id"):
            found[row["id"]] = SheetRow(Handling(*(row.get(name, "") for name in FIELDS)), _written(row, path))
    return found


def _cells(register: Register, rows: Sequence[Obligation]) -> Iterator[tuple[str, ...]]:
    for row in rows:
        handling, parts = register.handling(row.obligation_id), row.parts
        told = (span.text if span else "" for span in (parts.party, parts.deadline, parts.condition))
        own = tuple(getattr(handling, name) for name in FIELDS)
        written = json.dumps(own, ensure_ascii=False)
        place = (row.title or row.document_id, row.number, str(row.strength), row.text)
        yield (row.obligation_id, *place, *told, *own, written)


def _written(row: Mapping[str, str], path: Path) -> Handling:
    try:
        told = json.loads(row.get("as written") or "[]")
        return Handling(*map(str, told[: len(FIELDS)]))
    except (ValueError, TypeError) as error:
        msg = f"{path.name}, row {row['id']}: the column 'as written' was changed ({error}); write the sheet anew"
        raise CorpusError(msg) from error


def _write_xlsx(path: Path, cells: Sequence[tuple[str, ...]]) -> None:
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.utils import get_column_letter
    from openpyxl.worksheet.datavalidation import DataValidation

    book = Workbook()
    sheet = book.active
    sheet.title = "Obligations"
    for n_row, row in enumerate((HEADS, *cells), start=1):
        for n_column, text in enumerate(row, start=1):
            cell = sheet.cell(n_row, n_column, ILLEGAL_CHARACTERS_RE.sub(" ", text))
            cell.data_type = "s"  # never a formula, whatever it begins with
            cell.quotePrefix = plain_cell(text) != text
    for n_column, width in enumerate(_WIDTHS, start=1):
        sheet.column_dimensions[get_column_letter(n_column)].width = width
    sheet.column_dimensions[get_column_letter(len(HEADS))].hidden = True
    sheet.freeze_panes = "B2"
    choice = DataValidation(type="list", formula1=f'"{",".join(STATUSES)}"', allow_blank=True)
    sheet.add_data_validation(choice)
    letter = get_column_letter(1 + HEADS.index("status"))
    choice.add(f"{letter}2:{letter}{max(2, len(cells) + 1)}")
    with replacing(path) as beside:
        book.save(beside)


def _read_xlsx(path: Path) -> Iterator[list[str]]:
    from zipfile import BadZipFile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, InvalidFileException) as error:
        raise ValueError(str(error)) from error
    for row in book.worksheets[0].iter_rows(values_only=True):
        yield [_as_text(cell) for cell in row]


def _as_text(cell: Any) -> str:  # noqa: ANN401 - text, number, day or nothing
    if cell is None:
        return ""
    return cell.date().isoformat() if hasattr(cell, "date") else str(cell).strip()


def _read_csv(path: Path) -> Iterator[list[str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.reader(file):
            yield [cell.removeprefix(_GUARD) if plain_cell(cell[1:]) == cell else cell for cell in row]


def _no_sheet(path: Path) -> str:
    return f"expected a file ending in .csv or .xlsx, found {path.name!r}; name another"
