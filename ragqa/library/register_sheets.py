"""The register with who deals with each row, its status, due day and note: through versions, as sheets, on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from ragqa.errors import CorpusError
from ragqa.infra.files import write_whole
from ragqa.infra.sheets import Sheet, write_sheets
from ragqa.library import edits
from ragqa.library.edits import SheetRow, Taken
from ragqa.library.register import Obligation, Parts, RowChange, compared
from ragqa.types import Span
from ragqa.types.scores import Strength

NOT_APPLICABLE: Final = "not applicable"
STATUSES: Final = ("open", "in progress", "done", NOT_APPLICABLE)
_WIDTHS: Final = {"id": 14, "document": 24, "text": 80, "who": 24, "deadline": 24, "condition": 30, "note": 30}


@dataclass(frozen=True, slots=True)
class Handling:
    """Who deals with a row and how far that is; ``due`` is a day, YYYY-MM-DD, or empty."""

    owner: str = ""
    status: str = ""
    due: str = ""
    note: str = ""


FIELDS: Final = edits.names_of(Handling)
HEADS: Final = (
    "id", "document", "rule", "strength", "text", "who", "deadline", "condition", *FIELDS, edits.WRITTEN,
)  # fmt: skip


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


def merged(register: Register, sheet: Mapping[str, SheetRow[Handling]]) -> tuple[Register, Taken[Handling]]:
    """The register with what was changed in the sheet, and what came of the sheet."""
    known = {row.obligation_id for row in register.rows}
    taken = edits.merged(register.handlings or {}, known, sheet, Handling())
    return replace(register, handlings=taken.edits), taken


def write_sheet(path: Path, register: Register, rows: Sequence[Obligation]) -> None:
    """These rows of the register as ``.csv`` or ``.xlsx``. Raises CorpusError for another suffix."""
    cells = [(*row_cells(row), *edits.cells_of(register.handling(row.obligation_id))) for row in rows]
    write_sheets(path, [Sheet("Obligations", HEADS, cells, _WIDTHS, {"status": STATUSES}, edits.WRITTEN)])


def row_cells(row: Obligation) -> tuple[str, ...]:
    """What the row itself says, under the first eight of `HEADS`."""
    parts = (row.parts.party, row.parts.deadline, row.parts.condition)
    told = (span.text if span else "" for span in parts)
    return (row.obligation_id, row.title or row.document_id, row.number, str(row.strength), row.text, *told)


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
