"""Downloads rows as a sheet, uploads the edited sheet, and shows the result."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import streamlit as st

from ragqa.corpus.documents.kinds import members
from ragqa.english.words import quantity
from ragqa.library.edits import Edit, SheetRow, read_edits
from ragqa.server.access.policy import Act
from ragqa.ui import access
from ragqa.ui.pages.notices import Notices, error_kept
from ragqa.ui.uploads import used_once

SHEET_MB: Final = 50  # most MB of an uploaded sheet
_SHOWN_CONFLICTS: Final = 20
_T = TypeVar("_T")


def draw_sheets(
    corpus: str,
    kind: type[Edit],
    n_rows: int,
    write: Callable[[Path], object],
    take: Callable[[Mapping[str, SheetRow[Edit]], str], None],
    *,
    name: str,
    said: str,
) -> None:
    """``write`` makes the sheet ``name`` after a click; ``take`` gets the rows of an uploaded sheet.

    A person who may not change this register can only download. ``said`` is the session key of the page's notices.
    """
    turn = st.session_state.setdefault(f"{name}_upload", 0)
    with st.popover("Excel and CSV", key=f"{name}_sheets_{turn}"):  # another key closes it after an import
        for suffix, words in ((".xlsx", "Excel sheet"), (".csv", "CSV")):
            st.download_button(
                f"{words} of {quantity(n_rows, 'row')}",
                access.bound(partial(_written, write, corpus, n_rows, suffix)),
                f"{name}-{corpus}{suffix}",
                key=f"{name}_out{suffix}",
                on_click="ignore",
            )
        if not access.gate().may(Act.REGISTER, corpus):
            return
        sheet = st.file_uploader(
            "The same sheet, edited", ["xlsx", "csv"], key=f"{name}_in_{turn}", max_upload_size=SHEET_MB
        )
        if sheet is not None:
            st.session_state[f"{name}_upload"] = turn + 1
            with error_kept(said), used_once([sheet]):
                access.gate().spend_upload(sheet.size)
                take(_in_file(Path(sheet.name).suffix, sheet.getvalue(), partial(_read, kind)), sheet.name)
            st.rerun()
        st.caption("Edits are imported field by field; conflicts are shown.")


def taken_notices(lines: Iterable[str], name: str) -> Notices:
    """Notices for the lines of `Taken.words`: the result if a sheet has a ``name``, then the first conflicts."""
    first, *conflicts = lines
    said = [(first, "mixed" if conflicts else "good")] if name else []
    said += [(line, "mixed") for line in conflicts[:_SHOWN_CONFLICTS]]
    if len(conflicts) > _SHOWN_CONFLICTS:
        said.append((f"and {quantity(len(conflicts) - _SHOWN_CONFLICTS, 'more conflict')}", "mixed"))
    return said


def _read(kind: type[Edit], path: Path) -> dict[str, SheetRow[Edit]]:
    if path.suffix.lower() == ".xlsx":
        members(path)  # raises for a file that is too large when unpacked
    return read_edits(path, kind)


def _written(write: Callable[[Path], object], corpus: str, n_rows: int, suffix: str) -> bytes:
    def written(path: Path) -> bytes:
        write(path)
        return path.read_bytes()

    with access.gate().doing(Act.READ, corpus, register=n_rows):
        return _in_file(suffix, b"", written)


def _in_file(suffix: str, content: bytes, do: Callable[[Path], _T]) -> _T:
    """Calls ``do`` with a temporary file of this content."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sheet{suffix}"
        path.write_bytes(content)
        return do(path)
