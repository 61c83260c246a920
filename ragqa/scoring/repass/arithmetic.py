"""The RePASs formulas, each once, in both modes. Pure: probabilities in, numbers out; no model, no text.

Sources: mode ``paper`` is RIRAG (Gokhan et al. 2024) section 4, equations 1 to 4; mode ``script`` is the reference
implementation, RegNLP/RePASs ``scripts/evaluate_model.py``, from which published leaderboard figures come. The script's
further oddities are named where they apply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragqa.types.scores import NliProbabilities, RePASs, ScoringMode, Verdict

Matrix = npt.NDArray[np.float64]

SCRIPT_DECIMALS = 5
SUM_TOLERANCE = 1e-3  # a softmax in fp32 is right to 1e-6, one in half precision to 5e-4


def is_probabilities(pair: NliProbabilities) -> bool:
    """Whether each of the three is a number in [0, 1]."""
    values = (pair.contradiction, pair.entailment, pair.neutral)
    return all(math.isfinite(value) and 0.0 <= value <= 1.0 for value in values)


def is_distribution(pair: NliProbabilities) -> bool:
    """Whether they also sum to 1, within 0.001."""
    return is_probabilities(pair) and abs(pair.contradiction + pair.entailment + pair.neutral - 1.0) <= SUM_TOLERANCE


def mean_of_maxima(matrix: Matrix) -> float:
    """E or C: the mean over the answer sentences of the maximum over the source sentences (RIRAG equations 1 and 2).

    ``E = 1/N sum_i max_j P(entailment | premise = source sentence j, hypothesis = answer sentence i)``, and C likewise
    with P(contradiction). ``matrix`` has shape (n_source_sentences, n_answer_sentences); the result lies in [0, 1].
    Without a source sentence or without an answer sentence it is 0, as in the script.
    """
    if matrix.size == 0:
        return 0.0
    return float(np.mean(np.max(matrix, axis=0)))


def first_maximum(values: Sequence[float]) -> int | None:
    """Position of the largest value, the first one at a tie; None where there is no value."""
    return max(range(len(values)), key=values.__getitem__, default=None)


def verdict(entailment: float, contradiction: float, threshold: float) -> Verdict:
    """The raw verdict by the two maxima of an answer sentence; a maximum equal to the threshold counts."""
    if entailment >= threshold:
        return Verdict.DISPUTED if contradiction >= threshold else Verdict.SUPPORTED
    return Verdict.CONTRADICTED if contradiction >= threshold else Verdict.UNSUPPORTED


def covers(pair: NliProbabilities, threshold: float, mode: ScoringMode) -> bool:
    """Whether an answer sentence (premise) covers an obligation (hypothesis): P(entailment) > threshold, strictly.

    Mode ``script`` also requires entailment to be the arg-max, which matters only for thresholds below 0.5. Entailment
    loses ties there, because it is the last label of the script's coverage model.
    """
    if not pair.entailment > threshold:
        return False
    return mode is ScoringMode.PAPER or pair.entailment > max(pair.contradiction, pair.neutral)


@dataclass(frozen=True, slots=True)
class ObligationMatch:
    """How well an obligation is covered, and by which of the answer sentences looked at (None: there was none)."""

    covered: bool
    best: float
    position: int | None


def best_cover(pairs: Sequence[NliProbabilities], threshold: float, mode: ScoringMode) -> ObligationMatch:
    """The answer sentence with the highest P(entailment) for one obligation, the first one at a tie.

    ``pairs`` are those of the answer sentences the mode looks at: all in ``paper``, only obligations in ``script``.
    Where some sentences cover the obligation, the best is chosen among them, so that the sentence named does cover it.
    """
    covering = [covers(pair, threshold, mode) for pair in pairs]
    eligible = [n for n, does in enumerate(covering) if does] or list(range(len(pairs)))
    chosen = first_maximum([pairs[n].entailment for n in eligible])
    if chosen is None:
        return ObligationMatch(covered=False, best=0.0, position=None)
    position = eligible[chosen]
    return ObligationMatch(covered=covering[position], best=pairs[position].entailment, position=position)


def obligation_coverage(covered: Sequence[bool]) -> float:
    """OC: the share of the source obligations that are covered (RIRAG equation 3), in [0, 1].

    Without a source obligation it is 0 in both modes. The paper's formula is 0/0 there; the script says 0, and any
    other value would let passages without an obligation raise the composite.
    """
    return sum(covered) / len(covered) if covered else 0.0


def repass_of(entailing: Matrix, contradicting: Matrix, covered: Sequence[bool], mode: ScoringMode) -> RePASs:
    """The scores of these pair probabilities, each matrix of shape (n_source_sentences, n_answer_sentences)."""
    return repass(mean_of_maxima(entailing), mean_of_maxima(contradicting), obligation_coverage(covered), mode)


def repass(entailment: float, contradiction: float, coverage: float, mode: ScoringMode) -> RePASs:
    """The three parts together; `RePASs.composite` is (E - C + OC + 1) / 3 (RIRAG equation 4).

    Mode ``script`` rounds each part to 5 decimals before the composite, and halves to even as numpy does. The script
    itself leaves OC unrounded, which moves the composite by less than 0.000002 and changes none of the 34 published
    composites we hold.
    """
    if mode is ScoringMode.PAPER:
        return RePASs(entailment, contradiction, coverage)
    return RePASs(*(float(np.round(part, SCRIPT_DECIMALS)) for part in (entailment, contradiction, coverage)))
