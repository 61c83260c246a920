"""RePASs that others published for answers -> how far ours, in mode ``script``, agrees with it.

E and C depend on the NLI model alone and are the firm comparison. OC, and with it the composite, also depends on an
obligation classifier whose weights were never published, and on its NLI model's input: read those loosely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean
from typing import TypeGuard

from ragqa.config import SplitterName
from ragqa.corpus.files import describe, read_json
from ragqa.errors import CorpusError
from ragqa.evaluation.answer_file import AnswerItem, score_item
from ragqa.evaluation.reference_files import Figures, figures_of
from ragqa.protocols import Scorer

PARTS = ("entailment", "contradiction", "obligation_coverage", "composite")  # fields of `Figures`, firm ones first
SCHEMA = (
    "a list of {QuestionID, RetrievedPassages, Answer, expected: {entailment_score, contradiction_score, "
    "obligation_coverage_score, composite_score}}, alone or under 'items'"
)


@dataclass(frozen=True, slots=True)
class PublishedCase:
    """An answer, the texts of its passages and the figures published for it."""

    item: AnswerItem
    published: Figures


@dataclass(frozen=True, slots=True)
class CaseAgreement:
    """One case: what was published and what we find, both in mode ``script``."""

    number: int
    question_id: str
    n_source_sentences: int
    n_answer_sentences: int
    published: Figures
    found: Figures


@dataclass(frozen=True, slots=True)
class PartAgreement:
    """One part over all cases.

    ``pearson`` is None for fewer than two cases, or where one side is the same throughout. ``mean_difference`` is the
    mean of ours minus published, ``mean_distance`` that of its absolute value; both 0 without cases.
    """

    part: str
    pearson: float | None
    mean_published: float
    mean_found: float
    mean_difference: float
    mean_distance: float


def read_published(path: Path) -> tuple[PublishedCase, ...]:
    """The cases of a JSON file, texts exactly as they stand there. Raises CorpusError naming the item."""
    content = read_json(path, path.name)
    rows = content.get("items") if isinstance(content, dict) else content
    if not isinstance(rows, list):
        msg = f"{path.name}: expected {SCHEMA}, found {describe(rows)}; give a file of published cases"
        raise CorpusError(msg)
    return tuple(_case(row, number, path.name) for number, row in enumerate(rows, start=1))


def _case(row: object, number: int, name: str) -> PublishedCase:
    problem = f"{name}, item {number}: expected {SCHEMA}"
    if not isinstance(row, dict):
        msg = f"{problem}; found {describe(row)}; correct the item and try again"
        raise CorpusError(msg)
    passages, answer, expected = (row.get(key) for key in ("RetrievedPassages", "Answer", "expected"))
    if isinstance(passages, str):
        passages = [passages]
    if not isinstance(passages, list) or not all(isinstance(text, str) for text in passages):
        msg = f"{problem}; found {describe(passages)} under RetrievedPassages; correct the item and try again"
        raise CorpusError(msg)
    if not isinstance(answer, str) or not isinstance(expected, dict):
        msg = (
            f"{problem}; found {describe(answer)} under Answer and {describe(expected)} under expected; "
            "correct the item and try again"
        )
        raise CorpusError(msg)
    scores = [expected.get(f"{part}_score") for part in PARTS]
    numbers = [float(score) for score in scores if _is_number(score)]
    if len(numbers) < len(PARTS):
        msg = f"{problem}; found {', '.join(map(describe, scores))} as scores; correct the item and try again"
        raise CorpusError(msg)
    question_id = str(row.get("QuestionID") or number)
    item = AnswerItem(number, question_id, str(row.get("Question") or ""), tuple(passages), answer)
    return PublishedCase(item, Figures(*numbers))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def score_published(
    scorer: Scorer, cases: Sequence[PublishedCase], splitter: SplitterName = "nupunkt"
) -> Iterator[CaseAgreement]:
    """Each case scored, in order, as soon as it is done. Raises ScoringError."""
    for case in cases:
        breakdown = score_item(case.item, scorer, splitter).script
        yield CaseAgreement(
            number=case.item.number,
            question_id=case.item.question_id,
            n_source_sentences=len(breakdown.premises),
            n_answer_sentences=len(breakdown.sentences),
            published=case.published,
            found=figures_of(breakdown),
        )


def agreement(cases: Sequence[CaseAgreement]) -> tuple[PartAgreement, ...]:
    """Entailment, contradiction, obligation coverage and composite, each over all these cases."""
    return tuple(_part(part, cases) for part in PARTS)


def _part(part: str, cases: Sequence[CaseAgreement]) -> PartAgreement:
    published = [float(getattr(case.published, part)) for case in cases]
    found = [float(getattr(case.found, part)) for case in cases]
    differences = [ours - theirs for ours, theirs in zip(found, published, strict=True)]
    varied = len(set(published)) > 1 and len(set(found)) > 1  # `correlation` of 0.2, 0.2, 0.2 is rounding noise
    return PartAgreement(
        part=part,
        pearson=correlation(published, found) if varied else None,
        mean_published=fmean(published) if cases else 0.0,
        mean_found=fmean(found) if cases else 0.0,
        mean_difference=fmean(differences) if cases else 0.0,
        mean_distance=fmean(map(abs, differences)) if cases else 0.0,
    )
