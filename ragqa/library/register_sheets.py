"""Exports the register as CSV or XLSX and imports how each row is handled: owner, status, due date, note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final

from ragqa.infra.sheets import Sheet, write_sheets
from ragqa.library import edits
from ragqa.library.edits import SheetRow, Taken
from ragqa.library.register import Obligation
from ragqa.library.register_search import rule_name
from ragqa.library.register_store import FIELDS, STATUSES, Handling, Register

_WIDTHS: Final = {
    "id": 14,
    "document": 24,
    "text": 80,
    "who": 24,
    "deadline": 24,
    "condition": 30,
    "note": 30,
    "reason": 30,
}


HEADS: Final = (
    "id", "document", "rule", "strength", "text", "who", "deadline", "condition", *FIELDS, edits.WRITTEN,
)  # fmt: skip


def merged(register: Register, sheet: Mapping[str, SheetRow[Handling]]) -> tuple[Register, Taken[Handling]]:
    """The register with the changes of the sheet, and the result of the import."""
    known = {row.obligation_id for row in register.rows}
    taken = edits.merged(register.handlings, known, sheet, Handling(), _expected)
    return replace(register, handlings=taken.edits), taken


def _expected(field: str, value: str) -> str:
    if field == "status" and value not in ("", *STATUSES):
        return f"one of {', '.join(STATUSES)}, or nothing"
    with suppress(ValueError):
        if field != "due" or not value or date.fromisoformat(value).isoformat() == value:
            return ""
    return "a day, YYYY-MM-DD"


def write_sheet(path: Path, register: Register, rows: Sequence[Obligation]) -> None:
    """Writes these rows of the register as ``.csv`` or ``.xlsx``. Raises CorpusError for another suffix."""
    cells = [(*row_cells(row), *edits.cells_of(register.handling(row.obligation_id))) for row in rows]
    write_sheets(path, [Sheet("Obligations", HEADS, cells, _WIDTHS, {"status": STATUSES}, edits.WRITTEN)])


def row_cells(row: Obligation) -> tuple[str, ...]:
    """The row's own cells, under the first eight of `HEADS`."""
    parts = (row.parts.party, row.parts.deadline, row.parts.condition)
    told = (span.text if span else "" for span in parts)
    rule = rule_name(row, has_document=False)
    return (row.obligation_id, row.title or row.document_id, rule, str(row.strength), row.text, *told)
