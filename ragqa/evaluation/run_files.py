"""Writes rankings as files: TREC runs, as required by the RIRAG shared task, and JSON lines per question.

A run has one hit per line, ``qid Q0 docid rank score tag``, separated by white space. ``trec_eval``, which the task's
organisers use, only reads the score: in single precision, and at equal scores the greater docid in byte order comes
first. Files are written completely or not at all (`write_whole`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragqa.errors import CorpusError, RecordError
from ragqa.infra.files import write_whole
from ragqa.types import Ranking

FOUND_SHOWN = 10
LARGEST = 1e38  # largest score written; single precision ends at 3.4e38


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """The result of one question: gold passages, passages found (best first), and the value of each measure."""

    question_id: str
    question: str
    gold: frozenset[str]
    found: Sequence[str]
    values: Mapping[str, float]


def write_run(
    path: Path,
    tag: str,
    question_ids: Sequence[str],
    rankings: Sequence[Ranking],
    docids: Mapping[str, str] | None = None,
) -> None:
    """Writes the rankings, ``rankings[i]`` being that of ``question_ids[i]``; a question without hits has no line.

    ``docids`` maps passage ids to names in the file (ObliQA: the item's ID); without it passage ids are used. White
    space within a name becomes ``_``. The score is the hit's, in single precision, lowered as little as possible if it
    is not below the previous one, so that trec_eval sees the same ranking.

    Raises CorpusError if question ids are empty or repeated, if a passage has no docid, or if two passages of a
    question have the same one. Raises RecordError if the file cannot be written, and ValueError if the tag is empty,
    the lengths differ, or a score is not finite or not within 1e38. Nothing is written then.
    """
    if not tag.strip() or len(question_ids) != len(rankings):
        raise ValueError(
            f"expected a tag and one ranking per question, found the tag {tag!r} and {len(rankings):,} rankings for "
            f"{len(question_ids):,} questions"
        )
    names = [_word(question_id) for question_id in question_ids]
    unusable = [name for name, count in Counter(names).items() if count > 1 or not name]
    if unusable:
        found = f"{unusable[0]!r} several times" if unusable[0] else "an empty one"
        raise CorpusError(
            f"a TREC run needs a question id of its own for every question, found {found}; give each "
            "question its own QuestionID"
        )
    lines = [
        f"{name} Q0 {docid} {rank} {score:.9g} {_word(tag)}\n"
        for name, ranking in zip(names, rankings, strict=True)
        for rank, (docid, score) in enumerate(_hits(name, ranking, docids), start=1)
    ]
    with _writing(path):
        write_whole(path, lines)


def _word(text: str) -> str:
    return "_".join(text.split())


def _hits(question: str, ranking: Ranking, docids: Mapping[str, str] | None) -> Iterator[tuple[str, float]]:
    seen: set[str] = set()
    bound = np.float32(np.inf)
    for hit in ranking.hits:
        passage_id = hit.passage.passage_id
        docid = _word(passage_id if docids is None else docids.get(passage_id, ""))
        if not docid or docid in seen:
            found = f"{docid!r} a second time" if docid else "none"
            raise CorpusError(
                f"question {question}: expected a docid of its own for passage {passage_id!r}, found {found}; build "
                "the index and the names from the same documents"
            )
        seen.add(docid)
        if not abs(hit.score) <= LARGEST:
            raise ValueError(f"question {question}: expected finite scores within {LARGEST:g}, found {hit.score}")
        bound = min(np.float32(hit.score), np.nextafter(bound, np.float32(-np.inf)))
        yield docid, float(bound)


def write_per_question(path: Path, rows: Iterable[QuestionResult]) -> None:
    """Writes one JSON object per line: {question_id, question, gold, found, values}, in the order of the rows.

    ``gold`` is sorted, ``found`` holds the ten best ids, ``values`` is the object of measure to value. Raises
    RecordError if the file cannot be written, ValueError if a value is not finite. Nothing is written then.
    """
    lines = [
        json.dumps(
            {
                "question_id": row.question_id,
                "question": row.question,
                "gold": sorted(row.gold),
                "found": list(row.found[:FOUND_SHOWN]),
                "values": dict(row.values),
            },
            ensure_ascii=False,
            allow_nan=False,
        )
        + "\n"
        for row in rows
    ]
    with _writing(path):
        write_whole(path, lines)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Translates the system's errors for a reader."""
    try:
        yield
    except OSError as error:
        msg = f"{path} cannot be written ({error.strerror or error}); choose a file in a folder you may write to"
        raise RecordError(msg) from error
