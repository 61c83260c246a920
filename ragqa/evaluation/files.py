"""Recognises question files by their beginning, and tells whether an index holds their gold."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any

from ragqa.corpus.jsonl import looks_like_jsonl, read_json_lines
from ragqa.corpus.pandachat import looks_like_pandachat
from ragqa.corpus.questions import GoldQuestion, load_gold, load_questions
from ragqa.errors import CorpusError
from ragqa.index import Index

LARGE = 200_000  # passages; in a larger index only gold passages are looked up, not documents
LOOKED_AT = 30  # questions whose gold is looked up in an index
_HEAD_BYTES = 1 << 16


def has_gold(path: Path) -> bool:
    """Whether the file may hold questions with gold passages or documents: ObliQA's schema, JSON lines, PandaChat's."""
    return (
        _listed(path, "Passages", "Evidence")
        or _lines(path, "question", "gold_passage_ids")
        or looks_like_pandachat(path)
    )


def has_questions(path: Path) -> bool:
    """Whether the file may hold questions, with or without gold."""
    return _listed(path) or has_gold(path) or (looks_like_jsonl(path) and _lines(path, "question"))


def has_answers(path: Path) -> bool:
    """Whether the file may hold JSON lines of {id, answer}."""
    return _lines(path, "id", "answer")


def _listed(path: Path, *one_of: str) -> bool:
    head = head_of(path)
    is_list = head.startswith("[") and has_key(head, "QuestionID") and has_key(head, "Question")
    return is_list and (not one_of or any(has_key(head, key) for key in one_of))


def _lines(path: Path, *keys: str) -> bool:
    head = head_of(path)
    return head.startswith("{") and all(has_key(head, key) for key in keys)


def has_key(head: str, key: str) -> bool:
    """Whether the text contains this key of a JSON object."""
    return re.search(rf'"{key}"\s*:', head) is not None


def head_of(path: Path) -> str:
    """The first 64 kB of the file as text; empty if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace").lstrip()
    except OSError:
        return ""


def shipped_rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a bundled JSON-lines file."""
    return [item.values for item in read_json_lines(path, path.name)]


def questions_with_gold(path: Path) -> tuple[GoldQuestion, ...]:
    """The questions of any file with gold; evidence is not looked up yet. Raises CorpusError."""
    return load_gold(path, ())[0] if looks_like_jsonl(path) or looks_like_pandachat(path) else load_questions(path)


def holds_gold(path: Path, index: Index, *, without: bool = False) -> bool:
    """Whether the index holds a passage or a document that the file's first questions name as gold.

    ``without`` is the answer for a file that names none.
    """
    try:
        few = tuple(islice(questions_with_gold(path), LOOKED_AT))
    except CorpusError:
        few = ()
    documents = {document for question in few for document, _ in question.evidence}
    wanted = frozenset().union(documents, *(question.gold for question in few))
    if not wanted:
        return without
    if any(name in index.position_of or f"{name}." in index.position_of for name in wanted):  # see `resolve_gold`
        return True
    return len(index.passages) <= LARGE and any(passage.document_id in wanted for passage in index.passages)
