"""The question files of a folder, by what a benchmark needs of them; only the beginning of a file is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ragqa.corpus.demo import DEMOS
from ragqa.corpus.fanoutqa import looks_like_fanoutqa
from ragqa.corpus.pandachat import looks_like_pandachat

FileKind = Literal["gold", "asked", "pandachat", "fanoutqa", "generations"]
"""Questions with gold, questions with or without, PandaChat's data set, FanOutQA's, answers to FanOutQA's questions."""

_HEAD_BYTES = 1 << 16
_MOST_FILES = 2_000  # looked at in one folder, its own and those one level below


@dataclass(frozen=True, slots=True)
class QuestionFile:
    """A file to choose, and what a reader is told it is."""

    path: Path
    label: str


def demo_files(kind: FileKind) -> tuple[QuestionFile, ...]:
    """The question files that come with ragqa, where they are of this kind."""
    if kind not in ("gold", "asked"):
        return ()
    return tuple(
        QuestionFile(path, f"{demo.title}, {path.name}") for demo in DEMOS.values() for path in demo.question_files
    )


def question_files(kind: FileKind, folder: Path, limit: int = _MOST_FILES) -> tuple[QuestionFile, ...]:
    """The files of this kind in ``folder`` and in its folders, by name; none where there is no such folder.

    What a file holds is guessed: a loader may refuse it still.
    """
    found = []
    for number, path in enumerate(_candidates(folder)):
        if number >= limit:
            break
        if _is_of(kind, path):
            found.append(QuestionFile(path, path.relative_to(folder).as_posix()))
    return tuple(found)


def _candidates(folder: Path) -> Iterator[Path]:
    """JSON files, lines of it too, here and one level below; unreadable folders hold none."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            inside = sorted(entry.iterdir()) if entry.is_dir() else [entry]
        except OSError:
            continue
        yield from (path for path in inside if re.search(r"\.(json|jsonl)$", path.name, re.I) and path.is_file())


def _is_of(kind: FileKind, path: Path) -> bool:
    if kind == "pandachat":
        return looks_like_pandachat(path)
    if kind == "fanoutqa":
        return looks_like_fanoutqa(path)
    head = _head(path)
    if kind == "generations":
        return head.startswith("{") and _has(head, "id") and _has(head, "answer")
    if path.suffix.lower() == ".jsonl":
        return _has(head, "question") and _has(head, "gold_passage_ids")
    is_list = head.startswith("[") and _has(head, "QuestionID") and _has(head, "Question")
    with_gold = is_list and (_has(head, "Passages") or _has(head, "Evidence"))
    return with_gold or (kind == "asked" and is_list) or looks_like_pandachat(path)


def _has(head: str, key: str) -> bool:
    return re.search(rf'"{key}"\s*:', head) is not None


def _head(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace").lstrip()
    except OSError:
        return ""
