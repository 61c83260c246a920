"""Reads passages and questions from PandaChat-RAG-sl: a JSON list of {query, answer, document, text, text_without_Q}.

This is the format of TajaKuzman/pandachat-rag-benchmark, with one item a question. ``text_without_Q`` is indexed, in
which the document's own questions are blanked out. A submission's ``sources`` are values of ``document``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragqa.corpus.chunking import SplitBlock, chunk
from ragqa.corpus.cleaning import clean_text
from ragqa.corpus.files import JsonItem, read_items
from ragqa.corpus.jsonl import passages_of_document
from ragqa.corpus.streams import LoadedStream, check_max_tokens, loaded
from ragqa.errors import CorpusError
from ragqa.types import Passage, Question

QUESTION, DOCUMENT, TEXT = "query", "document", "text_without_Q"
LABEL = "PandaChat"
PARAGRAPH_END = "<p>"
PARAGRAPH_GAP = "\n\n"
_HEAD_BYTES = 1 << 20  # enough for the keys of the first item; the published file has 1.5 MB


@dataclass(frozen=True, slots=True)
class DocumentQuestion:
    """A question and the ids of the documents that answer it: any passage of such a document is a hit."""

    question: Question
    gold_documents: frozenset[str]


def load_pandachat(path: Path, max_tokens: int = 128) -> tuple[Passage, ...]:
    """The passages of every document, once each and in the order of the file; ``path`` may be the folder of the file.

    A passage has at most ``max_tokens`` white-space separated tokens (128 in the benchmark), all of one document:
    paragraphs are merged while they fit, and a longer one is split between sentences (`chunk`). ``document_id`` is the
    name that submissions give under ``sources``; passage ids are that name, then ``#2``, ``#3``. There are no titles.
    ``start`` and ``end`` are character offsets in `pandachat_text`. Blank documents are left out. Raises CorpusError if
    something is not as described here, and ConfigError if ``max_tokens`` is below 1.
    """
    check_max_tokens(max_tokens)
    texts: dict[str, str] = {}
    for item in _items(path):
        document_id, text = item.identifier(DOCUMENT), pandachat_text(item.text(TEXT))
        if texts.setdefault(document_id, text) != text:
            msg = (
                f"{item.place}: expected the text that document {document_id!r} has further up under {TEXT!r}, found "
                "another one; give every document one text and try again"
            )
            raise CorpusError(msg)
    passages = tuple(
        passage
        for name, text in texts.items()
        for passage in passages_of_document(name, "", chunk(text, _paragraphs(text), max_tokens), texts.__contains__)
    )
    if not passages:
        msg = (
            f"{path}: expected at least one document with text under {TEXT!r}, found {len(texts):,} without; "
            "check that this is the right file and try again"
        )
        raise CorpusError(msg)
    return passages


def load_pandachat_questions(path: Path) -> tuple[DocumentQuestion, ...]:
    """The questions in file order, each with the document that it was taken from; ids are "1", "2" by position.

    ``path`` is as in `load_pandachat`. Raises CorpusError if an item has no question or no document.
    """
    return tuple(
        DocumentQuestion(Question(item.line(QUESTION), str(number)), frozenset({item.identifier(DOCUMENT)}))
        for number, item in enumerate(_items(path), start=1)
    )


def load_pandachat_rows(path: Path) -> tuple[dict[str, Any], ...]:
    """The unchanged items of the file in order, which a submission repeats. Raises CorpusError.

    ``path`` is as in `load_pandachat`.
    """
    return tuple(item.values for item in _items(path))


def locate_pandachat(path: Path) -> Path:
    """``path``, or its folder ``pandachat`` if ``path`` is a folder of several data sets, such as RAGQA_DATA.

    The content is not checked; the loaders refuse other files.
    """
    beside = path / "pandachat"
    return beside if beside.is_dir() and not looks_like_pandachat(path) else path


def looks_like_pandachat(path: Path) -> bool:
    """Whether ``path`` is a JSON list of items with the data set's keys, or a folder with exactly one such file.

    Only the first megabyte is read. Submissions do not count, as they are objects and not lists.
    """
    return len(files(path)) == 1


def pandachat_text(marked: str) -> str:
    r"""The text as a reader sees it: cleaned paragraphs, separated by a blank line, without blank ones.

    ``marked`` has ``<p>`` between paragraphs. Line breaks and blank lines within a paragraph become one space.
    """
    paragraphs = (" ".join(clean_text(paragraph).split()) for paragraph in marked.split(PARAGRAPH_END))
    return PARAGRAPH_GAP.join(paragraph for paragraph in paragraphs if paragraph)


def _paragraphs(text: str) -> Iterator[SplitBlock]:
    start = 0
    for paragraph in text.split(PARAGRAPH_GAP):
        yield SplitBlock(start, start + len(paragraph))
        start += len(paragraph) + len(PARAGRAPH_GAP)


def _items(path: Path) -> tuple[JsonItem, ...]:
    """The items of the file, or of the only file of this format in a folder. There is at least one."""
    found = (path,) if path.is_file() else files(path)
    if len(found) != 1:
        held = " and ".join(file.name for file in found) if found else "none"
        msg = (
            f"{path}: expected one JSON file, a list of {{{QUESTION}, {DOCUMENT}, {TEXT}}}, found {held}; "
            "name the file itself and try again"
        )
        raise CorpusError(msg)
    items = read_items(found[0], found[0].name)
    if not items:
        msg = f"{found[0].name}: expected a list of questions, found an empty one; check that this is the right file"
        raise CorpusError(msg)
    return items


def stream(source: Path, chunk_max_tokens: int = 128) -> LoadedStream:
    """A stream of the passages of `load_pandachat`."""
    return loaded("pandachat", source, load_pandachat(source, chunk_max_tokens))


def files(source: Path) -> tuple[Path, ...]:
    """The file at ``source``, or the files in that folder, that have the data set's keys, by name."""
    candidates = [source] if source.is_file() else sorted(source.iterdir()) if source.is_dir() else []
    return tuple(file for file in candidates if file.suffix.lower() == ".json" and file.is_file() and _has_keys(file))


def _has_keys(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            head = stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")
    except OSError:
        return False
    is_list = re.match(r"\s*\[\s*\{", head) is not None
    return is_list and all(re.search(rf'"{key}"\s*:', head) for key in (QUESTION, DOCUMENT, TEXT))
