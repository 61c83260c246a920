"""Reads passages from a source folder or file: documents of many kinds, ObliQA JSON, text, JSON lines, a wiki dump."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ragqa.corpus import jsonl, obliqa, pandachat, text
from ragqa.corpus.documents import DOCUMENT_FORMATS
from ragqa.corpus.streams import Format, LoadedStream, PassageStream, corpus_sha256, loaded
from ragqa.corpus.wikipedia import dump, zim
from ragqa.errors import CorpusError
from ragqa.plugins.registry import CORPUS_FORMATS, entry_points_of, listed, make
from ragqa.types import Passage

FORMATS: Final[Mapping[str, Format]] = {
    "obliqa": obliqa,
    "text": text,
    "jsonl": jsonl,
    "pandachat": pandachat,
    "dump": dump,
    "zim": zim,
    **DOCUMENT_FORMATS,
}
SERVER_FORMATS: Final = ("mediawiki", "kiwix")  # of `ragqa.corpus.wikipedia.pages`: an address and a list of titles


@dataclass(frozen=True, slots=True)
class Corpus:
    """Every passage of a source, in order, with unique ids. ``sha256`` is the hash of the content, not of files."""

    passages: tuple[Passage, ...]
    format: str
    sha256: str


def load_corpus(source: Path, format: str | None = None, chunk_max_tokens: int = 128) -> Corpus:
    """All passages of `open_stream` in memory, which may be too small for those of a dump.

    Raises CorpusError, also if there is no passage, and ConfigError if ``chunk_max_tokens`` is below 1.
    """
    stream = open_stream(source, format, chunk_max_tokens)
    if isinstance(stream, LoadedStream):
        return Corpus(stream.passages, stream.format, stream.sha256)
    passages = tuple(passage for _, article in stream.articles() for passage in article)
    if not passages:
        msg = f"{source} holds no article with text; choose another file"
        raise CorpusError(msg)
    return Corpus(passages, stream.format, corpus_sha256(passages))


def open_stream(source: Path | PassageStream, format: str | None = None, chunk_max_tokens: int = 128) -> PassageStream:
    """The passages of ``source``, article by article; a stream is returned unchanged.

    Without ``format`` it is detected from the files (`detect_format`). ``chunk_max_tokens`` is the size of the largest
    passage in white-space separated tokens; ObliQA's passages are never split. Raises CorpusError, and ConfigError if
    ``chunk_max_tokens`` is below 1.
    """
    if not isinstance(source, Path):
        return source
    if not source.exists():
        msg = f"{source} does not exist; expected a folder or a file to read the corpus from"
        raise CorpusError(msg)
    chosen = format or detect_format(source)
    if chosen in SERVER_FORMATS:
        msg = (
            f"the format {chosen!r} is read from a server's address with a list of titles, found the path {source}; "
            "give an address like https://en.wikipedia.org/w/api.php and --titles FILE"
        )
        raise CorpusError(msg)
    if chosen in entry_points_of(CORPUS_FORMATS):
        passages = tuple(make(CORPUS_FORMATS, chosen, source=source, chunk_max_tokens=chunk_max_tokens))
        return loaded(chosen, source, passages)
    if chosen not in FORMATS:
        msg = f"unknown corpus format {chosen!r}; expected one of: {listed(CORPUS_FORMATS)}"
        raise CorpusError(msg)
    return FORMATS[chosen].stream(source, chunk_max_tokens)


def detect_format(source: Path) -> str:
    """The name in `FORMATS` that fits the files at ``source``. Raises CorpusError if several or none fit."""
    if len(pandachat.files(source)) == 1:  # JSON files like ObliQA's documents, but with other keys
        return "pandachat"
    single = {"pandachat", *DOCUMENT_FORMATS} - {"documents"}
    counts = {name: len(format.files(source)) for name, format in FORMATS.items() if name not in single}
    if source.is_file() and counts["documents"]:
        counts["dump"] = 0  # the XML of a document
    if counts["text"] and (counts["documents"] or _has_rules(source)):
        counts |= {"documents": counts["documents"] or counts["text"], "text": 0}  # read with the documents
    found = [name for name, count in counts.items() if count]
    if len(found) == 1:
        return found[0]
    if found:
        held = " and ".join(f"{counts[name]:,} {FORMATS[name].LABEL}" for name in found)
        msg = f"{source} holds {held} files; say which by --format {' or '.join(found)}"
    else:
        msg = (
            f"{source} holds neither JSON documents nor PDF, Word, HTML, XML, Excel, CSV, .md, .txt, .zip, .jsonl, "
            ".zim or dump (.xml) files; choose another source, or say what it is with --format"
        )
    raise CorpusError(msg)


def _has_rules(source: Path) -> bool:
    from ragqa.corpus.documents.markdown import is_rules  # a module that few questions need

    return any(map(is_rules, text.files(source)))
