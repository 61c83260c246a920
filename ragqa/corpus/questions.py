"""Reads questions from files, with or without the passages or documents that answer them."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ragqa.corpus.files import JsonItem, describe, passage_id_of, read_items
from ragqa.corpus.jsonl import looks_like_jsonl, read_json_lines
from ragqa.corpus.pandachat import load_pandachat_questions, looks_like_pandachat
from ragqa.errors import CorpusError
from ragqa.types import Passage, Question

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question, the ids of the passages that answer it, and its answers, if the file has them.

    ``evidence`` has (document id, sentence) pairs; `resolve_gold` turns them into passage ids of a chunked corpus.
    ``pair`` has the citing and the cited passage of a cross-reference question; ``kind`` is its kind in the file.
    """

    question: Question
    gold: frozenset[str]
    answers: tuple[str, ...] = ()
    evidence: tuple[tuple[str, str], ...] = ()
    pair: tuple[str, ...] = ()
    kind: str = ""


def load_questions(path: Path, *, needs_gold: bool = True) -> tuple[GoldQuestion, ...]:
    """The questions of one JSON file, in order.

    Each item has QuestionID and Question, and Passages, a list of {DocumentID, PassageID} (ObliQA), Evidence, a list of
    {DocumentID, Sentence}, or both; neither is required if ``needs_gold`` is false. Answer (a text) or Answers (a list
    of texts) is optional. The list of Passages may be inside a text, in JSON or Python syntax. An item with Kind,
    Reference or sources in its Answer is an XRefRAG question, whose two passages are a citing and the cited one. Raises
    CorpusError if something is not as described here.
    """
    if not path.is_file():
        msg = f"no file {path}; expected a JSON list of questions"
        raise CorpusError(msg)
    return tuple(_question(item, needs_gold) for item in read_items(path, path.name))


def _question(item: JsonItem, needs_gold: bool) -> GoldQuestion:
    if needs_gold and "Passages" not in item and "Evidence" not in item:
        msg = f"{item.place}: expected 'Passages' or 'Evidence', found neither; correct the file and try again"
        raise CorpusError(msg)
    passages = item.items("Passages") if "Passages" in item else ()
    evidence = item.items("Evidence") if "Evidence" in item else ()
    gold = tuple(passage_id_of(one.identifier("DocumentID"), one.line("PassageID")) for one in passages)
    answers = _answers(item)
    is_pair = len(set(gold)) == 2 and (
        "Kind" in item or "Reference" in item or any("[#SRC:" in answer for answer in answers)
    )
    return GoldQuestion(
        Question(item.line("Question"), item.identifier("QuestionID")),
        frozenset(gold),
        answers,
        tuple((proof.identifier("DocumentID"), proof.line("Sentence")) for proof in evidence),
        tuple(dict.fromkeys(gold)) if is_pair else (),
        item.line("Kind") if "Kind" in item else "",
    )


def _answers(item: JsonItem) -> tuple[str, ...]:
    if "Answers" in item:
        return item.texts("Answers")
    return (item.text("Answer"),) if "Answer" in item else ()


def resolve_gold(questions: Iterable[GoldQuestion], passages: Iterable[Passage]) -> tuple[GoldQuestion, ...]:
    """The questions, with the gold ids that follow from their evidence.

    A passage of the evidence's document is gold if its text contains the sentence or, if a chunk border splits that, a
    part of it; white space is ignored. Evidence that no passage contains adds nothing and is logged. A gold id that
    lacks only the full stop at the end of a passage's id means that passage (ObliQA-MP and XRefRAG leave it out).
    """
    by_document: dict[str, list[Passage]] = {}
    for passage in passages:
        by_document.setdefault(passage.document_id, []).append(passage)
    documents = {document_id: _Document(found) for document_id, found in by_document.items()}
    known = {passage.passage_id for found in by_document.values() for passage in found}

    def whole(name: str) -> str:
        return f"{name}." if name not in known and f"{name}." in known else name

    resolved = []
    for question in questions:
        gold = set(map(whole, question.gold))
        for document_id, sentence in question.evidence:
            owners = documents[document_id].owners(sentence) if document_id in documents else set()
            if not owners:
                _logger.warning("evidence of question %s not found: %r", question.question.question_id, sentence)
            gold |= owners
        resolved.append(replace(question, gold=frozenset(gold), pair=tuple(map(whole, question.pair))))
    return tuple(resolved)


class _Document:
    """The joined passages of one document, with the offset of each."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        ordered = sorted(passages, key=lambda passage: passage.start)
        texts = [" ".join(passage.text.split()) for passage in ordered]
        self._ids = [passage.passage_id for passage in ordered]
        self._begins = [0]
        for text in texts[:-1]:
            self._begins.append(self._begins[-1] + len(text) + 1)
        self._text = " ".join(texts)

    def owners(self, sentence: str) -> set[str]:
        """The ids of the passages that overlap an occurrence of the sentence."""
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


ID_KEYS = ("question_id", "id", "_id")
GOLD, ANSWERS = "gold_passage_ids", "answers"


def load_paragraph_questions(path: Path, *, needs_gold: bool = True) -> tuple[GoldQuestion, ...]:
    """The questions of one .jsonl or .jsonl.gz file, in order, with the ids of the lines that answer them.

    Each line has question and gold_passage_ids, a list of whole numbers or texts, read as texts. These are the document
    ids of `ragqa.corpus.jsonl`, and also passage ids if no text was long enough to be chunked. The question's id is
    under question_id, id or _id; else it is the ordinal, "1" for the first. answers, a list of texts, may be missing,
    and so may gold_passage_ids if ``needs_gold`` is False; other keys are ignored. Raises CorpusError if something is
    not as described here, an id repeats or there is no question.
    """
    if not path.is_file():
        msg = f"no file {path}; expected JSON lines of {{question, {GOLD}}}; check the path and try again"
        raise CorpusError(msg)
    questions: dict[str, GoldQuestion] = {}
    for number, item in enumerate(read_json_lines(path, path.name), start=1):
        question = _line_question(item, number, needs_gold=needs_gold)
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


def _line_question(item: JsonItem, number: int, *, needs_gold: bool) -> GoldQuestion:
    given = next((item.identifier(key) for key in ID_KEYS if item.values.get(key) is not None), "")
    return GoldQuestion(
        Question(item.line("question"), given or str(number)),
        frozenset(_identifiers(item, GOLD)) if needs_gold or GOLD in item else frozenset(),
        item.texts(ANSWERS) if ANSWERS in item else (),
    )


def _identifiers(item: JsonItem, key: str) -> tuple[str, ...]:
    """The ids in the list under ``key``, whole numbers or texts, as texts."""
    values = item.values.get(key)
    if not isinstance(values, list):
        found = describe(values) if key in item else f"no {key!r}"
        msg = f"{item.place}: expected a list of ids under {key!r}, found {found}; correct the line and try again"
        raise CorpusError(msg)
    place = f"{item.place}, {key!r}"
    return tuple(JsonItem(place, {f"id {n}": value}).identifier(f"id {n}") for n, value in enumerate(values, start=1))


GoldUnit = Literal["passage", "document"]


def load_gold(path: Path, passages: Iterable[Passage]) -> tuple[tuple[GoldQuestion, ...], GoldUnit]:
    """The questions of this file, and whether their gold ids are of passages or documents.

    ObliQA's schema names passages (evidence sentences are looked up in ``passages``). JSON lines of {question,
    gold_passage_ids} and PandaChat's data set name documents, which a corpus may split into several passages. Raises
    CorpusError.
    """
    if looks_like_jsonl(path):
        return load_paragraph_questions(path), "document"
    if looks_like_pandachat(path):
        found = load_pandachat_questions(path)
        return tuple(GoldQuestion(item.question, item.gold_documents) for item in found), "document"
    return resolve_gold(load_questions(path), passages), "passage"


def load_asked(path: Path) -> tuple[Question, ...]:
    """The questions of a JSON list of {QuestionID, Question}, of JSON lines of {question}, or of PandaChat's data set.

    Raises CorpusError if the file does not exist, has another format or no question, or if an id repeats.
    """
    if not path.is_file():
        msg = f"no file {path}; expected a JSON list of {{QuestionID, Question}} or JSON lines of {{question}}"
        raise CorpusError(msg)
    if looks_like_jsonl(path):
        questions = tuple(gold.question for gold in load_paragraph_questions(path, needs_gold=False))
    elif looks_like_pandachat(path):
        questions = tuple(found.question for found in load_pandachat_questions(path))
    else:
        items = read_items(path, path.name)
        questions = tuple(Question(item.line("Question"), item.identifier("QuestionID")) for item in items)
    check_ids((question.question_id for question in questions), path.name)
    return questions


def check_ids(ids: Iterable[str], name: str) -> None:
    """Raises CorpusError, with the file's name, if there is no question or an id occurs twice."""
    counts = Counter(ids)
    twice = next((one for one, count in counts.items() if count > 1), None)
    if twice is not None or not counts:
        found = "no question" if twice is None else f"{twice!r} several times"
        msg = f"{name}: expected questions, each with an id of its own, found {found}; correct the file"
        raise CorpusError(msg)
