"""Rankings as files others can read: TREC runs, as the RIRAG shared task asks for them, and JSON lines per question.

A run has one hit a line, ``qid Q0 docid rank score tag``, separated by white space. ``trec_eval``, which the task's
organisers use, looks at the score alone: it reads it in single precision, and at equal scores puts the docid that is
greater as bytes first. Files appear whole or not at all (`write_whole`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragqa.corpus.files import read_utf8
from ragqa.errors import CorpusError, RecordError
from ragqa.infra.journal import write_whole
from ragqa.types import Ranking

COLUMNS = "qid Q0 docid rank score tag"
FOUND_SHOWN = 10
LARGEST = 1e38  # score written; single precision ends at 3.4e38
LARGEST_READ = 2e38  # a tied score is lowered a little


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """What became of one question: gold passages, passages found (best first), and the value of each measure."""

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

    ``docids`` names each passage as the file shall name it (ObliQA: the item's ID); without it the passage id itself.
    White space within a name becomes ``_``. The score is the hit's, in single precision, lowered by as little as
    possible where it would not lie below the one before, so that trec_eval sees the same ranking.

    Raises CorpusError where question ids are empty or repeat, a passage has no docid or two passages of a question
    have the same, RecordError where the file cannot be written, ValueError where the tag is empty, the lengths differ
    or a score is not finite or not within 1e38. Nothing is written then.
    """
    if not tag.strip() or len(question_ids) != len(rankings):
        msg = (
            f"expected a tag and one ranking per question, found the tag {tag!r} and {len(rankings):,} rankings for "
            f"{len(question_ids):,} questions"
        )
        raise ValueError(msg)
    names = [_word(question_id) for question_id in question_ids]
    unusable = [name for name, count in Counter(names).items() if count > 1 or not name]
    if unusable:
        found = f"{unusable[0]!r} several times" if unusable[0] else "an empty one"
        msg = (
            f"a TREC run needs a question id of its own for every question, found {found}; give each "
            "question its own QuestionID"
        )
        raise CorpusError(msg)
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
            msg = (
                f"question {question}: expected a docid of its own for passage {passage_id!r}, found {found}; build "
                "the index and the names from the same documents"
            )
            raise CorpusError(msg)
        seen.add(docid)
        if not abs(hit.score) <= LARGEST:
            msg = f"question {question}: expected finite scores within {LARGEST:g}, found {hit.score}"
            raise ValueError(msg)
        bound = min(np.float32(hit.score), np.nextafter(bound, np.float32(-np.inf)))
        yield docid, float(bound)


def read_run(path: Path) -> dict[str, tuple[tuple[str, float], ...]]:
    """For each question id, in the order of the file, its (docid, score) pairs as trec_eval ranks them, best first.

    Ranks are checked and not used. Blank lines are left out; an empty file is a run without questions. Raises
    CorpusError naming the line where something is not as described above, or a docid repeats within a question.
    """
    hits: dict[str, dict[str, float]] = {}
    for number, line in enumerate(read_utf8(path, path.name).split("\n"), start=1):
        if not line.strip():
            continue
        question, docid, score = _parsed(line.split(), f"{path.name}, line {number:,}")
        of_question = hits.setdefault(question, {})
        if docid in of_question:
            msg = (
                f"{path.name}, line {number:,}: expected each docid once per question, found {docid[:60]!r} again for "
                f"question {question[:60]!r}; correct the file and try again"
            )
            raise CorpusError(msg)
        of_question[docid] = score
    return {
        question: tuple(sorted(scores.items(), key=_as_trec_eval, reverse=True)) for question, scores in hits.items()
    }


def _as_trec_eval(hit: tuple[str, float]) -> tuple[float, bytes]:
    docid, score = hit
    return float(np.float32(score)), docid.encode("utf-8")


def _parsed(fields: list[str], place: str) -> tuple[str, str, float]:
    if len(fields) != len(COLUMNS.split()):
        _refuse(place, f"6 fields, {COLUMNS}", f"{len(fields)}: {' '.join(fields)[:60]!r}")
    question, _, docid, rank, score, _ = fields
    if not (rank.isascii() and rank.isdigit()):
        _refuse(place, "a whole number from 0 as rank", repr(rank[:60]))
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST_READ:
        _refuse(place, f"a number within {LARGEST_READ:g} as score", repr(score[:60]))
    return question, docid, value


def _refuse(place: str, expected: str, found: str) -> None:
    msg = f"{place}: expected {expected}, found {found}; correct the file and try again"
    raise CorpusError(msg)


def write_per_question(path: Path, rows: Iterable[QuestionResult]) -> None:
    """One JSON object a line: {question_id, question, gold, found, values}, in the order of the rows.

    ``gold`` is sorted, ``found`` holds the ten best ids, ``values`` is the object of measure to value. Raises
    RecordError where the file cannot be written, ValueError where a value is not finite. Nothing is written then.
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
    """The system's refusals in a reader's words."""
    try:
        yield
    except OSError as error:
        msg = f"{path} cannot be written ({error.strerror or error}); choose a file in a folder you may write to"
        raise RecordError(msg) from error
