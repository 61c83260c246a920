"""Reads passages from folders of Markdown and plain text, chunked by the structure of each file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ragqa.corpus.chunking import chunk, markdown_outline, plain_outline
from ragqa.corpus.files import files_below, read_utf8, storable_name
from ragqa.corpus.streams import LoadedStream, check_max_tokens, loaded
from ragqa.errors import CorpusError
from ragqa.types import Passage

MARKDOWN = (".md", ".markdown")
SUFFIXES = (*MARKDOWN, ".txt")
SEPARATOR = " › "
LABEL = "text"


def load_text(folder: Path, max_tokens: int = 128) -> tuple[Passage, ...]:
    r"""The chunks of every .md, .markdown and .txt file below ``folder`` (or of one such file), files sorted by path.

    A chunk has at most ``max_tokens`` white-space separated tokens, is part of one section and is a verbatim slice:
    ``read_text(file)[passage.start:passage.end] == passage.text``. ``document_id`` is the file's path in the folder
    without its suffix (with it if two files differ only in that), ``title`` the first heading of level 1 or the file's
    name, ``section`` the headings below the title, ``number`` the chunk's ordinal in its file from 1. Files without
    text give no chunk. Raises CorpusError if a file is not UTF-8 or no file has text.
    """
    check_max_tokens(max_tokens)
    found = files(folder)
    if not found:
        msg = f"no text file in {folder}; expected {', '.join(SUFFIXES)} files in UTF-8"
        raise CorpusError(msg)
    root = folder if folder.is_dir() else folder.parent
    names = [storable_name(path.relative_to(root).as_posix()) for path in found]
    taken = Counter([*names, *(_without_suffix(name) for name in names)])
    passages: list[Passage] = []
    for path, name in zip(found, names, strict=True):
        short = _without_suffix(name)
        passages += chunks(path, name, short if taken[short] == 1 else name, max_tokens)
    if not passages:
        msg = f"the {len(found):,} text files in {folder} hold no text below their headings; nothing to index"
        raise CorpusError(msg)
    return tuple(passages)


def stream(source: Path, chunk_max_tokens: int = 128) -> LoadedStream:
    """A stream of the passages of `load_text`."""
    return loaded("text", source, load_text(source, chunk_max_tokens))


def files(source: Path) -> tuple[Path, ...]:
    """The files that `load_text` would read, as in `files_below`."""
    return files_below(source, SUFFIXES)


def read_text(path: Path, name: str = "") -> str:
    r"""The text that passage offsets refer to: with ``\n`` as line ending and without a byte-order mark."""
    name = name or path.name
    text = read_utf8(path, name)
    if "\0" in text:
        msg = f"{name} holds zero bytes: it is UTF-16 or no text at all; save it as UTF-8 or take it out, and try again"
        raise CorpusError(msg)
    return text


def _without_suffix(name: str) -> str:
    return name[: name.rindex(".")]


def chunks(path: Path, name: str, document_id: str, max_tokens: int) -> Iterator[Passage]:
    """The chunks of one file, as in `load_text`; ``name`` is its path in the folder."""
    text = read_text(path, name)
    outline = markdown_outline(text) if path.suffix.lower() in MARKDOWN else plain_outline(text)
    title = outline.title or _without_suffix(name.rpartition("/")[2])
    number = 0
    for section in outline.sections:
        for span in chunk(text, section.blocks, max_tokens):
            number += 1
            yield Passage(
                passage_id=f"{document_id}:{number}",
                document_id=document_id,
                text=span.text,
                title=title,
                section=SEPARATOR.join(section.path),
                number=str(number),
                start=span.start,
                end=span.end,
            )
