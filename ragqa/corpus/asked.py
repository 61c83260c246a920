"""Any file of questions -> the questions alone; whether they come with gold passages does not matter here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ragqa.corpus.json_items import read_items
from ragqa.corpus.jsonl import looks_like_jsonl
from ragqa.corpus.pandachat import load_pandachat_questions, looks_like_pandachat
from ragqa.corpus.paragraph_questions import load_paragraph_questions
from ragqa.errors import CorpusError
from ragqa.types import Question


def load_asked(path: Path) -> tuple[Question, ...]:
    """The questions of a JSON list of {QuestionID, Question}, of JSON lines with gold, or of PandaChat's data set.

    Raises CorpusError where there is no such file, it is something else, it holds no question, or an id stands twice.
    """
    if not path.is_file():
        msg = f"no file {path}; expected a JSON list of {{QuestionID, Question}}"
        raise CorpusError(msg)
    if looks_like_jsonl(path):
        questions = tuple(gold.question for gold in load_paragraph_questions(path))
    elif looks_like_pandachat(path):
        questions = tuple(found.question for found in load_pandachat_questions(path))
    else:
        items = read_items(path, path.name)
        questions = tuple(Question(item.line("Question"), item.identifier("QuestionID")) for item in items)
    twice = [name for name, count in Counter(question.question_id for question in questions).items() if count > 1]
    if twice or not questions:
        found = f"{twice[0]!r} several times" if twice else "no question"
        msg = f"{path.name}: expected questions, each with an id of its own, found {found}; correct the file"
        raise CorpusError(msg)
    return questions
