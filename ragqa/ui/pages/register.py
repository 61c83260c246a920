"""The page of a corpus's register: its rows, noted on in place, out and in as a sheet; what a new version changed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import streamlit as st

from ragqa.corpus.documents.kinds import members
from ragqa.errors import RagqaError
from ragqa.index import Index
from ragqa.infra.cleaning import without_controls
from ragqa.library.edits import SheetRow, read_edits
from ragqa.library.register import Obligation, RowChange
from ragqa.library.register_search import NO_STATUS, STATES, Wanted, matching, parties, states
from ragqa.library.register_sheets import merged, write_sheet
from ragqa.library.register_store import FIELDS, STATUSES, Handling, Register, change, up_to_date
from ragqa.library.work_list import answers_before, gap_results, work_list
from ragqa.records.words import quantity
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.types.scores import Strength
from ragqa.ui import access
from ragqa.ui.html.library import plain_markdown, work_html
from ragqa.ui.html.reader import read_address
from ragqa.ui.html.render import notice_html
from ragqa.ui.shared import shared
from ragqa.ui.state import resources
from ragqa.ui.uploads import let_go

PAGE: Final = 50  # rows at a time
SHEET_MB: Final = 50  # of a sheet that comes back
LONGEST: Final = 1_000  # characters of a field
_SAID, _AFTER, _TURN = "register_said", "register_after", "register_turn"
_SEEN: Final = "register_seen"  # of the rows of the table: how they were dealt with when it was drawn, what was typed
_HEIGHT, _ROW = 640, 84  # pixels
_VIEWS: Final = ("Rows", "What changed")
_SHOWN_CONFLICTS: Final = 20
_COLUMN: Final = st.column_config
_T = TypeVar("_T")


def register_page() -> None:
    """Draws the register of ``?corpus=NAME``, read anew where the corpus has changed."""
    st.html(resources.style())
    paths = Paths.from_env()
    corpus = st.query_params.get("corpus", "")
    names = resources.index_names(paths)
    if corpus not in names:
        st.title("Register")
        st.html(notice_html(f"There is no corpus {corpus[:60]!r} on this machine; choose one in the library.", "mixed"))
        return
    st.title(f"Register: {plain_markdown(resources.corpus_titles([corpus], paths)[corpus])}", anchor=False)
    st.fragment(partial(_tried, corpus, paths))()


def _tried(corpus: str, paths: Paths) -> None:
    try:
        index = resources.open_corpus(corpus, paths)
        file = paths.registers / f"{corpus}.jsonl"
        with st.spinner("Reading the obligations of this corpus (once a version)"):
            held = up_to_date(file, index.passages, index.manifest.corpus_sha256)
        _draw(held, index, corpus, file, paths)
    except RagqaError as error:
        st.html(notice_html(str(error), "bad"))


def _draw(held: Register, index: Index, corpus: str, file: Path, paths: Paths) -> None:
    with st.container():  # always there, so that a message here moves nothing below
        for text, kind in st.session_state.pop(_SAID, []):
            st.html(notice_html(text, kind))
    versions = held.versions
    with st.container(horizontal=True, vertical_alignment="bottom", key="register_bar"):
        view = st.segmented_control(
            "View", _VIEWS, default=_VIEWS[0], key="register_view", label_visibility="collapsed"
        )
        since = 0
        if len(versions) > 1:
            numbers = range(len(versions) - 1, 0, -1)
            said = {n: f"version {n}, {versions[n - 1][:16].replace('T', ' ')}" for n in numbers}
            since = st.selectbox(
                "Compared with", numbers, format_func=said.__getitem__, key="register_since", width=260
            )
    changes = _changes(file, versions[-1] if versions else "", since, held)
    if view == _VIEWS[1]:
        answers = answers_before(corpus, index.manifest.corpus_sha256, resources.record_store(paths.records))
        with st.spinner("Looking for answers that rest on what changed"):
            gaps = gap_results(paths.home / "gaps" / corpus, resources.index_names(paths))
            st.html(work_html(work_list(held, changes, answers, index, gaps), corpus, n_versions=len(versions)))
        return
    found = matching(held, changes, _wanted(held))
    after = min(int(st.session_state.get(_AFTER, 0)), max(0, len(found) - 1) // PAGE * PAGE)
    with st.container(horizontal=True, vertical_alignment="center", key="register_pages"):
        st.button("‹ Before", key="register_before", disabled=not after, on_click=_to, args=(after - PAGE,))
        st.button(
            "Next ›", key="register_next", disabled=after + PAGE >= len(found), on_click=_to, args=(after + PAGE,)
        )
        shown = found[after : after + PAGE]
        place = f"Rows {after + 1:,} to {after + len(shown):,} of {len(found):,}" if found else "No row has all of this"
        _sheets(held, found, corpus, file)  # not at the right, where the table's own buttons come over it
        st.caption(f"{place}, {len(held.rows):,} in the register")
    if shown:
        _table(held, shown, states(changes), corpus, file)


@shared(most=8)
def _changes(file: Path, last: str, since: int, _held: Register) -> Sequence[RowChange]:
    return _held.changes(since)


def _wanted(held: Register) -> Wanted:
    """The filters; any of them leads back to the first page."""
    titles = {"": "Any document"} | {row.document_id: row.title or row.document_id for row in held.rows}

    def choice(label: str, names: Sequence[str], width: int = 150, **more: Any) -> str:  # noqa: ANN401 - of a selectbox
        key = f"register_{label.lower()}"
        told = st.selectbox(
            label, names, index=None, key=key, width=width, placeholder="Any", on_change=_to, args=(0,), **more
        )
        return str(told or "")

    with st.container(horizontal=True, vertical_alignment="bottom", key="register_filter"):
        words = st.text_input("Words or rule", key="register_words", width=240, on_change=_to, args=(0,))
        return Wanted(
            words,
            choice("Document", list(titles)[1:], 240, format_func=titles.__getitem__),
            choice("Who", parties(held.rows), 200, accept_new_options=True),
            choice("Strength", [str(one) for one in Strength if one is not Strength.NONE]),
            choice("Status", [*STATUSES, NO_STATUS]),
            choice("State", STATES),
        )


def _to(after: int) -> None:
    st.session_state[_AFTER] = max(0, after)


# Noted on in place --------------------------------------------------------------------------------------------------


def _table(held: Register, shown: Sequence[Obligation], state_of: Mapping[str, str], corpus: str, file: Path) -> None:
    ids = tuple(row.obligation_id for row in shown)
    editable = access.gate().may(Act.REGISTER, corpus) and all(state_of.get(name) != "gone" for name in ids)
    key = f"register_rows_{hash((ids, st.session_state.get(_TURN, 0)))}"
    if key not in st.session_state:
        st.session_state[_SEEN] = {name: held.handling(name) for name in ids}, {}
    handlings, _ = st.session_state[_SEEN]  # as they were at first: the browser would forget edits if these changed
    rows = [
        {
            "rule": f"{read_address(corpus, row.passage_id, (row.start, row.end))}#{quote(row.number or '¶')}",
            "text": row.text,
            "strength": str(row.strength),
            **{name: getattr(handlings[row.obligation_id], name) for name in FIELDS},
            "state": state_of.get(row.obligation_id, "").replace("unchanged", ""),
            **{name: span.text if span else "" for name, span in zip(_PARTS, _parts(row), strict=True)},
            "document": row.title or row.document_id,
        }
        for row in shown
    ]
    st.data_editor(
        rows,
        key=key,
        hide_index=True,
        height=min(_HEIGHT, 38 + _ROW * len(shown)),
        row_height=_ROW,
        placeholder="",
        num_rows="fixed",
        disabled=[name for name in rows[0] if name not in FIELDS] if editable else True,
        column_config={
            "rule": _COLUMN.LinkColumn(display_text=r"#(.*)$", width=120, pinned=True),
            "strength": _COLUMN.TextColumn(width=80),
            "text": _COLUMN.TextColumn(width=400),
            "owner": _COLUMN.TextColumn(width=110, max_chars=LONGEST),
            "status": _COLUMN.SelectboxColumn(width=120, options=["", *STATUSES]),
            "due": _COLUMN.TextColumn(width=100, validate=r"^(\d{4}-\d\d-\d\d)?$", help="A day, YYYY-MM-DD"),
            "note": _COLUMN.TextColumn(width=180, max_chars=LONGEST),
            "reason": _COLUMN.TextColumn(width=140, max_chars=LONGEST, help="Why a row is not applicable"),
            "state": _COLUMN.TextColumn(width=80),
        },
        on_change=_note,
        args=(key, ids, corpus, file),
    )


_PARTS: Final = ("who", "deadline", "condition")


def _parts(row: Obligation) -> tuple[Any, ...]:
    return row.parts.party, row.parts.deadline, row.parts.condition


def _note(key: str, ids: tuple[str, ...], corpus: str, file: Path) -> None:
    """Takes over what is new among the edits: where somebody else wrote meanwhile, theirs stays and is said."""
    shown: dict[str, Handling]
    typed: dict[tuple[str, str], str]
    shown, typed = st.session_state[_SEEN]
    before, sheet = dict(typed), dict[str, SheetRow[Handling]]()
    for n, values in st.session_state[key]["edited_rows"].items():
        for field in values.keys() & set(FIELDS):
            typed[ids[int(n)], field] = " ".join(without_controls(str(values[field] or "")).split())[:LONGEST]
    for (name, field), value in typed.items() - before.items():
        written = replace(shown[name], **{of: said for (row, of), said in before.items() if row == name})
        now = sheet[name].now if name in sheet else written
        sheet[name] = SheetRow(replace(now, **{field: value}), written)
    if sheet:
        take_over(corpus, file, sheet, "", rows=sorted(sheet))


def take_over(corpus: str, file: Path, sheet: Mapping[str, SheetRow[Handling]], name: str, **about: object) -> None:
    """Merges these rows into the register; says what came of it where that is more than asked (``name`` of a sheet)."""
    lines: list[str] = []

    def how(held: Register) -> Register:
        after, taken = merged(held, sheet)
        lines.extend(taken.words(name))
        return after

    said: list[tuple[str, str]] = st.session_state.setdefault(_SAID, [])
    try:
        with access.gate().doing(Act.REGISTER, corpus, **about):
            change(file, how)
    except RagqaError as error:
        said.append((str(error), "bad"))
        lines = [""]
    first, *conflicts = lines
    if name or conflicts or not first:  # the table shows something else than what is kept
        st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    said += [(first, "mixed" if conflicts else "good")] * bool(name and first)
    said += [(line, "mixed") for line in conflicts[:_SHOWN_CONFLICTS]]
    if len(conflicts) > _SHOWN_CONFLICTS:
        said.append((f"and {quantity(len(conflicts) - _SHOWN_CONFLICTS, 'more conflict')}", "mixed"))


# Out and in ---------------------------------------------------------------------------------------------------------


def _sheets(held: Register, rows: Sequence[Obligation], corpus: str, file: Path) -> None:
    with st.popover("Excel and CSV"):
        for suffix, words in ((".xlsx", "Excel sheet"), (".csv", "CSV")):
            st.download_button(
                f"{words} of {quantity(len(rows), 'row')}",
                access.bound(partial(_written, held, tuple(rows), corpus, suffix)),  # made when somebody clicks
                f"register-{corpus}{suffix}",
                key=f"register_out{suffix}",
                on_click="ignore",
            )
        if not access.gate().may(Act.REGISTER, corpus):
            return
        turn = st.session_state.setdefault("register_upload", 0)
        sheet = st.file_uploader(
            "The same sheet, edited", ["xlsx", "csv"], key=f"register_in_{turn}", max_upload_size=SHEET_MB
        )
        if sheet is not None:
            st.session_state["register_upload"] = turn + 1
            try:
                access.gate().spend_upload(sheet.size)
                found = _in_file(Path(sheet.name).suffix, sheet.getvalue(), _read)
                take_over(corpus, file, found, sheet.name, files=[sheet.name])
            except RagqaError as error:
                st.session_state[_SAID] = [(str(error), "bad")]
            finally:
                let_go([sheet])
            st.rerun()
        st.caption("Owner, status, due day, note and reason are taken over row by row; conflicts are shown.")


def _read(path: Path) -> dict[str, SheetRow[Handling]]:
    if path.suffix.lower() == ".xlsx":
        members(path)  # refuses one that would not fit when it is unpacked
    return read_edits(path, Handling)


def _written(held: Register, rows: tuple[Obligation, ...], corpus: str, suffix: str) -> bytes:
    def write(path: Path) -> bytes:
        write_sheet(path, held, rows)
        return path.read_bytes()

    with access.gate().doing(Act.READ, corpus, register=len(rows)):
        return _in_file(suffix, b"", write)


def _in_file(suffix: str, content: bytes, do: Callable[[Path], _T]) -> _T:
    """What comes of a file of this content that is there only meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"sheet{suffix}"
        path.write_bytes(content)
        return do(path)
