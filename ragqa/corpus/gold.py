"""Any file of questions with gold -> questions, and whether their gold are passages or whole documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from ragqa.corpus.jsonl import looks_like_jsonl
from ragqa.corpus.pandachat import load_pandachat_questions, looks_like_pandachat
from ragqa.corpus.paragraph_questions import load_paragraph_questions
from ragqa.corpus.questions import GoldQuestion, load_questions, resolve_gold
from ragqa.types import Passage

GoldUnit = Literal["passage", "document"]


def load_gold(path: Path, passages: Iterable[Passage]) -> tuple[tuple[GoldQuestion, ...], GoldUnit]:
    """The questions of this file and what their gold ids name.

    ObliQA's schema names passages (evidence sentences are looked up among ``passages``); JSON lines of {question,
    gold_passage_ids} and PandaChat's data set name documents, of which a corpus may make several passages. Raises
    CorpusError.
    """
    if looks_like_jsonl(path):
        return load_paragraph_questions(path), "document"
    if looks_like_pandachat(path):
        found = load_pandachat_questions(path)
        return tuple(GoldQuestion(item.question, item.gold_documents) for item in found), "document"
    return resolve_gold(load_questions(path), passages), "passage"
