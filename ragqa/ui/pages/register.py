"""The page Register: its rows, edited in place or as a sheet, and the changes of a new version."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import streamlit as st

from ragqa.corpus.citing import document_name
from ragqa.errors import RagqaError
from ragqa.index import Index
from ragqa.infra.cleaning import without_controls
from ragqa.library.edits import SheetRow
from ragqa.library.register import Obligation, RowChange
from ragqa.library.register_search import NO_STATUS, STATES, Wanted, matching, parties, rule_name, states, told_apart
from ragqa.library.register_sheets import merged, write_sheet
from ragqa.library.register_store import FIELDS, STATUSES, Handling, Register, change, up_to_date
from ragqa.library.work_list import answers_before, gap_results, work_list
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.types.scores import Strength
from ragqa.ui import access
from ragqa.ui.html.library import PAGES, links_html, plain_markdown, work_html
from ragqa.ui.html.reader import read_address
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.notices import draw_notices, error_shown, keep_notices
from ragqa.ui.pages.sheets import draw_sheets, taken_notices
from ragqa.ui.shared import shared
from ragqa.ui.state import resources

PAGE: Final = 50  # rows at a time
LONGEST: Final = 1_000  # characters of a field
_SAID, _AFTER, _TURN = "register_said", "register_after", "register_turn"
_SEEN: Final = "register_seen"  # session key: the handlings when the table was first drawn, and typed edits
_HEIGHT, _LINE, _WIDE = 640, 19, 480  # pixels: the table, a line, the column of texts; its letters are 7 wide
_LINES, _FITTING = range(4, 11), 0.9  # of a row, as many as this share of the texts shown needs
_VIEWS: Final = ("Rows", "What changed")
_COLUMN: Final = st.column_config


def register_page() -> None:
    """Draws the register of ``?corpus=NAME``, extracted again where the corpus has changed."""
    paths = Paths.from_env()
    if corpus := draw_title("Register", paths):
        st.fragment(partial(_tried, corpus, paths))()


def draw_title(name: str, paths: Paths) -> str:
    """Draws the title of a page for ``?corpus=NAME``, with links to its others, or asks which corpus ("")."""
    corpus, names = st.query_params.get("corpus", ""), resources.index_names(paths)
    titles = resources.corpus_titles(names, paths)
    if corpus not in names:
        st.title(name)
        if corpus:
            st.html(notice_html(f"There is no corpus {corpus[:60]!r} on this machine; choose one below.", "mixed"))
        if chosen := st.selectbox("Corpus", names, index=None, format_func=titles.__getitem__, key="read_corpus"):
            st.query_params["corpus"] = chosen
            st.rerun()
        return ""
    st.title(f"{name}: {plain_markdown(titles[corpus])}", anchor=False)
    found = {"‹ Library": "library", **PAGES} if access.gate().may(Act.UPLOAD) else PAGES
    st.html(links_html(corpus, {words: page for words, page in found.items() if words != name}), width="content")
    return corpus


def _tried(corpus: str, paths: Paths) -> None:
    with error_shown():
        index = resources.open_corpus(corpus, paths)
        file = paths.registers / f"{corpus}.jsonl"
        with st.spinner("Reading the obligations of this corpus (once for each version)"):
            held = up_to_date(file, index.passages, index.manifest.corpus_sha256)
        _draw(held, index, corpus, file, paths)


def _draw(held: Register, index: Index, corpus: str, file: Path, paths: Paths) -> None:
    draw_notices(_SAID)
    versions = held.versions
    with st.container(horizontal=True, vertical_alignment="bottom", key="register_bar"):
        view = st.segmented_control(
            "View", _VIEWS, default=_VIEWS[0], key="register_view", label_visibility="collapsed"
        )
        since = 0
        if len(versions) > 1:
            numbers = range(len(versions) - 1, 0, -1)
            said = {n: f"version {n}, {versions[n - 1][:16].replace('T', ' ')} UTC" for n in numbers}
            since = st.selectbox(
                "Compared with", numbers, format_func=said.__getitem__, key="register_since", width=260
            )
    changes = _changes(file, versions[-1] if versions else "", since, held)
    if view == _VIEWS[1]:
        answers = answers_before(corpus, index.manifest.corpus_sha256, resources.record_store(paths.records))
        with st.spinner("Looking for answers that rest on what changed"):
            gaps = gap_results(paths.home / "gaps" / corpus, resources.index_names(paths))
            items, titles = work_list(held, changes, answers, index, gaps), resources.corpus_titles(gaps, paths)
            st.html(work_html(items, corpus, titles, n_versions=len(versions)))
        return
    found = matching(held, changes, _wanted(held))
    after = min(int(st.session_state.get(_AFTER, 0)), max(0, len(found) - 1) // PAGE * PAGE)
    with st.container(horizontal=True, vertical_alignment="center", key="register_pages"):
        st.button("‹ Before", key="register_before", disabled=not after, on_click=_to, args=(after - PAGE,))
        st.button(
            "Next ›", key="register_next", disabled=after + PAGE >= len(found), on_click=_to, args=(after + PAGE,)
        )
        shown = found[after : after + PAGE]
        place = f"Rows {after + 1:,} to {after + len(shown):,} of {len(found):,}" if found else "No row matches"
        draw_sheets(  # not on the right, where the table's own buttons would cover it
            corpus,
            Handling,
            len(found),
            partial(write_sheet, register=held, rows=found),
            lambda sheet, name: take_over(corpus, file, sheet, name, files=[name]),
            name="register",
            said=_SAID,
        )
        st.caption(f"{place}, {len(held.duties):,} in the register")
    if shown:
        _table(held, shown, states(changes), corpus, file)


@shared(most=8)
def _changes(file: Path, last: str, since: int, _held: Register) -> Sequence[RowChange]:
    return _held.changes(since)


def _wanted(held: Register) -> Wanted:
    """The filters; changing one leads back to the first page."""
    titles = {"": "Any document"} | {row.document_id: row.title or row.document_id for row in held.rows}

    choice = partial(draw_choice, "register", on_change=_to, args=(0,))
    with st.container(horizontal=True, vertical_alignment="bottom", key="register_filter"):
        words = st.text_input("Words or rule", key="register_words", width=240, on_change=_to, args=(0,))
        return Wanted(
            words,
            choice("Document", list(titles)[1:], width=240, format_func=titles.__getitem__),
            choice("Who", parties(held.rows), width=200, accept_new_options=True),
            choice("Strength", [str(one) for one in Strength if one is not Strength.NONE]),
            choice("Status", [*STATUSES, NO_STATUS]),
            choice("Change", STATES),
            any(row.is_recital for row in held.rows)
            and st.checkbox("Recitals", key="register_recitals", on_change=_to, args=(0,)),
        )


def draw_choice(page: str, label: str, names: Sequence[str], width: int = 150, **more: Any) -> str:  # noqa: ANN401
    """A filter of this page, "" for any; ``more`` are arguments of a selectbox."""
    key = f"{page}_{label.lower()}"
    return str(st.selectbox(label, names, index=None, key=key, width=width, placeholder="Any", **more) or "")


def _to(after: int) -> None:
    st.session_state[_AFTER] = max(0, after)


# Editing in place ---------------------------------------------------------------------------------------------------


def _table(held: Register, shown: Sequence[Obligation], state_of: Mapping[str, str], corpus: str, file: Path) -> None:
    ids = tuple(row.obligation_id for row in shown)
    editable = access.gate().may(Act.REGISTER, corpus) and all(state_of.get(name) != "gone" for name in ids)
    key = f"register_rows_{hash((ids, st.session_state.get(_TURN, 0)))}"
    if key not in st.session_state:
        st.session_state[_SEEN] = {name: held.handling(name) for name in ids}, {}
    handlings, _ = st.session_state[_SEEN]  # the first values: if these changed, the browser would lose its edits
    is_one = len({row.document_id for row in held.rows}) == 1
    texts = told_apart(shown)
    needed = sorted(len(text) * 7 // _WIDE + 1 for text in texts)[math.ceil(_FITTING * len(texts)) - 1]
    lines = min(max(needed, _LINES[0]), _LINES[-1])
    rows = [
        {
            "rule": f"{address}#{quote(rule_name(row, has_document=False) or '¶')}",
            "text": text,
            **({} if is_one else {"document": document_name(row.title or row.document_id)}),
            "who": row.parts.party.text if row.parts.party else "",
            "strength": str(row.strength),
            **{name: getattr(handlings[row.obligation_id], name) for name in FIELDS},
            "deadline": row.parts.deadline.text if row.parts.deadline else "",
            "condition": row.parts.condition.text if row.parts.condition else "",
            "change": state_of.get(row.obligation_id, "").replace("unchanged", ""),
        }
        for row, text in zip(shown, texts, strict=True)
        for address in (read_address(corpus, row.passage_id, (row.start, row.end)),)
    ]
    st.data_editor(
        rows,
        key=key,
        hide_index=True,
        height=min(_HEIGHT, 38 + _LINE * lines * len(shown)),
        row_height=_LINE * lines,
        placeholder="",
        num_rows="fixed",
        disabled=[name for name in rows[0] if name not in FIELDS] if editable else True,
        column_config={
            "rule": _COLUMN.LinkColumn(display_text=r"#(.*)$", width=150, pinned=True),
            "document": _COLUMN.TextColumn(width=120),
            "strength": _COLUMN.TextColumn(width=80),
            "text": _COLUMN.TextColumn(width=_WIDE),
            "who": _COLUMN.TextColumn(width=130),
            "owner": _COLUMN.TextColumn(width=110, max_chars=LONGEST),
            "status": _COLUMN.SelectboxColumn(width=120, options=["", *STATUSES]),
            "due": _COLUMN.TextColumn(width=100, validate=r"^(\d{4}-\d\d-\d\d)?$", help="A day, YYYY-MM-DD"),
            "note": _COLUMN.TextColumn(width=180, max_chars=LONGEST),
            "reason": _COLUMN.TextColumn(width=140, max_chars=LONGEST, help="Why a row is not applicable"),
            "change": _COLUMN.TextColumn(width=80),
        },
        on_change=_note,
        args=(key, ids, corpus, file),
    )


def _note(key: str, ids: tuple[str, ...], corpus: str, file: Path) -> None:
    """Saves new edits; where somebody else changed a field meanwhile, theirs is kept and a conflict is shown."""
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
    """Merges these rows into the register and shows conflicts, and for a sheet (``name``) also the result."""
    lines: list[str] = []

    def how(held: Register) -> Register:
        after, taken = merged(held, sheet)
        lines.extend(taken.words(name, after.rows))
        return after

    try:
        with access.gate().doing(Act.REGISTER, corpus, **about):
            change(file, how)
        found = taken_notices(lines, name)
    except RagqaError as error:
        found = [(str(error), "bad")]
    if found:  # the table no longer shows what is stored
        st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    keep_notices(_SAID, *found)
