"""Imports what people edited in an exported sheet: rows are matched by id and compared field by field.

A sheet also holds the values of its fields at the time of export. An edit in the sheet can so be told from a later
change in ragqa. Where both changed a field to different values, this is a conflict: it is reported and not imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from ragqa.english.words import quantity
from ragqa.errors import CorpusError
from ragqa.infra.sheets import read_lines
from ragqa.library.register import Obligation
from ragqa.library.register_search import rule_name

WRITTEN: Final = "as written"  # the head of the column with the values at the time of export

Edit = TypeVar("Edit", bound=Any)  # a frozen dataclass whose fields are texts, all empty by default


@dataclass(frozen=True, slots=True)
class SheetRow(Generic[Edit]):
    """A row of a sheet: its present values, and its values at the time of export."""

    now: Edit
    written: Edit


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that was changed to different values in ragqa and in the sheet; the value ``here`` is kept."""

    obligation_id: str
    field: str
    here: str
    there: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A value of a sheet that its field cannot hold; it is not imported."""

    obligation_id: str
    field: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Taken(Generic[Edit]):
    """The result of an import: the edits by id, the number of imported fields, conflicts, unknown ids, refusals."""

    edits: dict[str, Edit]
    n_taken: int
    conflicts: tuple[Conflict, ...]
    unknown: tuple[str, ...]  # ids that no row has
    refused: tuple[Refused, ...] = ()

    def words(self, name: str, rows: Iterable[Obligation]) -> Iterator[str]:
        """The result as lines of text; ``name`` is that of the sheet, ``rows`` are those of the register."""
        counts = (
            quantity(self.n_taken, "field"),
            quantity(len(self.conflicts), "conflict"),
            quantity(len(self.unknown), "unknown row"),
        )
        refused = f", {len(self.refused):,} not imported" if self.refused else ""
        yield f"{name}: {counts[0]} imported, {counts[1]}, {counts[2]}{refused}"
        rules = {one.obligation_id: rule_name(one) for one in rows} if self.conflicts or self.refused else {}
        for one in self.conflicts:
            rule = f"{rules.get(one.obligation_id, '')} ({one.obligation_id})".lstrip()
            yield f"conflict in {rule}, {one.field}: {one.here!r} stays, not {one.there!r}"
        for lost in self.refused:
            rule = f"{rules.get(lost.obligation_id, '')} ({lost.obligation_id})".lstrip()
            yield f"not imported in {rule}, {lost.field}: expected {lost.expected}, found {lost.found!r}"


def names_of(kind: type[Edit]) -> tuple[str, ...]:
    """The column heads of this kind's fields."""
    return tuple(field.name for field in fields(kind))


def cells_of(edit: Edit) -> tuple[str, ...]:
    """The cells of an edit, under `names_of` and `WRITTEN`."""
    own = tuple(getattr(edit, name) for name in names_of(type(edit)))
    return (*own, json.dumps(own, ensure_ascii=False))


def merged(
    edits: Mapping[str, Edit],
    known: Collection[str],
    sheet: Mapping[str, SheetRow[Edit]],
    empty: Edit,
    expected: Callable[[str, str], str] = lambda _field, _value: "",
) -> Taken[Edit]:
    """The edits with the changes of the sheet; ``known`` are the ids of all rows, ``empty`` is the empty edit.

    ``expected`` says of a field and a value what the field can hold; "" where it can hold the value.
    """
    found, n_taken, conflicts, refused = dict(edits), 0, [], []
    for obligation_id in sorted(sheet.keys() & set(known)):
        row, here = sheet[obligation_id], edits.get(obligation_id, empty)
        for name in names_of(type(empty)):
            now, written, mine = (getattr(one, name) for one in (row.now, row.written, here))
            if now in (written, mine):
                continue
            if wanted := expected(name, now):
                refused.append(Refused(obligation_id, name, wanted, now))
                continue
            if mine != written:
                conflicts.append(Conflict(obligation_id, name, mine, now))
                continue
            here, n_taken = replace(here, **{name: now}), n_taken + 1
        found[obligation_id] = here
    kept = {name: one for name, one in found.items() if one != empty}
    return Taken(kept, n_taken, tuple(conflicts), tuple(sorted(sheet.keys() - set(known))), tuple(refused))


def read_edits(path: Path, kind: type[Edit]) -> dict[str, SheetRow[Edit]]:
    """The rows of a sheet that ragqa exported and somebody edited, by id. Raises CorpusError."""
    lines = read_lines(path)
    heads = [cell.strip().lower() for cell in lines[0]] if lines else []
    names = names_of(kind)
    missing = [name for name in ("id", *names, WRITTEN) if name not in heads]
    if missing:
        wanted = ", ".join(("id", *names, WRITTEN))
        msg = f"{path.name}: expected columns {wanted}, found no {missing[0]!r}; keep the first row as it was"
        raise CorpusError(msg)
    rows = (dict(zip(heads, line, strict=False)) for line in lines[1:])
    return {
        row["id"]: SheetRow(kind(*(row.get(name, "") for name in names)), _written(row, path, kind))
        for row in rows
        if row.get("id")
    }


def _written(row: Mapping[str, str], path: Path, kind: type[Edit]) -> Edit:
    try:
        written: Edit = kind(*map(str, json.loads(row.get(WRITTEN) or "[]")))
    except (ValueError, TypeError) as error:
        msg = f"{path.name}, row {row['id']}: the column {WRITTEN!r} was changed ({error}); write the sheet anew"
        raise CorpusError(msg) from error
    return written
