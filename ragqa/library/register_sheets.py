"""The register as CSV or XLSX and back: who deals with a row, its status, due day and note, merged row by row by id.

A sheet holds beside these four what they were when it was written, so that what somebody changed there is told from
what was changed here since: both changed to different words is a conflict, shown and not taken. No cell is a formula.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from ragqa.errors import CorpusError
from ragqa.infra.cleaning import cell as plain_cell
from ragqa.infra.files import replacing, write_whole
from ragqa.library.register import Obligation, Parts, RowChange, compared
from ragqa.types import Span
from ragqa.types.scores import Strength

STATUSES: Final = ("open", "in progress", "done", "not applicable")
HEADS: Final = (
    "id", "document", "rule", "strength", "text", "who", "deadline", "condition",
    "owner", "status", "due", "note", "as written",
)  # fmt: skip
_WIDTHS: Final = (14, 24, 12, 10, 80, 24, 24, 30, 16, 14, 12, 30, 4)
_GUARD: Final = "'"


@dataclass(frozen=True, slots=True)
class Handling:
    """Who deals with a row and how far that is; ``due`` is a day, YYYY-MM-DD, or empty."""

    owner: str = ""
    status: str = ""
    due: str = ""
    note: str = ""


FIELDS: Final = tuple(field.name for field in fields(Handling))


@dataclass(frozen=True, slots=True)
class Register:
    """The rows of a corpus and how each is dealt with, by id; ids without a handling are in none's hands.

    ``gone`` are rows of earlier versions that somebody dealt with: should one return, so does what was noted of it.
    """

    rows: tuple[Obligation, ...] = ()
    handlings: Mapping[str, Handling] | None = None
    gone: tuple[Obligation, ...] = ()

    def handling(self, obligation_id: str) -> Handling:
        return (self.handlings or {}).get(obligation_id, Handling())


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


def renewed(before: Register, rows: Sequence[Obligation]) -> tuple[Register, tuple[RowChange, ...]]:
    """The register of a new version, and what became of the rows: none loses how it is dealt with."""
    changes = compared((*before.rows, *before.gone), rows)
    now = {(one.after or one.before): one.before for one in changes if one.before}
    kept = {row.obligation_id: before.handling(old.obligation_id) for row, old in now.items() if row}
    kept = {name: one for name, one in kept.items() if one != Handling()}
    gone = tuple(one.before for one in changes if one.what == "gone" and one.before)
    known = set(before.gone)
    told = tuple(one for one in changes if one.what != "gone" or one.before not in known)
    return Register(tuple(rows), kept, tuple(row for row in gone if row.obligation_id in kept)), told


def merged(register: Register, sheet: Mapping[str, SheetRow]) -> Taken:
    """The register with what was changed in the sheet, field by field."""
    known, handlings = {row.obligation_id for row in register.rows}, dict(register.handlings or {})
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


# On disk ------------------------------------------------------------------------------------------------------------


def save(path: Path, register: Register) -> None:
    """Replaces the file as a whole: a line a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(
            {"row": asdict(row), "handling": asdict(register.handling(row.obligation_id)), "gone": is_gone},
            ensure_ascii=False,
        )
        for rows, is_gone in ((register.rows, False), (register.gone, True))
        for row in rows
    )
    write_whole(path, (f"{line}\n" for line in lines))


def load(path: Path) -> Register:
    """What `save` wrote; an empty register where there is no file. Raises CorpusError where it is none."""
    if not path.is_file():
        return Register()
    rows: list[Obligation] = []
    gone: list[Obligation] = []
    handlings = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            told = json.loads(line)
            parts = Parts(*(Span(**one) if one else None for one in told["row"].pop("parts").values()))
            row = Obligation(**told["row"] | {"strength": Strength(told["row"]["strength"]), "parts": parts})
            (gone if told.get("gone") else rows).append(row)
            handlings[row.obligation_id] = Handling(**told["handling"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"{path} cannot be read as a register ({error}); restore it from a backup, or delete it to begin anew"
        raise CorpusError(msg) from error
    known = {name: one for name, one in handlings.items() if one != Handling()}
    return Register(tuple(rows), known, tuple(gone))
