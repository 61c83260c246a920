"""Writes `results.csv` and `results.txt` in the reference's format, and `details.json` with every pair.

The reference is RegNLP/RePASs. ``scripts/evaluate_model.py`` (commit ba888af) defines the columns and the format of
numbers. ``RIRAG-SharedTaskEvaluation/RePASs.ipynb`` (commit d68fd63), which evaluated the shared task, defines the
averages: over every row of the table, 0.0 without rows. The script itself only averages rows scored since its last
start, and gives ``nan`` without rows.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from ragqa.evaluation.answer_file import AnswerScores
from ragqa.evaluation.benchmark import Outcome
from ragqa.infra.cleaning import cell
from ragqa.infra.files import write_whole
from ragqa.infra.journal import translated

CSV, TEXT, DETAILS = "results.csv", "results.txt", "details.json"
CSV_COLUMNS = ("QuestionID", "entailment_score", "contradiction_score", "obligation_coverage_score", "composite_score")
ABOUT: Final = (
    "Every matrix has a row per source sentence (premises) and a column per answer sentence (sentences): the model's "
    "probability with the source sentence as premise and the answer sentence as hypothesis. Neutral is 1 minus both. "
    "coverage_matrix has a row per obligation and a column per answer sentence of looked_at: the probability of "
    "entailment with the answer sentence as premise and the obligation as hypothesis. "
    "Figures are those of results.csv, in this run's mode."
)


def averages(rows: Sequence[AnswerScores]) -> AnswerScores:
    """The mean of every column, by numpy's summation as in the reference; zeros without rows."""
    if not rows:
        return AnswerScores(0.0, 0.0, 0.0, 0.0)
    return AnswerScores(*(float(np.mean(column)) for column in zip(*(row.values for row in rows), strict=True)))


def csv_text(rows: Iterable[tuple[str, AnswerScores]]) -> str:
    """The table of (QuestionID, figures), with every number in the fewest digits that restore it exactly."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    writer.writerows((cell(question_id), *figures.values) for question_id, figures in rows)
    return out.getvalue()


def averages_text(means: AnswerScores) -> str:
    """The four lines of ``results.txt``."""
    return (
        f"Average Entailment Score: {means.entailment}\n"
        f"Average Contradiction Score: {means.contradiction}\n"
        f"Average Obligation Coverage Score: {means.obligation_coverage}\n"
        f"Average Final Composite Score: {means.composite}\n"
    )


def figures_in(outcome: Outcome) -> AnswerScores | None:
    """The figures of this item; None if it was skipped or failed."""
    scores = outcome.scores or {}
    return AnswerScores(**scores["figures"]) if "figures" in scores else None


def write_results(folder: Path, head: Mapping[str, Any], outcomes: Sequence[Outcome]) -> None:
    """Writes the three files, each completely or not at all; ``outcomes`` are all items in order.

    The files depend only on the journal, so they are the same however often a run was interrupted. ``head`` begins the
    details. Raises RecordError if the folder cannot be written.
    """
    found = [(outcome.item.question.question_id, figures_in(outcome)) for outcome in outcomes]
    rows = [(question_id, figures) for question_id, figures in found if figures is not None]
    with translated(folder):
        write_whole(folder / DETAILS, _details(head, outcomes))
        write_whole(folder / TEXT, [averages_text(averages([figures for _, figures in rows]))])
        write_whole(folder / CSV, [csv_text(rows)])


def _details(head: Mapping[str, Any], outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield json.dumps({**head, "about": ABOUT}, allow_nan=False, indent=1)[:-2] + ',\n "items": [\n'
    for place, outcome in enumerate(outcomes):
        yield (",\n" if place else "") + json.dumps(_detail(outcome), allow_nan=False)
    yield "\n]}\n"


def _detail(outcome: Outcome) -> dict[str, Any]:
    detail = {
        "number": outcome.item.number,
        "QuestionID": outcome.item.question.question_id,
        "Question": outcome.item.question.text,
        "status": outcome.status,
        "note": outcome.note,
    }
    figures = figures_in(outcome)
    return detail if figures is None else {**detail, "figures": asdict(figures), **breakdowns(outcome)}


def breakdowns(outcome: Outcome) -> Mapping[str, Any]:
    """The RePASs breakdowns of a scored item, as JSON, by mode: ``paper`` and ``script``."""
    found: Mapping[str, Any] = (outcome.solution or {})["breakdowns"]
    return found
