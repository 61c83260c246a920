"""Reads FanOutQA (Zhu et al. 2024): dev and test questions with their necessary Wikipedia pages.

Dev items have an answer and a decomposition into smaller questions, each with the page that answers it; test items have
a list of pages and no answer. The text of the pages is not in the files:
`ragqa.evaluation.benchmarks.fanoutqa.evidence` finds it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ragqa.corpus.files import JsonItem, describe, read_items
from ragqa.corpus.questions import check_ids
from ragqa.errors import CorpusError
from ragqa.evaluation.files import has_key, head_of
from ragqa.types import Question

Primitive: TypeAlias = bool | int | float | str
Reference: TypeAlias = Mapping[str, Primitive] | tuple[Primitive, ...] | Primitive

# In the test set that fanoutqa 1.1.1 brings, and in the generations of its time; later files and the leaderboard's
# denominator (724) are without it.
WITHDRAWN = frozenset({"36146d2306ce9ca3"})


@dataclass(frozen=True, slots=True)
class EvidencePage:
    """A Wikipedia page at its revision of 20 November 2023, which is None if the file does not name it."""

    title: str
    page_id: str
    revision: int | None
    url: str = ""


@dataclass(frozen=True, slots=True)
class DecompositionStep:
    """A step of a human decomposition: it has either a page or steps of its own."""

    question: Question
    answer: Reference
    evidence: EvidencePage | None
    depends_on: tuple[str, ...] = ()
    steps: tuple[DecompositionStep, ...] = ()


@dataclass(frozen=True, slots=True)
class FanOutQuestion:
    """A question with the pages needed to answer it, each once, in the file's order.

    ``answer`` is None in the test set. Its texts are the file's, not cleaned, because the metrics compare them.
    """

    question: Question
    evidence: tuple[EvidencePage, ...]
    categories: tuple[str, ...] = ()
    answer: Reference | None = None
    steps: tuple[DecompositionStep, ...] = ()

    @property
    def question_id(self) -> str:
        return self.question.question_id


def load_fanoutqa(path: Path) -> tuple[FanOutQuestion, ...]:
    """The questions of ``fanout-final-dev.json`` or ``fanout-final-test.json``, in the file's order.

    Raises CorpusError if there is no such file, an item has another form, or an id occurs twice.
    """
    if not path.is_file():
        raise CorpusError(f"no file {path}; expected fanout-final-dev.json or fanout-final-test.json of FanOutQA")
    questions = tuple(_question(item) for item in read_items(path, path.name))
    check_ids((question.question_id for question in questions), path.name)
    return questions


def looks_like_fanoutqa(path: Path) -> bool:
    """Whether the file is a JSON list whose first items have the data set's keys; only its beginning is read."""
    head = head_of(path)
    is_list = re.match(r"\[\s*\{", head) is not None
    has_pages = has_key(head, "necessary_evidence") or has_key(head, "decomposition")
    return is_list and has_key(head, "question") and has_pages


def revisions_of(questions: Sequence[FanOutQuestion]) -> dict[str, int]:
    """Title -> revision of every page that some question needs; the newest if there are several."""
    found: dict[str, int] = {}
    for question in questions:
        for page in question.evidence:
            if page.revision is not None:
                found[page.title] = max(found.get(page.title, 0), page.revision)
    return found


def _question(item: JsonItem) -> FanOutQuestion:
    steps = tuple(_steps(item)) if "decomposition" in item else ()
    if "necessary_evidence" in item:
        evidence = [_evidence(part) for part in item.items("necessary_evidence")]
    elif steps:
        evidence = list(_evidence_of(steps))
    else:
        msg = f"{item.place}: expected 'necessary_evidence' or 'decomposition', found neither; correct the file"
        raise CorpusError(msg)
    return FanOutQuestion(
        question=Question(item.line("question"), item.identifier("id")),
        evidence=tuple({(page.title, page.revision): page for page in evidence}.values()),
        categories=item.texts("categories") if "categories" in item else (),
        answer=_reference(item) if "answer" in item else None,
        steps=steps,
    )


def _steps(item: JsonItem) -> Iterator[DecompositionStep]:
    for step in item.items("decomposition"):
        yield DecompositionStep(
            question=Question(step.line("question"), step.identifier("id")),
            answer=_reference(step),
            evidence=None if step.values.get("evidence") is None else _evidence(_object(step, "evidence")),
            depends_on=step.texts("depends_on") if "depends_on" in step else (),
            steps=tuple(_steps(step)) if "decomposition" in step else (),
        )


def _evidence_of(steps: Sequence[DecompositionStep]) -> Iterator[EvidencePage]:
    for step in steps:
        if step.evidence:
            yield step.evidence
        yield from _evidence_of(step.steps)


def _evidence(item: JsonItem) -> EvidencePage:
    revision = item.identifier("revid")  # a number, the number as a text, or "###TBD###" for a page added later
    number = int(revision) if re.fullmatch(r"[0-9]{1,18}", revision) else None
    url = item.line("url") if item.values.get("url") else ""
    return EvidencePage(item.line("title"), item.identifier("pageid"), number, url)


def _object(item: JsonItem, key: str) -> JsonItem:
    value = item.values[key]
    if not isinstance(value, dict):
        raise CorpusError(f"{item.place}: expected an object under {key!r}, found {describe(value)}; correct the file")
    return JsonItem(f"{item.place}, {key!r}", value)


def _reference(item: JsonItem) -> Reference:
    """The answer for comparison: a value, a list of values, or values by name; never empty or nested."""
    value: Any = item.values.get("answer")
    if isinstance(value, dict) and value and all(map(_is_primitive, value.values())):
        return dict(value)
    if isinstance(value, list) and value and all(map(_is_primitive, value)):
        return tuple(value)
    if _is_primitive(value):
        found: Primitive = value
        return found
    raise CorpusError(
        f"{item.place}: expected under 'answer' a text, a number, true or false, or a list or an object of these that "
        f"is not empty, found {describe(value)}; correct the file and try again"
    )


def _is_primitive(value: object) -> bool:
    return isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value))
