"""A source folder or file -> passages: ObliQA's JSON, Markdown or text, JSON lines, PandaChat's set, a wiki's dump."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from ragqa.corpus.jsonl import json_line_files, load_jsonl
from ragqa.corpus.obliqa import document_files, load_obliqa
from ragqa.corpus.pandachat import load_pandachat, looks_like_pandachat
from ragqa.corpus.streams import CorpusFormat, open_stream
from ragqa.corpus.text import load_text, text_files
from ragqa.corpus.wikipedia.dump import dump_files
from ragqa.corpus.wikipedia.zim import is_zim
from ragqa.errors import CorpusError
from ragqa.types import Passage

__all__ = ["Corpus", "CorpusFormat", "corpus_sha256", "detect_format", "load_corpus"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Every passage of a source, in its order; ids are unique. ``sha256`` is the hash of the content, not of files."""

    passages: tuple[Passage, ...]
    format: CorpusFormat
    sha256: str


def load_corpus(source: Path, format: CorpusFormat | None = None, chunk_max_tokens: int = 128) -> Corpus:
    """The corpus at ``source``; ``format`` None takes what the files look like (`detect_format`).

    ``chunk_max_tokens`` is the largest passage; ObliQA's stay as they are. Raises CorpusError.
    """
    if not source.exists():
        msg = f"{source} does not exist; expected a folder or a file to read the corpus from"
        raise CorpusError(msg)
    chosen = format or detect_format(source)
    if chosen not in get_args(CorpusFormat):
        msg = f"unknown corpus format {chosen!r}; expected one of: {', '.join(get_args(CorpusFormat))}"
        raise CorpusError(msg)
    if chosen == "obliqa":
        passages = load_obliqa(source)
    elif chosen == "text":
        passages = load_text(source, chunk_max_tokens)
    elif chosen == "jsonl":
        passages = load_jsonl(source, chunk_max_tokens)
    elif chosen == "pandachat":
        passages = load_pandachat(source, chunk_max_tokens)
    else:
        passages = _streamed(source, chosen, chunk_max_tokens)
    return Corpus(passages, chosen, corpus_sha256(passages))


def _streamed(source: Path, format: CorpusFormat, chunk_max_tokens: int) -> tuple[Passage, ...]:
    """All passages of a source that may be too large for this: an index is built from `open_stream` itself."""
    stream = open_stream(source, format, chunk_max_tokens)
    if stream is None:
        msg = (
            f"the format {format!r} is read from a server's address with a list of titles, found the path {source}; "
            "give an address like https://en.wikipedia.org/w/api.php and --titles FILE"
        )
        raise CorpusError(msg)
    passages = tuple(passage for _, article in stream.articles() for passage in article)
    if not passages:
        msg = f"{source} holds no article with text; choose another file"
        raise CorpusError(msg)
    return passages


def detect_format(source: Path) -> CorpusFormat:
    """``"obliqa"`` for JSON documents, ``"text"`` for .md, .markdown and .txt, ``"jsonl"``, ``"pandachat"``,
    ``"dump"`` for a wiki's .xml, .xml.bz2 and .xml.gz, ``"zim"``.

    Raises CorpusError where there are several of them or none.
    """
    if looks_like_pandachat(source):
        return "pandachat"
    counts: dict[CorpusFormat, int] = {
        "obliqa": len(document_files(source)),
        "text": len(text_files(source)),
        "jsonl": len(json_line_files(source)),
        "dump": len(dump_files(source)),
        "zim": int(is_zim(source)),
    }
    found = [name for name, count in counts.items() if count]
    if len(found) == 1:
        return found[0]
    if found:
        held = " and ".join(f"{counts[name]:,} {_FILES[name]}" for name in found)
        msg = f"{source} holds {held} files; say which by --format {' or '.join(found)}"
    else:
        msg = (
            f"{source} holds neither JSON documents nor .md, .markdown, .txt, .jsonl, .zim or dump (.xml) files; "
            "choose another source, or say what it is with --format"
        )
    raise CorpusError(msg)


_FILES: dict[CorpusFormat, str] = {
    "obliqa": "JSON",
    "text": "text",
    "jsonl": "JSON lines",
    "dump": "dump",
    "zim": "ZIM",
}


def corpus_sha256(passages: Iterable[Passage]) -> str:
    """sha256 over id, title, section and text of every passage in order; the same on every machine."""
    digest = hashlib.sha256()
    for passage in passages:
        fields = [passage.passage_id, passage.title, passage.section, passage.text]
        digest.update(json.dumps(fields, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()
