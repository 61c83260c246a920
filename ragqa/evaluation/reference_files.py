"""`results.csv` and `results.txt` as the reference writes them. Pure: breakdowns in, text out.

The reference is RegNLP/RePASs: ``scripts/evaluate_model.py`` (commit ba888af) for the columns and for how numbers are
written; ``RIRAG-SharedTaskEvaluation/RePASs.ipynb`` (commit d68fd63), the one the shared task was evaluated with, for
the averages: over every row of the table, 0.0 where there is none. The script itself averages only what it scored since
it was last started, and gives ``nan`` for nothing.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ragqa.types import Breakdown, ScoringMode

CSV_COLUMNS = ("QuestionID", "entailment_score", "contradiction_score", "obligation_coverage_score", "composite_score")
SCRIPT_DECIMALS = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """One row of the table. ``obligation_coverage`` is the whole number 0 where the passages hold no obligation."""

    entailment: float
    contradiction: float
    obligation_coverage: float
    composite: float

    @property
    def values(self) -> tuple[float, float, float, float]:
        """In the order of the columns."""
        return (self.entailment, self.contradiction, self.obligation_coverage, self.composite)


def figures_of(evaluation: Breakdown) -> Figures:
    """The row of a breakdown, in its own mode.

    Mode ``script`` rounds E and C to 5 decimals, leaves OC as it is and rounds the composite of these three to 5
    decimals, as ``calculate_final_composite_score`` of the reference does. (`RePASs` of a breakdown rounds OC as well,
    which moves a composite by less than 0.000002.) Mode ``paper`` rounds nothing.
    """
    parts = evaluation.repass
    covered = [score.covered for score in evaluation.obligations]
    coverage = sum(covered) / len(covered) if covered else 0
    if evaluation.mode is ScoringMode.PAPER:
        return Figures(parts.entailment, parts.contradiction, coverage, parts.composite)
    composite = np.round((coverage + parts.entailment - parts.contradiction + 1) / 3, SCRIPT_DECIMALS)
    return Figures(parts.entailment, parts.contradiction, coverage, float(composite))


def averages(rows: Sequence[Figures]) -> Figures:
    """The mean of every column, by numpy's summation as in the reference; zeros without rows."""
    if not rows:
        return Figures(0.0, 0.0, 0.0, 0.0)
    return Figures(*(float(np.mean(column)) for column in zip(*(row.values for row in rows), strict=True)))


def csv_text(rows: Iterable[tuple[str, Figures]]) -> str:
    """The table of (QuestionID, figures), every number in the fewest digits that give it back exactly."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    writer.writerows((question_id, *figures.values) for question_id, figures in rows)
    return out.getvalue()


def averages_text(means: Figures) -> str:
    """The four lines of ``results.txt``."""
    return (
        f"Average Entailment Score: {means.entailment}\n"
        f"Average Contradiction Score: {means.contradiction}\n"
        f"Average Obligation Coverage Score: {means.obligation_coverage}\n"
        f"Average Final Composite Score: {means.composite}\n"
    )
