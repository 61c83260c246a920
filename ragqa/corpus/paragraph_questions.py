"""Questions about a JSON-lines corpus: JSON lines of {question, gold_passage_ids, answers} -> GoldQuestion."""

from __future__ import annotations

from pathlib import Path

from ragqa.corpus.json_items import Item, describe
from ragqa.corpus.jsonl import read_json_lines
from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import CorpusError
from ragqa.types import Question

ID_KEYS = ("question_id", "id", "_id")
GOLD, ANSWERS = "gold_passage_ids", "answers"


def load_paragraph_questions(path: Path) -> tuple[GoldQuestion, ...]:
    """The questions of one .jsonl or .jsonl.gz file, in its order, gold being the ids of the lines that answer them.

    Each line has question and gold_passage_ids, a list of whole numbers or texts, kept as texts: the ids of
    `load_jsonl`, which are passage ids where no text was long enough to be chunked and document ids always. An id
    stands under question_id, id or _id; without one it is the question's ordinal, "1" for the first. answers, a list
    of texts, may be missing; other keys are not read. Raises CorpusError where something is not as described here, an
    id repeats or there is no question.
    """
    if not path.is_file():
        msg = f"no file {path}; expected JSON lines of {{question, {GOLD}}}; check the path and try again"
        raise CorpusError(msg)
    questions: dict[str, GoldQuestion] = {}
    for number, item in enumerate(read_json_lines(path, path.name), start=1):
        question = _question(item, number)
        question_id = question.question.question_id
        if question_id in questions:
            found = f"{question_id[:40]!r}, which a question above has"
            msg = f"{item.place}: expected an id of its own, found {found}; correct one of them and try again"
            raise CorpusError(msg)
        questions[question_id] = question
    if not questions:
        msg = f"{path.name}: expected one question a line, found no line; check that this is the right file"
        raise CorpusError(msg)
    return tuple(questions.values())


def _question(item: Item, number: int) -> GoldQuestion:
    given = next((item.identifier(key) for key in ID_KEYS if item.values.get(key) is not None), "")
    return GoldQuestion(
        Question(item.line("question"), given or str(number)),
        frozenset(_identifiers(item, GOLD)),
        item.texts(ANSWERS) if ANSWERS in item else (),
    )


def _identifiers(item: Item, key: str) -> tuple[str, ...]:
    """The ids in the list under ``key``, whole numbers and texts alike as texts."""
    values = item.values.get(key)
    if not isinstance(values, list):
        found = describe(values) if key in item else f"no {key!r}"
        msg = f"{item.place}: expected a list of ids under {key!r}, found {found}; correct the line and try again"
        raise CorpusError(msg)
    place = f"{item.place}, {key!r}"
    return tuple(Item(place, {f"id {n}": value}).identifier(f"id {n}") for n, value in enumerate(values, start=1))
