"""A source folder or file -> passages. Two formats: ObliQA's JSON documents, and Markdown or plain text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from ragqa.corpus.obliqa import document_files, load_obliqa
from ragqa.corpus.text import load_text, text_files
from ragqa.errors import CorpusError
from ragqa.types import Passage

__all__ = ["Corpus", "CorpusFormat", "corpus_sha256", "detect_format", "load_corpus"]

CorpusFormat = Literal["obliqa", "text"]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Every passage of a source, in its order; ids are unique. ``sha256`` is the hash of the content, not of files."""

    passages: tuple[Passage, ...]
    format: CorpusFormat
    sha256: str


def load_corpus(source: Path, format: CorpusFormat | None = None, chunk_max_tokens: int = 128) -> Corpus:
    """The corpus at ``source``; ``format`` None takes what the files look like (`detect_format`).

    ``chunk_max_tokens`` is the chunk size of text; ObliQA's passages stay as they are. Raises CorpusError.
    """
    if not source.exists():
        msg = f"{source} does not exist; expected a folder or a file to read the corpus from"
        raise CorpusError(msg)
    chosen = format or detect_format(source)
    if chosen not in get_args(CorpusFormat):
        msg = f"unknown corpus format {chosen!r}; expected one of: {', '.join(get_args(CorpusFormat))}"
        raise CorpusError(msg)
    passages = load_obliqa(source) if chosen == "obliqa" else load_text(source, chunk_max_tokens)
    return Corpus(passages, chosen, corpus_sha256(passages))


def detect_format(source: Path) -> CorpusFormat:
    """``"obliqa"`` where there are JSON documents, ``"text"`` where there are .md, .markdown or .txt files.

    Raises CorpusError where there are both or neither.
    """
    n_json, n_text = len(document_files(source)), len(text_files(source))
    if n_json and n_text:
        msg = f"{source} holds {n_json:,} JSON and {n_text:,} text files; say which by --format obliqa or text"
        raise CorpusError(msg)
    if not n_json and not n_text:
        msg = (
            f"{source} holds neither JSON documents nor .md, .markdown or .txt files; "
            "choose another source, or say what it is with --format obliqa or --format text"
        )
        raise CorpusError(msg)
    return "obliqa" if n_json else "text"


def corpus_sha256(passages: Iterable[Passage]) -> str:
    """sha256 over id, title, section and text of every passage in order; the same on every machine."""
    digest = hashlib.sha256()
    for passage in passages:
        fields = [passage.passage_id, passage.title, passage.section, passage.text]
        digest.update(json.dumps(fields, ensure_ascii=True).encode("ascii") + b"\n")
    return digest.hexdigest()
