"""The files of a data set's stages: each can be read and edited, and the next stage continues from it.

``stages.json`` records what each file was made from and its sha256 when it was written. It is updated after the old
file is deleted and before the new one is written. A process that is killed in between thus leaves no file, rather than
a file that may or may not have been edited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ragqa.corpus.files import read_utf8
from ragqa.errors import ConfigError, CorpusError
from ragqa.infra.files import write_whole
from ragqa.infra.journal import digest, translated

STAGES: Final = "stages.json"
PASSAGES, TOPICS, GROUPS, QUESTIONS = "1-passages.jsonl", "2-topics.json", "3-groups.jsonl", "4-questions.jsonl"
VALIDATED, SPLIT = "5-validated.jsonl", "6-dataset.jsonl"
FILES: Final = {  # in the order of their making, and what each holds
    PASSAGES: "Passages to ask about",
    TOPICS: "Topics",
    GROUPS: "Passages of one question",
    QUESTIONS: "Questions",
    VALIDATED: "Validated questions",
    SPLIT: "The data set",
}

Row = dict[str, Any]


class Stages:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def is_edited(self, name: str) -> bool:
        """Whether the file was changed after it was written."""
        path = self.folder / name
        return path.exists() and self._known().get(name, {}).get("sha256") != sha256_of(path)

    def is_of(self, name: str, made_from: Mapping[str, Any]) -> bool:
        """Whether the file exists and was made from this, whether edited since or not.

        Raises ConfigError if it was made from something else and was edited, so that it is not overwritten.
        """
        path = self.folder / name
        if not path.exists():
            return False
        if self._known().get(name, {}).get("made_from") == digest(made_from):
            return True
        if self.is_edited(name):
            raise ConfigError(
                f"{path} was edited, and what it was made from (an earlier stage, or a setting) has changed since; "
                "undo one of the two, or move this file away to have it made anew"
            )
        return False

    def made(self, name: str, made_from: Mapping[str, Any], make: Callable[[], str]) -> str:
        """The text of the file, which is made if it is missing or was made from something else."""
        if not self.is_of(name, made_from):
            self.write(name, made_from, make())
        return read_utf8(self.folder / name, name)

    def write(self, name: str, made_from: Mapping[str, Any], text: str) -> None:
        """Writes the file and its entry. Raises RecordError if it cannot be written."""
        path = self.folder / name
        entry = {"made_from": digest(made_from), "sha256": hashlib.sha256(text.encode()).hexdigest()}
        with translated(self.folder):
            path.unlink(missing_ok=True)
            write_whole(self.folder / STAGES, [json.dumps({**self._known(), name: entry}, indent=2) + "\n"])
            write_whole(path, [text])

    def forget(self) -> None:
        """Deletes the files of all stages."""
        for name in (*FILES, STAGES):
            (self.folder / name).unlink(missing_ok=True)

    def _known(self) -> dict[str, dict[str, str]]:
        try:
            found: dict[str, dict[str, str]] = json.loads((self.folder / STAGES).read_bytes())
        except (OSError, ValueError):
            return {}
        return found


def sha256_of(path: Path) -> str:
    """The sha256 of the file's content; "" if there is no file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


def as_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """The rows as JSON lines."""
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def rows_in(text: str, name: str, keys: Sequence[str]) -> list[Row]:
    """The objects of JSON lines, each with a unique id. Raises CorpusError naming the line."""
    rows: list[Row] = []
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            msg = f"{name}, line {number:,}: expected a JSON object, found {line[:60]!r} ({error}); correct the line"
            raise CorpusError(msg) from error
        lacking = [key for key in keys if not isinstance(row, dict) or key not in row]
        if lacking or not isinstance(row.get("id"), str) or row["id"] in seen:
            found = f"none under {lacking[0]!r}" if lacking else f"the id {row['id']!r}, no text or there twice"
            raise CorpusError(f"{name}, line {number:,}: expected {', '.join(keys)}, found {found}; correct the line")
        seen.add(row["id"])
        rows.append(row)
    return rows


def topics_in(text: str, name: str) -> dict[str, list[str]]:
    """Topics with their key terms, as RIRAG's appendix A.3 lists them. Raises CorpusError."""
    try:
        found = json.loads(text)
        whole = isinstance(found, dict) and all(
            isinstance(terms, list) and terms and all(isinstance(term, str) and term.strip() for term in terms)
            for terms in found.values()
        )
    except (ValueError, RecursionError):
        whole = False
    if not whole:
        msg = f'{name}: expected a JSON object {{"Topic": ["key term", …]}}, found something else; correct it'
        raise CorpusError(msg)
    return {topic: list(terms) for topic, terms in found.items()}
