"""Questions with the passages that answer them: ObliQA's schema, and answers with evidence sentences."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragqa.corpus.json_items import Item, passage_id_of, read_items
from ragqa.errors import CorpusError
from ragqa.types import Passage, Question

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question, the ids of the passages that answer it, and where given its answers.

    ``evidence`` holds (document id, sentence) pairs; `resolve_gold` turns them into passage ids of a chunked corpus.
    """

    question: Question
    gold: frozenset[str]
    answers: tuple[str, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()


def load_questions(path: Path) -> tuple[GoldQuestion, ...]:
    """The questions of one JSON file, in its order.

    Each item has QuestionID and Question, and either Passages, a list of {DocumentID, PassageID} (ObliQA), or Evidence,
    a list of {DocumentID, Sentence}, or both; Answer (a text) or Answers (a list of texts) may stand beside them.
    Raises CorpusError where something is not as described here.
    """
    if not path.is_file():
        msg = f"no file {path}; expected a JSON list of questions"
        raise CorpusError(msg)
    return tuple(_question(item) for item in read_items(path, path.name))


def _question(item: Item) -> GoldQuestion:
    if "Passages" not in item and "Evidence" not in item:
        msg = f"{item.place}: expected 'Passages' or 'Evidence', found neither; correct the file and try again"
        raise CorpusError(msg)
    passages = item.items("Passages") if "Passages" in item else ()
    evidence = item.items("Evidence") if "Evidence" in item else ()
    return GoldQuestion(
        Question(item.line("Question"), item.identifier("QuestionID")),
        frozenset(passage_id_of(gold.identifier("DocumentID"), gold.line("PassageID")) for gold in passages),
        _answers(item),
        tuple((proof.identifier("DocumentID"), proof.line("Sentence")) for proof in evidence),
    )


def _answers(item: Item) -> tuple[str, ...]:
    if "Answers" in item:
        return item.texts("Answers")
    return (item.text("Answer"),) if "Answer" in item else ()


def resolve_gold(questions: Iterable[GoldQuestion], passages: Iterable[Passage]) -> tuple[GoldQuestion, ...]:
    """The questions with gold ids for their evidence added.

    Gold are the passages of the evidence's document whose text contains the sentence or, where a chunk border splits
    it, a part of it; white space does not count. Evidence that stands nowhere adds nothing and is logged.
    """
    by_document: dict[str, list[Passage]] = {}
    for passage in passages:
        by_document.setdefault(passage.document_id, []).append(passage)
    documents = {document_id: _Document(found) for document_id, found in by_document.items()}
    resolved = []
    for question in questions:
        gold = set(question.gold)
        for document_id, sentence in question.evidence:
            owners = documents[document_id].owners(sentence) if document_id in documents else set()
            if not owners:
                _logger.warning("evidence of question %s not found: %r", question.question.question_id, sentence)
            gold |= owners
        resolved.append(replace(question, gold=frozenset(gold)))
    return tuple(resolved)


class _Document:
    """The passages of one document joined in their order, each knowing where it begins."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        ordered = sorted(passages, key=lambda passage: passage.start)
        texts = [" ".join(passage.text.split()) for passage in ordered]
        self._ids = [passage.passage_id for passage in ordered]
        self._begins = [0]
        for text in texts[:-1]:
            self._begins.append(self._begins[-1] + len(text) + 1)
        self._text = " ".join(texts)

    def owners(self, sentence: str) -> set[str]:
        """The ids of the passages that every occurrence of the sentence touches."""
        wanted = " ".join(sentence.split())
        return {
            self._ids[place]
            for begin in _occurrences(self._text, wanted)
            for place in range(
                bisect_right(self._begins, begin) - 1, bisect_right(self._begins, begin + len(wanted) - 1)
            )
        }


def _occurrences(text: str, wanted: str) -> Iterator[int]:
    begin = text.find(wanted)
    while begin >= 0 and wanted:
        yield begin
        begin = text.find(wanted, begin + 1)
