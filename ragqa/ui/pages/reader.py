"""The page Read: a whole document, opened at a place; for a PDF with a picture of the page beside the text."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from html import escape
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragqa.corpus.documents import Reader, UnreadableError
from ragqa.corpus.documents.kinds import kind_of
from ragqa.corpus.documents.places import PageBoxes, pages_of, place_words
from ragqa.english.words import quantity
from ragqa.errors import RagqaError
from ragqa.index import Index, index_info
from ragqa.library.definitions import Glossary
from ragqa.library.document import (
    FOUND,
    DocumentView,
    document_at,
    documents_of,
    file_of,
    marks_of,
    search,
    search_corpus,
    section_question,
)
from ragqa.library.related import References
from ragqa.settings.paths import Paths
from ragqa.types import Passage
from ragqa.ui.html.library import links_html, plain_markdown
from ragqa.ui.html.reader import (
    Mark,
    beside_html,
    documents_html,
    hits_html,
    leaf_html,
    outline_html,
    passage_address,
    read_address,
)
from ragqa.ui.html.render import notice_html
from ragqa.ui.pages.cases import draw_add
from ragqa.ui.pages.notices import error_shown
from ragqa.ui.pages.register import draw_title
from ragqa.ui.shared import shared
from ragqa.ui.state import resources
from ragqa.ui.state.address import Link, address_of
from ragqa.ui.state.related import references_of, related_to, stamp_of, terms_of

LISTED = 50_000  # passages of a corpus up to which its documents are listed
_Columns = tuple[DeltaGenerator, DeltaGenerator, DeltaGenerator | None]
_SCROLL = """export default function ({ data }) {
  let left = 40;
  const show = () => {
    const place = document.getElementById("rq-place");
    if (place && place.dataset.shown !== data.place) {
      place.dataset.shown = data.place;
      (place.querySelector("mark") || place).scrollIntoView({ block: "center" });
    } else if (!place && left-- > 0) setTimeout(show, 100);
  };
  show();
}"""


def reader_page() -> None:
    """Draws the place of ``?corpus=NAME&passage=ID`` (optionally with ``from`` and ``to``) or ``&document=ID``."""
    paths = Paths.from_env()
    corpus = st.query_params.get("corpus", "")
    if corpus not in resources.index_names(paths):
        draw_title("Read", paths)
        return
    with error_shown():
        index = resources.open_corpus(corpus, paths)
        position = _position(index, corpus, paths)
        if position is not None:
            _draw(index, corpus, position, paths)


def _position(index: Index, corpus: str, paths: Paths) -> int | None:
    """The index position of the address; None where a document has to be chosen first."""
    passage_id, document_id = st.query_params.get("passage", ""), st.query_params.get("document", "")
    if passage_id:
        position = index.around(passage_id)
        if position is None:  # perhaps an id from an earlier parse of the same document
            position = index.position_of.get(resources.rereading_of(corpus, paths).ids.get(passage_id, ""))
        if position is not None:
            return position
        words = "This passage is not in the corpus any more: the document has changed since. Choose a document."
        st.html(notice_html(words, "mixed"))
    known = _documents(corpus, stamp_of(corpus, paths), paths)
    if document_id in known:
        return known[document_id][0]
    draw_title("Read", paths)
    if not _searched(index, corpus, None).strip():
        draw_documents(corpus, paths)
    return None


def draw_documents(corpus: str, paths: Paths) -> None:
    """The documents of a corpus as links; of a large corpus their number alone."""
    with error_shown():
        manifest = index_info(corpus, paths.indexes)
        st.caption(f"{quantity(manifest.n_documents, 'document')} · {quantity(manifest.n_passages, 'passage')}")
        if manifest.n_passages <= LISTED:
            st.html(documents_html(corpus, titles_of(corpus, paths)))


def titles_of(corpus: str, paths: Paths) -> dict[str, str]:
    """The titles of the corpus's documents by their ids; none without an index, or where there are too many."""
    with suppress(RagqaError):
        if index_info(corpus, paths.indexes).n_passages <= LISTED:
            return {name: title for name, (_, title) in _documents(corpus, stamp_of(corpus, paths), paths).items()}
    return {}


@shared(spinner="Looking through the corpus (once)", most=8)
def _documents(corpus: str, stamp: int, _paths: Paths) -> dict[str, tuple[int, str]]:
    return documents_of(resources.open_corpus(corpus, _paths))


@shared(most=32)
def _document(corpus: str, stamp: int, position: int, _paths: Paths) -> DocumentView:
    return document_at(resources.open_corpus(corpus, _paths), position)


def _draw(index: Index, corpus: str, position: int, paths: Paths) -> None:
    document = _document(corpus, stamp_of(corpus, paths), position, paths)
    passage = index.passages[position]
    chosen = passage.passage_id if st.query_params.get("passage") else ""
    st.title(plain_markdown(document.title), anchor=False)
    title = resources.corpus_titles([corpus], paths)[corpus]
    _bar(index, corpus, title, document, position)
    find = _searched(index, corpus, document)
    here = document.leaf(document.leaf_of(position))
    shown = [index.passages[place] for place in here]
    link = partial(passage_address, corpus)
    references = references_of(corpus, stamp_of(corpus, paths), paths)
    found = related_to(index, corpus, passage.passage_id, paths) if chosen else None
    beside = beside_html(found, corpus) if found else ""
    contents, text, picture = _columns(passage, corpus, paths, third=bool(beside))
    with contents:
        entries = document.branch(position)
        addresses = {one.position: link(index.passages[one.position]) for one in entries}
        contents_html = outline_html(entries, addresses, here)
        if contents_html:  # empty for a document without headings
            st.html(contents_html)
    with text:
        words = partial(marks_of, words=find) if find.strip() else None
        terms = terms_of(corpus, stamp_of(corpus, paths), paths)
        refers = partial(_links, index, corpus, references, terms)
        st.html(leaf_html(shown, link, chosen, _span(passage) if chosen else None, words, refers))
    if picture is not None:
        with picture, st.container(key="read_picture"):
            _picture(passage, corpus, paths)
            if beside:
                st.html(beside)
    if chosen:
        st.components.v2.component("ragqa_scroll", js=_SCROLL)(key="scroll", data={"place": chosen}, height=1)


def _links(index: Index, corpus: str, references: References, terms: Glossary, passage: Passage) -> list[Mark]:
    """Links for the references and defined terms in the passage."""
    found = []
    for use in terms.uses(passage):
        said = use.definition
        address = read_address(corpus, said.passage_id, (said.start, said.start + len(said.text)))
        found.append(Mark(use.start, use.end, href=address, tip=said.text))
    for one in references.get(passage.passage_id, ()):
        if one.target in index.position_of:
            target = index.passages[index.position_of[one.target]]
            title = f"{target.number}: {target.text[:200]}"
            found.append(Mark(one.start, one.end, href=read_address(corpus, one.target), title=title))
    return found


def _columns(passage: Passage, corpus: str, paths: Paths, *, third: bool) -> _Columns:
    """The columns for contents, text and, where needed, the picture of the page."""
    if third or (pages_of(passage.place) and file_of(corpus, passage.document_id, paths.library)):
        contents, text, picture = st.columns([0.2, 0.45, 0.35])
        return contents, text, picture
    contents, text = st.columns([0.25, 0.75])
    return contents, text, None


def _bar(index: Index, corpus: str, title: str, document: DocumentView, position: int) -> None:
    """The place in the document, and buttons and links from here."""
    number, last = document.leaf_of(position), len(document.leaves) - 1
    with st.container(horizontal=True, vertical_alignment="center", key="read_bar"):
        st.button("‹ Before", key="read_before", disabled=number == 0, on_click=_go, args=(index, document, number - 1))
        st.button("Next ›", key="read_next", disabled=number == last, on_click=_go, args=(index, document, number + 1))
        place = place_words(index.passages[position].place)
        of = f"Part {number + 1:,} of {last + 1:,}" + (f", {plain_markdown(place)}" if place else "")
        st.caption(f"{of} · {quantity(document.stop - document.start, 'passage')}")
        st.html(links_html(corpus, {f"‹ {title}": "read", "Register": "register", "Gaps": "gaps"}), width="content")
        if question := section_question(index.passages[position]):
            address = address_of(Link(question, corpus=corpus))
            st.html(f'<a class="rq-read" href="{escape(address)}" target="_self">Ask about this section</a>')
        draw_add(f"document:{corpus}/{document.document_id}", Paths.from_env())


def _go(index: Index, document: DocumentView, number: int) -> None:
    for name in ("from", "to"):
        st.query_params.pop(name, None)
    st.query_params["passage"] = index.passages[document.leaf(number).start].passage_id


def _span(passage: Passage) -> tuple[int, int] | None:
    """The characters that the address marks; None where it has no valid ones."""
    try:
        start, end = int(st.query_params.get("from", "")), int(st.query_params.get("to", ""))
    except ValueError:
        return None
    return (start, end) if 0 <= start < end <= len(passage.text) else None


def _searched(index: Index, corpus: str, document: DocumentView | None) -> str:
    """The search field with its results; returns the searched words."""
    name = document.document_id if document else ""
    field, where = st.columns([0.72, 0.28], vertical_alignment="bottom")
    find: str = field.text_input(
        "Search in this document" if document else "Search in this corpus",
        st.query_params.get("find", ""),
        key=f"read_find_{corpus}_{name}",
        placeholder='Words, or a phrase in "quotes"',
    )
    whole = document is None or where.checkbox("In the whole corpus", key=f"read_whole_{corpus}")
    if find.strip():
        _found(index, corpus, None if whole else document, find)
    return find


def _found(index: Index, corpus: str, document: DocumentView | None, words: str) -> None:
    hits = search(index, document, words) if document else search_corpus(index, words)
    if not hits:
        has = "No passage of this document has all these words." if document else "No passage of this corpus has them."
        st.html(notice_html(has, "mixed"))
        return
    addresses = [read_address(corpus, hit.passage.passage_id, words=words) for hit in hits]
    more = ", the first ones" if len(hits) == FOUND else ""
    st.caption(quantity(len(hits), "passage") + (more if document else ", best first"))
    st.html(hits_html(hits, addresses, document.title if document else "this corpus", documents=not document))


# The picture of a page ------------------------------------------------------------------------------------------------


@shared()
def _drawing() -> tuple[Reader, threading.Lock]:
    return Reader(seconds=30), threading.Lock()


@shared(most=64)
def _drawn(path: Path, stamp: int, page: int, boxes: tuple[tuple[float, float, float, float], ...]) -> bytes:
    reader, lock = _drawing()
    with lock:
        return reader.picture(path, page, boxes)


def _picture(passage: Passage, corpus: str, paths: Paths) -> None:
    path = file_of(corpus, passage.document_id, paths.library)
    if path is None or kind_of(path.name) != "PDF":
        return
    for one in pages_of(passage.place)[:2]:
        _page(path, one)


def _page(path: Path, one: PageBoxes) -> None:
    try:
        picture = _drawn(path, path.stat().st_mtime_ns, one.page, one.boxes)
    except (UnreadableError, OSError) as error:
        st.html(notice_html(f"Page {one.page} cannot be shown: {error}", "mixed"))
        return
    st.image(picture, caption=f"Page {one.page} of the file, the passage in a box", width="stretch")
