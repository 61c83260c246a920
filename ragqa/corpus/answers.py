"""Reads answers from a file in the schema of RIRAG A.6.

::

    [{"QuestionID": "…", "Question": "…", "RetrievedPassages": ["…", "…"], "Answer": "…"}, …]

The texts are read exactly as they are in the file, because published scores were computed on them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragqa.corpus.files import describe
from ragqa.errors import CorpusError

SCHEMA = "a list of {QuestionID, Question, RetrievedPassages, Answer}"


@dataclass(frozen=True, slots=True)
class AnswerItem:
    """One item of the file. ``number`` is its place in the file, from 1: several items may share a ``question_id``.

    ``skipped`` is empty, or says why the reference script skips the item; such an item may lack its passages.
    """

    number: int
    question_id: str
    question: str
    passages: tuple[str, ...]
    answer: str
    skipped: str = ""

    @property
    def sha256(self) -> str:
        """The sha256 of everything that is scored and shown, in hexadecimal."""
        fields = [self.question_id, self.question, self.passages, self.answer]
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """The items of a file in order, and the sha256 of the bytes they were read from."""

    name: str
    sha256: str
    items: tuple[AnswerItem, ...]


def read_answers(path: Path) -> AnswerFile:
    """The items of a JSON list, of one JSON object, or of a file with one JSON object per line.

    ``RetrievedPassages`` may be one text instead of a list, or a list inside a text, as in some published files;
    ``Question`` and ``QuestionID`` may be missing. Other keys are ignored. For any other content, raises CorpusError
    that names the item and the field.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        msg = f"cannot read {path}: {error}; give a JSON file with {SCHEMA}"
        raise CorpusError(msg) from error
    return answers_in(content, path.name)


def answers_in(content: bytes, name: str) -> AnswerFile:
    """The items of a file with this content, as `read_answers` reads them."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"cannot read {name} as UTF-8 text: {error}; give a JSON file with {SCHEMA}"
        raise CorpusError(msg) from error
    rows = _rows(text, name)
    items = tuple(_item(row, number, name) for number, row in enumerate(rows, start=1))
    if rows and not any(isinstance(row, dict) and "Answer" in row for row in rows):
        keys = ", ".join(map(repr, list(rows[0])[:10])) or "no key at all"
        msg = f"{name}: none of the {len(rows):,} items has 'Answer', the first has {keys}; expected {SCHEMA}"
        raise CorpusError(msg)
    return AnswerFile(name, hashlib.sha256(content).hexdigest(), items)


def _rows(text: str, name: str) -> list[Any]:
    """The items of a JSON list, one JSON object as a list of one, or else one value per line."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        msg = f"{name} is not JSON that can be read: it is nested too deeply; expected {SCHEMA}"
        raise CorpusError(msg) from error
    except ValueError as error:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if not lines or text.lstrip().startswith("["):
            found = f"{error}" if lines else "it is empty"
            msg = f"{name} is not JSON: {found}; expected {SCHEMA}"
            raise CorpusError(msg) from error
        return [_line(line, number, name) for number, line in lines]
    return value if isinstance(value, list) else [value]


def _line(line: str, number: int, name: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        msg = f"{name} is not JSON, neither as a whole nor line by line: line {number}: {error}; expected {SCHEMA}"
        raise CorpusError(msg) from error


def _item(row: object, number: int, name: str) -> AnswerItem:
    place = f"{name}, item {number}"
    if not isinstance(row, dict):
        msg = f"{place}: expected an object, found {describe(row)}; expected {SCHEMA}"
        raise CorpusError(msg)
    answer = _text(row, "Answer", place)
    skipped = _no_answer(row) if not answer.strip() else ""
    return AnswerItem(
        number=number,
        question_id=_text(row, "QuestionID", place, whole_number=True),
        question=_text(row, "Question", place),
        passages=() if skipped else _passages(row, place),
        answer=answer,
        skipped=skipped,
    )


def _no_answer(row: dict[str, Any]) -> str:
    """The reason why there is nothing to score, as in RegNLP/RePASs ``scripts/evaluate_model.py`` (ba888af)."""
    if "Answer" not in row:
        return "no answer: the item has no 'Answer'"
    return "no answer: it is null" if row["Answer"] is None else "no answer: it is empty"


def _text(row: dict[str, Any], field: str, place: str, *, whole_number: bool = False) -> str:
    """The text under ``field``, unchanged; empty if it is missing or null."""
    value = row.get(field)
    if value is None:
        return ""
    if whole_number and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        msg = f"{place}: {field}: expected a text, found {describe(value)}; correct the item and try again"
        raise CorpusError(msg)
    return value


def _passages(row: dict[str, Any], place: str) -> tuple[str, ...]:
    expected = "expected a list of texts under 'RetrievedPassages'"
    if "RetrievedPassages" not in row:
        present = ", ".join(repr(key)[:40] for key in list(row)[:10])
        msg = f"{place}: RetrievedPassages: {expected}, found only {present}; add the passages and try again"
        raise CorpusError(msg)
    value = _list_in_a_text(row["RetrievedPassages"])
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        msg = f"{place}: RetrievedPassages: {expected}, found {describe(value)}; correct the item and try again"
        raise CorpusError(msg)
    for position, passage in enumerate(value, start=1):
        if not isinstance(passage, str):
            msg = (
                f"{place}: RetrievedPassages: expected a text as passage {position}, found {describe(passage)}; "
                "correct the item and try again"
            )
            raise CorpusError(msg)
    return tuple(value)


def _list_in_a_text(value: object) -> object:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return found if isinstance(found, list) else value
    return value
