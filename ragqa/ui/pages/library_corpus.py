"""One corpus of the library on the page: state, staged files, documents, changes of the last indexings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from urllib.parse import urlencode

import streamlit as st

from ragqa.corpus.documents import Reader
from ragqa.corpus.documents.kinds import SUFFIXES
from ragqa.english.words import quantity
from ragqa.errors import RagqaError
from ragqa.index import index_info, verify_index
from ragqa.library import parse_cache
from ragqa.library.changes import read_updates
from ragqa.library.collection import Catalogue, Collection, Document, Staged, temporary
from ragqa.library.transfer import delete, export
from ragqa.library.unread import unread, unread_words
from ragqa.library.update import CHANGES, MAX_TOKENS, encoder_name
from ragqa.library.upload import files_of, server_folders, take, take_from_folder
from ragqa.records.words import size_words
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.html.library import PAGES, change_html, links_html, plain_markdown, reading_html
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.library_job import draw_job
from ragqa.ui.pages.notices import draw_notices, error_kept, error_shown, keep_notices
from ragqa.ui.pages.reader import titles_of
from ragqa.ui.state import resources
from ragqa.ui.uploads import used_once

TYPES = [suffix.removeprefix(".") for suffix in SUFFIXES]
PROBLEM = "library_problem"  # session key: messages to show once
SHOWN_DOCUMENTS = 50
SHOWN_PREVIEWS = 20
_ASK = "library_ask"


def draw_corpus(collection: Collection, paths: Paths) -> None:
    """Draws the corpus. Changes happen in callbacks, so that the page always shows the present state."""
    st.button("‹ Library", key="library_back", type="tertiary", on_click=_back)
    with error_shown():
        _draw(collection, collection.read(), paths)


def _draw(collection: Collection, catalogue: Catalogue, paths: Paths) -> None:
    st.title(plain_markdown(catalogue.title), anchor=False)
    st.caption(_state_words(collection, catalogue, paths))
    draw_notices(PROBLEM)
    job = resources.library_jobs(paths).latest.get(collection.name)
    busy = job is not None and job.view.running
    if job:
        draw_job(job, Act.UPLOAD, collection.name, busy=busy)
    _actions(collection, catalogue, paths, busy=busy)
    titles = titles_of(collection.name, paths) if catalogue.indexed else {}
    _waiting(collection, catalogue, paths, busy=busy)
    if not busy:
        _drop(collection, paths)
    _documents(collection, catalogue, titles, busy=busy)
    _changes(collection, titles)


def _back() -> None:
    st.query_params.pop("corpus", None)


def _state_words(collection: Collection, catalogue: Catalogue, paths: Paths) -> str:
    words = [quantity(len(catalogue.kept), "document") if catalogue.kept else quantity(len(catalogue.staged), "file")]
    try:
        manifest = index_info(collection.name, paths.indexes)
        words += [quantity(manifest.n_passages, "passage"), f"indexed {manifest.created[:16].replace('T', ' ')} UTC"]
    except RagqaError:
        words.append("not indexed yet")
    return f"{' · '.join(words)}. {plain_markdown(catalogue.description)}"


# What is done to it --------------------------------------------------------------------------------------------------


def _start(collection: Collection, paths: Paths) -> None:
    name = encoder_name(collection, paths.indexes)
    load = partial(resources.encoder_of, name, paths)
    _tried(Act.INDEX, collection, lambda: resources.library_jobs(paths).start(collection, "index", load))


def _read(collection: Collection, paths: Paths) -> None:
    _tried(Act.UPLOAD, collection, lambda: resources.library_jobs(paths).start(collection, "read", lambda: None))
    resources.warm_encoder(encoder_name(collection, paths.indexes), paths)


def _tried(act: Act, collection: Collection, do: Callable[[], object], said: str = "", **about: object) -> bool:
    """Does and logs the act, if this person may; shows ``said`` or the error. Returns whether it was done."""
    with error_kept(PROBLEM):
        with access.gate().doing(act, collection.name, **about):
            do()
        keep_notices(PROBLEM, *([(said, "good")] if said else []))
        return True
    return False


# What can be done with all of it ------------------------------------------------------------------------------------


def _actions(collection: Collection, catalogue: Catalogue, paths: Paths, *, busy: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="library_actions"):
        if catalogue.indexed is not None:
            st.button("Ask this corpus", key=_ASK, type="primary", on_click=_mark_asked)
            pages = {name: page for name, page in PAGES.items() if page != "ask"}
            st.html(links_html(collection.name, pages), width="content")
        if not catalogue.is_current and not catalogue.staged and catalogue.documents and not busy:
            removed = quantity(_removed(catalogue), "removed document")
            words = f"Index, leaving out {removed}" if _removed(catalogue) else "Go on indexing"
            st.button(words, key="library_on", on_click=_start, args=(collection, paths))
        with st.popover("Name and description"):
            with st.form("library_describe", border=False):
                title = st.text_input("Name", catalogue.title, max_chars=120)
                description = st.text_area("Description", catalogue.description, max_chars=2_000)
                if st.form_submit_button("Save"):
                    _tried(Act.RENAME, collection, lambda: collection.describe(title, description))
                    st.rerun()
            st.caption(f"Its address and its index stay: {collection.name}")
        with st.popover("More"):
            st.download_button(
                "Export (ZIP of the documents)",
                access.bound(partial(_exported, collection)),  # made only after a click, outside the session
                f"{collection.name}.zip",
                "application/zip",
                key="library_export",
                on_click="ignore",
            )
            st.button("Verify the index", key="library_verify", on_click=_verify, args=(collection, paths))
            st.button("Delete", key="library_delete", on_click=_delete, args=(collection, paths), disabled=busy)
            st.caption("What is deleted can be restored from the list of the library.")
            st.caption(f"Analyser “{catalogue.analyser}”: {catalogue.reason}" if catalogue.analyser else "")
    if st.session_state.pop("library_ask_now", False):
        from ragqa.ui.pages.ask import OPENED, ask_page

        st.session_state[OPENED] = collection.name
        st.session_state.pop("run", None)  # a run of another corpus would hide the examples of this one
        st.switch_page(st.Page(ask_page, title="Ask", default=True))


def _mark_asked() -> None:
    st.session_state["library_ask_now"] = True


def _removed(catalogue: Catalogue) -> int:
    return sum(one.removed for one in catalogue.documents)


def _exported(collection: Collection) -> bytes:
    path = temporary(collection.folder / "staged")
    try:
        with access.gate().doing(Act.EXPORT, collection.name):
            export(collection, path)
        return path.read_bytes()
    finally:
        path.unlink(missing_ok=True)


def _verify(collection: Collection, paths: Paths) -> None:
    said = "The index is whole: every hash is as recorded."
    _tried(Act.VERIFY, collection, lambda: verify_index(collection.name, paths.indexes), said)


def _delete(collection: Collection, paths: Paths) -> None:
    if _tried(Act.DELETION, collection, lambda: delete(collection, paths.indexes)):
        _back()


# What comes in ------------------------------------------------------------------------------------------------------


def _drop(collection: Collection, paths: Paths) -> None:
    turn = st.session_state.setdefault("corpus_turn", 0)
    files = st.file_uploader(
        "Add documents, or new versions under the same names",
        type=TYPES,
        accept_multiple_files=True,
        key=f"corpus_drop_{turn}",
    )
    if files:
        st.session_state["corpus_turn"] = turn + 1

        def put_in() -> None:
            access.gate().spend_upload(sum(file.size for file in files))
            with Reader() as reader:
                for file in files:
                    _say(take(collection, file.name, file, reader))

        with used_once(files):
            _tried(Act.UPLOAD, collection, put_in, files=[file.name for file in files])
        _read(collection, paths)
        st.rerun()
    folders = server_folders()
    if folders:
        with st.expander("Choose from this server's folders"):
            folder = st.selectbox("Folder", list(folders), key="library_folder")
            chosen = st.multiselect("Files", files_of(folders[folder]), key=f"library_files_{folder}")
            st.button(
                "Take these",
                key="library_take",
                disabled=not chosen,
                on_click=_take,
                args=(collection, paths, folder, tuple(chosen)),
            )


def _take(collection: Collection, paths: Paths, folder: str, names: tuple[str, ...]) -> None:
    def put_in() -> None:
        with Reader() as reader:
            _say(take_from_folder(collection, folder, names, reader))

    _tried(Act.UPLOAD, collection, put_in, folder=folder, files=list(names))
    _read(collection, paths)


def _say(lines: list[str]) -> None:
    keep_notices(PROBLEM, *((line, "mixed") for line in lines))


def _waiting(collection: Collection, catalogue: Catalogue, paths: Paths, *, busy: bool) -> None:
    """The preview of staged files, and the button that indexes them."""
    if not catalogue.staged:
        return
    st.subheader("Found in these files", anchor=False)
    refused = unread(collection, MAX_TOKENS)
    if words := unread_words(refused, len(catalogue.kept) + len(catalogue.staged)):
        st.html(notice_html(words, "mixed"))
    ready = [one for one in catalogue.staged if parse_cache.is_readable(collection, one, MAX_TOKENS)]
    with st.container(horizontal=True):
        n_new, n_removed = len(ready), _removed(catalogue)
        words = f"Index {quantity(n_new, 'document')}"
        words += f", leaving out {quantity(n_removed, 'removed document')}" if n_removed else ""
        if ready and not busy:
            st.button(words, key="library_index", type="primary", on_click=_start, args=(collection, paths))
        names = tuple(one.name for one in catalogue.staged)
        if not busy and any(not parse_cache.is_known(collection, one, MAX_TOKENS) for one in catalogue.staged):
            st.button("Go on reading", key="library_read", on_click=_read, args=(collection, paths))
        st.button("Discard all", key="library_discard", disabled=busy, on_click=_discard, args=(collection, names))
    read = [one for one in catalogue.staged if not busy or parse_cache.is_known(collection, one, MAX_TOKENS)]
    for place, one in enumerate(read[:SHOWN_PREVIEWS]):
        _preview(collection, catalogue, one, refused.get(one.name, ""), busy=busy, opened=place == 0)
    if more := len(catalogue.staged) - len(read[:SHOWN_PREVIEWS]):
        st.caption(f"and {quantity(more, 'more file')}" if read else f"{quantity(more, 'file')} not read yet")


def _preview(
    collection: Collection, catalogue: Catalogue, one: Staged, refused: str, *, busy: bool, opened: bool
) -> None:
    titles = titles_of(collection.name, Paths.from_env())
    reading = None if refused else parse_cache.known(collection, one, MAX_TOKENS)
    found = "cannot be read" if refused else quantity(len(reading.passages), "passage") if reading else "not read yet"
    version = f", a new version of {titles.get(one.replaces, one.replaces)}" if one.replaces else ""
    title = f"{reading.passages[0].title} · " if reading and reading.passages and reading.passages[0].title else ""
    label = f"{title}{one.name} · {size_words(one.size)} · {found}{version}"
    with st.expander(plain_markdown(label), expanded=opened and not refused):
        with st.container(horizontal=True, vertical_alignment="bottom"):  # above a preview that fills the screen
            ids = ["", *(document.document_id for document in catalogue.kept)]
            if len(ids) > 1 and not refused:
                key = f"replaces_{one.name}"
                st.selectbox(
                    "This file is",
                    ids,
                    index=ids.index(one.replaces) if one.replaces in ids else 0,
                    format_func=lambda held: f"a new version of {titles.get(held, held)}" if held else "a new document",
                    key=key,
                    disabled=busy,
                    on_change=_set_replaces,
                    args=(collection, one.name, key),
                )
            st.button(
                "Discard", key=f"discard_{one.name}", disabled=busy, on_click=_discard, args=(collection, (one.name,))
            )
        if refused:
            st.html(notice_html(refused, "mixed"))
        elif reading:
            st.html(reading_html(reading))


def _discard(collection: Collection, names: tuple[str, ...]) -> None:
    _tried(Act.DELETION, collection, lambda: collection.unstage(names), files=list(names))


def _set_replaces(collection: Collection, name: str, key: str) -> None:
    _tried(Act.UPLOAD, collection, lambda: collection.set_replaces(name, st.session_state[key]), files=[name])


# What is there ------------------------------------------------------------------------------------------------------


def _documents(collection: Collection, catalogue: Catalogue, titles: Mapping[str, str], *, busy: bool) -> None:
    if not catalogue.documents:
        return
    st.subheader("Documents", anchor=False)
    shown = list(catalogue.documents)
    if len(shown) > SHOWN_DOCUMENTS:
        wanted = st.text_input("Find a document", key="library_find").casefold()
        shown = [one for one in shown if wanted in f"{titles.get(one.document_id)} {one.name}".casefold()]
    for one in shown[:SHOWN_DOCUMENTS]:
        _document(collection, catalogue, one, titles.get(one.document_id, one.name), busy=busy)
    if len(shown) > SHOWN_DOCUMENTS:
        st.caption(f"and {len(shown) - SHOWN_DOCUMENTS:,} more: narrow the search")


def _document(collection: Collection, catalogue: Catalogue, one: Document, title: str, *, busy: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key=f"document_{one.document_id}"):
        with st.container(width="stretch"):
            st.text(title)
            file = "" if one.name.startswith(title) else f"{plain_markdown(one.name)} · "
            words = [f"{file}{size_words(one.size)}", f"version {one.version}", f"added {one.added[:10]}"]
            if one.removed:
                words.append("removed by the next indexing")
            elif (catalogue.indexed or {}).get(one.document_id) != one.sha256:
                words.append("not indexed yet")
            st.caption(" · ".join(words))
        if one.document_id in (catalogue.indexed or {}):
            address = f"read?{urlencode({'corpus': collection.name, 'document': one.document_id})}"
            st.html(f'<a class="rq-read" href="{escape(address)}" target="_self">Read</a>', width="content")
        st.button(
            "Keep" if one.removed else "Remove",
            key=f"remove_{one.document_id}",
            disabled=busy,
            on_click=_set_removed,
            args=(collection, one),
        )


def _set_removed(collection: Collection, one: Document) -> None:
    act = Act.RESTORE if one.removed else Act.DELETION
    how = partial(collection.set_removed, one.document_id, removed=not one.removed)
    _tried(act, collection, how, document=one.document_id)


def _changes(collection: Collection, titles: Mapping[str, str]) -> None:
    updates = read_updates(collection.folder / CHANGES)
    if not updates:
        return
    st.subheader("What changed", anchor=False)
    for place, update in enumerate(updates):
        names = ", ".join(f"{titles.get(one.document_id, one.document_id)} {one.what}" for one in update.documents[:4])
        more = f" and {len(update.documents) - 4} more" if len(update.documents) > 4 else ""
        replaced = any(one.what == "replaced" for one in update.documents)
        label = f"{update.at[:16].replace('T', ' ')} UTC · {names}{more}"
        with st.expander(plain_markdown(label), expanded=place == 0 and replaced):
            for one in update.documents[:SHOWN_DOCUMENTS]:
                name = titles.get(one.document_id, one.document_id)
                st.text(f"{name}, version {one.version}" if one.version else name)
                st.html(change_html(one))
