"""The page Library: all corpora, or one corpus with its documents."""

from __future__ import annotations

from functools import partial
from pathlib import PurePosixPath

import streamlit as st

from ragqa.corpus.documents import Reader
from ragqa.english.words import quantity
from ragqa.index import IndexEntry, list_indexes, verify_index
from ragqa.library.collection import Collection, collection_of, collections, make_collection, new_name, title_of
from ragqa.library.transfer import Deleted, deleted, erase, import_corpus, restore
from ragqa.library.update import encoder_name
from ragqa.library.upload import take
from ragqa.library.watched import Proposal, dismissed, proposals, set_dismissed, take_over, watched_folder
from ragqa.records.words import size_words
from ragqa.server.access.policy import Act
from ragqa.settings.paths import Paths
from ragqa.ui import access
from ragqa.ui.html.library import links_html, plain_markdown
from ragqa.ui.pages.library_corpus import PROBLEM, TYPES, draw_corpus
from ragqa.ui.pages.notices import draw_notices, error_kept, error_shown, keep_notices
from ragqa.ui.state import resources
from ragqa.ui.uploads import used_once

SAID = "library_said"
TARGET = "watched_target"  # the corpus that new documents of the watched folder go to; empty: a new one
SHOWN_PROPOSALS = 20


def library_page() -> None:
    """Draws the corpus of ``?corpus=NAME``, else all corpora."""
    paths = Paths.from_env()
    chosen = st.query_params.get("corpus", "")
    access.gate().demand(Act.UPLOAD)
    collection = resources.own_collection(chosen, paths) if chosen else None
    if collection is not None:
        draw_corpus(collection, paths)
        return
    st.title("Library")
    st.caption("Your own documents: dropped in here, read, indexed, and asked about. They stay on this machine.")
    if chosen in resources.index_names(paths):
        keep_notices(SAID, (f"{chosen} was built from a folder: its documents change there, by ragqa index.", "plain"))
    elif chosen:
        keep_notices(SAID, (f"There is no corpus {chosen[:60]!r} in the library; choose one of the list.", "mixed"))
    draw_notices(SAID)
    _watched(paths)
    _new_corpus(paths)
    _corpora(paths)
    _others(paths)
    _import(paths)
    _deleted(paths)


def _new_corpus(paths: Paths) -> None:
    """Dropping files makes a corpus at once; a preview is shown before anything is indexed."""
    turn = st.session_state.setdefault("library_turn", 0)
    st.subheader("New corpus", anchor=False)
    title = st.text_input("Name", key="library_title", placeholder="What it is called, such as “Insurance rules 2026”")
    files = st.file_uploader(
        "Documents: PDF, Word, HTML, XML, Excel, CSV, text, or ZIP archives of them",
        type=TYPES,
        accept_multiple_files=True,
        key=f"library_drop_{turn}",
    )
    if not files:
        return
    st.session_state["library_turn"] = turn + 1
    with error_kept(SAID), used_once(files):
        called = title.strip() or title_of([file.name for file in files])
        name = new_name(called, paths.indexes, paths.library)
        with access.gate().doing(Act.UPLOAD, name, files=[file.name for file in files]), Reader() as reader:
            access.gate().spend_upload(sum(file.size for file in files))
            collection = make_collection(name, paths.library, called)
            lines = [line for file in files for line in take(collection, file.name, file, reader)]
        keep_notices(PROBLEM, *((line, "mixed") for line in lines))
        resources.library_jobs(paths).start(collection, "read", lambda: None)
        resources.warm_encoder(encoder_name(collection, paths.indexes), paths)
        _open(name)
    st.rerun()


def _watched(paths: Paths) -> None:
    """The proposals of the watched folder; nothing of them is indexed before a person says so."""
    own = resources.own_collections(paths)
    proposed: tuple[Proposal, ...] = ()
    with error_shown("mixed"):
        folder = watched_folder()
        hidden = dismissed(paths.watched_dismissed) if folder else frozenset()
        proposed = proposals(folder, own) if folder else ()
    if not proposed:
        return
    found = [one for one in proposed if one.digest not in hidden]
    titles = resources.corpus_titles([one.name for one in own], paths)
    st.subheader("From the watched folder", anchor=False)
    if found:
        st.caption("Files that the library does not hold. What you add is shown before anything is indexed.")
    if own and not all(one.corpus for one in found):
        names = {"": "a new corpus", **titles}
        st.selectbox("Corpus for new documents", list(names), format_func=names.__getitem__, key=TARGET)
    for place, one in enumerate(found[:SHOWN_PROPOSALS]):
        with st.container(horizontal=True, vertical_alignment="center", border=True, key=f"watched_{place}"):
            with st.container(width="stretch"):
                st.text(one.name)
                what = f"new version of {one.document_id} in {titles[one.corpus]}" if one.corpus else one.words
                st.caption(plain_markdown(f"{size_words(one.size)} · {what}"))
            st.button("Add", key=f"take_{place}", on_click=_take_over, args=(one, paths))
            st.button("Not now", key=f"not_now_{place}", on_click=_dismiss, args=(one, paths, True))
    if len(found) > SHOWN_PROPOSALS:
        st.caption(f"and {quantity(len(found) - SHOWN_PROPOSALS, 'more file')}")
    later = [one for one in proposed if one.digest in hidden]
    if later:
        with st.expander(f"Not now: {quantity(len(later), 'file')}"):
            st.caption("A file is proposed again by itself when it changes.")
            for place, one in enumerate(later[:SHOWN_PROPOSALS]):
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.text(one.name, width="stretch")
                    st.button("Propose again", key=f"again_{place}", on_click=_dismiss, args=(one, paths, False))


def _dismiss(one: Proposal, paths: Paths, is_dismissed: bool) -> None:
    about = {"folder": "watched", "files": [one.name], "dismissed": is_dismissed}
    with error_kept(SAID), access.gate().doing(Act.UPLOAD, one.corpus, **about):
        set_dismissed(paths.watched_dismissed, one.digest, is_dismissed=is_dismissed)


def _take_over(one: Proposal, paths: Paths) -> None:
    """Stages a proposed file and opens its corpus, where it is previewed."""
    with error_kept(SAID):
        title = PurePosixPath(one.name).stem
        chosen = one.corpus or st.session_state.get(TARGET, "")
        name = chosen or new_name(title, paths.indexes, paths.library)
        with access.gate().doing(Act.UPLOAD, name, folder="watched", files=[one.name]), Reader() as reader:
            access.gate().spend_upload(one.size)
            folder = watched_folder()
            collection = collection_of(name, paths.library) or make_collection(name, paths.library, title)
            lines = take_over(collection, folder, one, reader) if folder else []
            resources.library_jobs(paths).start(collection, "read", lambda: None)
        keep_notices(PROBLEM, *((line, "mixed") for line in lines))
        resources.warm_encoder(encoder_name(collection, paths.indexes), paths)
        _open(name)


def _corpora(paths: Paths) -> None:
    found = resources.own_collections(paths)
    if not found:
        return
    st.subheader("Corpora", anchor=False)
    known = {entry.name: entry for entry in list_indexes(paths.indexes)}
    for collection in found:
        row = st.container(horizontal=True, vertical_alignment="center", key=f"corpus_{collection.name}")
        with row, error_shown():
            catalogue = collection.read()
            st.button(
                f"**{plain_markdown(catalogue.title)}**",
                key=f"open_{collection.name}",
                icon=":material/folder_open:",
                type="tertiary",
                on_click=partial(_open, collection.name),
            )
            said = f" — {plain_markdown(catalogue.description[:200])}" if catalogue.description else ""
            words = [quantity(len(catalogue.kept), "document"), *_passages(known.get(collection.name))]
            if resources.library_jobs(paths).running(collection.name):
                words.append("job running")
            elif catalogue.staged:
                words.append(f"{quantity(len(catalogue.staged), 'file')} not indexed yet")
            elif not catalogue.is_current:
                words.append("changed since it was indexed")
            st.caption(" · ".join(words) + said)
            if collection.name in known:
                st.html(links_html(collection.name), width="content")


def _passages(entry: IndexEntry | None) -> list[str]:
    if entry is None or entry.manifest is None:
        return ["no index yet"] if entry is None else ["index damaged"]
    return [
        quantity(entry.manifest.n_passages, "passage"),
        f"indexed {entry.manifest.created[:16].replace('T', ' ')} UTC",
    ]


def _open(name: str) -> None:
    st.query_params["corpus"] = name


def _others(paths: Paths) -> None:
    own = {collection.name for collection in collections(paths.library)}
    may_read = resources.index_names(paths)
    others = [one for one in list_indexes(paths.indexes) if one.name in may_read and one.name not in own]
    if not others:
        return
    titles = resources.corpus_titles([entry.name for entry in others], paths)
    words = quantity(len(others), "corpus built from a folder", "corpora built from folders")
    with st.expander(words, expanded=not own or any(one.name == st.query_params.get("corpus") for one in others)):
        for entry in others:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.html(f"<b>{links_html(entry.name, {titles[entry.name]: 'read'})}</b>", width="content")
                documents = [quantity(entry.manifest.n_documents, "document")] if entry.manifest else []
                st.caption(" · ".join(documents + _passages(entry)))
                st.html(links_html(entry.name), width="content")
                st.button("Verify", key=f"verify_{entry.name}", on_click=partial(verify, entry.name, paths))


def verify(name: str, paths: Paths) -> None:
    """Verifies every file of an index and shows the result."""
    with error_kept(SAID):
        with access.gate().doing(Act.VERIFY, name):
            manifest = verify_index(name, paths.indexes)
        words = f"{name} is intact: {quantity(manifest.n_passages, 'passage')}, every hash matches."
        keep_notices(SAID, (words, "good"))


def _import(paths: Paths) -> None:
    with st.expander("Import a corpus"):
        turn = st.session_state.setdefault("library_import_turn", 0)
        file = st.file_uploader("An export of a corpus (ZIP)", type=["zip"], key=f"library_import_{turn}")
        if file is None:
            return
        st.session_state["library_import_turn"] = turn + 1
        with error_kept(SAID), used_once([file]):
            with access.gate().doing(Act.IMPORT, file=file.name), Reader() as reader:
                access.gate().spend_upload(file.size)
                taken = tuple(entry.name for entry in list_indexes(paths.indexes))
                collection = import_corpus(file, paths.library, reader, taken)
                _index(collection, paths)
            _open(collection.name)
        st.rerun()


def _index(collection: Collection, paths: Paths) -> None:
    name = encoder_name(collection, paths.indexes)
    resources.library_jobs(paths).start(collection, "index", partial(resources.encoder_of, name, paths))


def _deleted(paths: Paths) -> None:
    gate = access.gate()
    found = [one for one in deleted(paths.library) if gate.may(Act.RESTORE, one.name)]
    if not found:
        return
    with st.expander(f"Deleted: {len(found)}"):
        for one in found:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"**{plain_markdown(one.title)}**")
                st.caption(f"deleted {one.at[:10]}")
                st.button("Restore", key=f"restore_{one.key}", on_click=partial(_restore, one, paths))
                st.button("Delete for good", key=f"erase_{one.key}", on_click=partial(_erase, one, paths))


def _restore(one: Deleted, paths: Paths) -> None:
    with error_kept(SAID), access.gate().doing(Act.RESTORE, one.name):
        _open(restore(one.key, paths.library, paths.indexes).name)


def _erase(one: Deleted, paths: Paths) -> None:
    with error_kept(SAID), access.gate().doing(Act.DELETION, one.name, for_good=True):
        erase(one.key, paths.library)
