"""Answers from a file, scored with the same scorer as the page. The schema is RIRAG A.6."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from ragqa.errors import CorpusError
from ragqa.events import Scored
from ragqa.protocols import Scorer
from ragqa.sentences import split_sentences
from ragqa.types import Answer, AnswerSentence, Passage

__all__ = ["AnswerItem", "ScoredItem", "load_items", "score_items"]


def _list_in_a_string(value: object) -> object:
    """Some published files hold the list of passages as a JSON string."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


class AnswerItem(BaseModel):
    """One item of the file; keys other than these are ignored."""

    model_config = ConfigDict(frozen=True)

    Question: str = ""
    RetrievedPassages: Annotated[tuple[str, ...], BeforeValidator(_list_in_a_string)]
    Answer: str
    QuestionID: str = ""


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """An item with its breakdown in both modes."""

    item: AnswerItem
    scored: Scored


def load_items(path: Path) -> tuple[AnswerItem, ...]:
    """The items of a JSON list or of a file with one JSON object per line.

    Raises CorpusError naming the item and the field, when the file is not such a list.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"cannot read {path} as UTF-8 text: {error}; give a JSON file of answers"
        raise CorpusError(msg) from error
    try:
        rows = _rows(text)
    except ValueError as error:
        msg = f"{path.name} is not JSON: {error}; expected a list of {{Question, RetrievedPassages, Answer}}"
        raise CorpusError(msg) from error
    return tuple(_item(path, number, row) for number, row in enumerate(rows, start=1))


def _rows(text: str) -> list[object]:
    """A JSON list as it is, one JSON object as a list of one, else one value per line."""
    try:
        value = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return value if isinstance(value, list) else [value]


def _item(path: Path, number: int, row: object) -> AnswerItem:
    try:
        return AnswerItem.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the item"
        msg = (
            f"{path.name}, item {number}: {field}: {first['msg']}; "
            "expected an object with Question, RetrievedPassages (a list of texts) and Answer"
        )
        raise CorpusError(msg) from error


def score_items(items: Sequence[AnswerItem], scorer: Scorer) -> Iterator[ScoredItem]:
    """Each item with its scores, in order, as soon as they are known."""
    for item in items:
        passages = [Passage(str(n), "", text, number=str(n)) for n, text in enumerate(item.RetrievedPassages, start=1)]
        stream = scorer.stream(answer_of_text(item.Answer), passages)
        while True:
            try:
                next(stream)
            except StopIteration as stop:
                yield ScoredItem(item, stop.value)
                break


def answer_of_text(text: str) -> Answer:
    """An answer written elsewhere, split into sentences; nothing is cited and nothing removed."""
    sentences = tuple(AnswerSentence(span.text, span.start, span.end) for span in split_sentences(text))
    return Answer(text, sentences, generator="file", model="", raw=text)
