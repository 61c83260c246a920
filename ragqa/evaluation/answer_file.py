"""Scores one answer of a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragqa.corpus.answers import AnswerItem
from ragqa.generation.answers import answer_of_text, passages_of_texts
from ragqa.plugins.protocols import Scorer
from ragqa.settings.scoring import SplitterName
from ragqa.types.events.scoring import Scored
from ragqa.types.scores import Breakdown, ScoringMode
from ragqa.types.streams import returned

SCRIPT_DECIMALS = 5


def score_item(item: AnswerItem, scorer: Scorer, splitter: SplitterName = "nupunkt") -> Scored:
    """The breakdown of one answer, computed as on the page. Raises ScoringError."""
    return returned(scorer.stream(answer_of_text(item.answer, splitter), passages_of_texts(item.passages)))


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """The scores of one answer. ``obligation_coverage`` is the integer 0 if the passages hold no obligation."""

    entailment: float
    contradiction: float
    obligation_coverage: float
    composite: float

    @property
    def values(self) -> tuple[float, float, float, float]:
        """The four scores in the order of the fields."""
        return (self.entailment, self.contradiction, self.obligation_coverage, self.composite)


def figures_of(evaluation: Breakdown) -> AnswerScores:
    """The scores of a breakdown, in its own mode.

    Mode ``script`` rounds E and C to 5 decimals, leaves OC unrounded and rounds the composite of these three to 5
    decimals, as ``calculate_final_composite_score`` of RegNLP/RePASs ``scripts/evaluate_model.py`` (ba888af) does.
    (`RePASs` of a breakdown rounds OC as well, which moves a composite by less than 0.000002.) Mode ``paper`` rounds
    nothing.
    """
    parts = evaluation.repass
    covered = [score.covered for score in evaluation.obligations]
    coverage = sum(covered) / len(covered) if covered else 0
    if evaluation.mode is ScoringMode.PAPER:
        return AnswerScores(parts.entailment, parts.contradiction, coverage, parts.composite)
    composite = np.round((coverage + parts.entailment - parts.contradiction + 1) / 3, SCRIPT_DECIMALS)
    return AnswerScores(parts.entailment, parts.contradiction, coverage, float(composite))
