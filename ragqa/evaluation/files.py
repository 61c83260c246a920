"""The beginnings of question files: what a file may be, without reading all of it."""

from __future__ import annotations

import re
from pathlib import Path

from ragqa.corpus.pandachat import looks_like_pandachat

_HEAD_BYTES = 1 << 16


def has_gold(path: Path) -> bool:
    """Whether the file may hold questions with gold passages or documents: ObliQA's schema, JSON lines, PandaChat's."""
    return (
        _listed(path, "Passages", "Evidence")
        or _lines(path, "question", "gold_passage_ids")
        or looks_like_pandachat(path)
    )


def has_questions(path: Path) -> bool:
    """Whether it may hold questions, with or without gold."""
    return _listed(path) or has_gold(path)


def has_answers(path: Path) -> bool:
    """Whether it may hold JSON lines of {id, answer}."""
    return _lines(path, "id", "answer")


def _listed(path: Path, *one_of: str) -> bool:
    head = head_of(path)
    is_list = head.startswith("[") and has_key(head, "QuestionID") and has_key(head, "Question")
    return is_list and (not one_of or any(has_key(head, key) for key in one_of))


def _lines(path: Path, *keys: str) -> bool:
    head = head_of(path)
    return head.startswith("{") and all(has_key(head, key) for key in keys)


def has_key(head: str, key: str) -> bool:
    """Whether the text holds this key of a JSON object."""
    return re.search(rf'"{key}"\s*:', head) is not None


def head_of(path: Path) -> str:
    """The first 64 kB of the file as text; empty where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace").lstrip()
    except OSError:
        return ""
