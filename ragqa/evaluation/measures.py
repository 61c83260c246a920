"""Measures rankings and filters against gold passages, for each question; rankings by `ir-measures`.

A filter is judged by the kept passages, not by their order: F-beta against the gold passages per question, then
averaged. The Competition on Legal Information Extraction/Entailment uses beta 2, which weights recall twice, for
statute law retrieval, because the next step reads the retrieved passages (https://coliee.org/evaluation, task 3). The
same holds here: the generator can ignore a passage, but cannot write from one that it never got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError, CorpusError
from ragqa.filtering import BEST, RULES, FilterRule, Relevances, kept_places, pairs
from ragqa.settings.config import FilteringConfig
from ragqa.types import Ranking, min_max_norm

Floats = npt.NDArray[np.float64]


# As `ir-measures` names them: https://ir-measur.es/en/latest/measures.html
MEASURES = ("R@2", "R@5", "R@10", "R@100", "AP@10", "nDCG@10", "RR@10", "Success@1", "Success@2", "Success@10")
KEPT_FIGURES = ("F", "precision", "recall", "kept")  # of a selection
OVER_QUESTIONS = {"AP": "MAP", "RR": "MRR", "Success": "hit rate"}


def measure_run(
    gold: Sequence[frozenset[str]], run: Sequence[Sequence[str]], measures: Sequence[str] = MEASURES
) -> dict[str, list[float]]:
    """Each measure's values, in [0, 1], one per question in the order of the questions.

    ``gold[i]`` holds the ids of the passages that answer question i, ``run[i]`` the ids found for it, best first; both
    have length n_questions. A repeated id in a ranking counts at its first place only, and later ids move up. A
    question without hits has 0 for all measures; gold that no ranking contains counts as missed.

    The definitions are trec_eval's: AP@10 divides by the number of gold passages, even if there are more than ten; the
    ideal ranking of nDCG@10 ends at rank 10, gain 1 per gold passage, discount log2(1 + rank).

    Raises CorpusError if a question has no gold passage, and ValueError if the lengths differ.
    """
    if len(gold) != len(run):
        raise ValueError(f"expected one ranking per question, found {len(run):,} for {len(gold):,} questions")
    bare = [number for number, ids in enumerate(gold, start=1) if not ids]
    if bare:
        raise CorpusError(
            f"expected gold passages for every question, found none for {len(bare):,} of {len(gold):,}, first for "
            f"question {bare[0]:,}; leave these questions out, or check that the index is of the corpus they are about"
        )
    values = {name: [0.0] * len(gold) for name in measures}
    if not gold or not measures:
        return values
    import ir_measures

    qrels = {str(number): dict.fromkeys(sorted(ids), 1) for number, ids in enumerate(gold)}
    scored = {str(number): _scores(ids) for number, ids in enumerate(run)}
    names = {ir_measures.parse_measure(name): name for name in measures}
    for metric in ir_measures.iter_calc(list(names), qrels, scored):
        values[names[metric.measure]][int(metric.query_id)] = float(metric.value)
    return values


def _scores(ids: Sequence[str]) -> dict[str, float]:
    """Minus the first rank of each id. All scores differ, so libraries have no ties to break."""
    scores: dict[str, float] = {}
    for rank, passage_id in enumerate(ids, start=1):
        scores.setdefault(passage_id, -float(rank))
    return scores


def means(values: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The mean of each measure over the questions; 0 without questions."""
    return {name: fmean(of_questions) if of_questions else 0.0 for name, of_questions in values.items()}


def display_name(measure: str) -> str:
    """The name of the mean over questions: ``"AP@10"`` -> ``"MAP@10"``, ``"Success@1"`` -> ``"hit rate@1"``."""
    name, at, cutoff = measure.partition("@")
    return OVER_QUESTIONS.get(name, name) + at + cutoff


# Filters ------------------------------------------------------------------------------------------------------------


def check_beta(beta: float) -> None:
    """Raises ConfigError unless beta is above 0 and finite."""
    if not 0 < beta < np.inf:
        raise ConfigError(f"beta must be above 0, got {beta}; take 2, where recall counts twice, or 1, and try again")


def kept_figures(
    questions: Sequence[GoldQuestion],
    fused: Iterable[Ranking],
    candidates: Sequence[FilteringConfig],
    beta: float = 2.0,
    unit: GoldUnit = "passage",
    rules: Mapping[str, Callable[[Sequence[float], FilteringConfig], FilterRule]] = RULES,
) -> Iterator[Floats]:
    """For each question in order, the `KEPT_FIGURES` of each filter on its fused ranking, (n_figures, n_filters).

    Filters keep the same passages as `ragqa.filtering.select`. ``F = (1 + beta^2) p r / (beta^2 p + r)``, 0 if nothing
    right is kept (van Rijsbergen 1979, Information Retrieval, chapter 7). If ``unit`` is ``"document"``, p and r count
    the documents of the kept passages. Every question must have gold. Raises ConfigError unless beta is above 0.
    """
    check_beta(beta)
    longest = max(BEST, *(one.top_k for one in candidates))
    for question, ranking in zip(questions, fused, strict=True):
        relevance = Relevances(min_max_norm([hit.score for hit in ranking.hits])[:longest])
        names = [hit.passage.passage_id if unit == "passage" else hit.passage.document_id for hit in ranking.hits]
        is_new = np.array([name not in names[:n] for n, name in enumerate(names[:longest])], bool)
        is_gold = is_new & np.array([name in question.gold for name in names[:longest]], bool)
        paired = pairs(ranking.hits[:longest])
        applied = [rules[config.method](relevance, config) for config in candidates]
        is_kept = np.arange(len(relevance)) < np.array([[rule.end] for rule in applied])
        for row, rule in zip(is_kept, applied, strict=True) if paired else ():
            row[kept_places(rule, paired)] = True
        kept = is_kept.sum(axis=1)
        if unit == "passage":
            n_units, n_right = ((is_kept & flags).sum(axis=1) for flags in (is_new, is_gold))
        else:
            documents = [{names[n] for n in np.flatnonzero(row)} for row in is_kept]
            n_units = np.array([len(kept_of) for kept_of in documents])
            n_right = np.array([len(kept_of & question.gold) for kept_of in documents])
        precision, recall = n_right / np.maximum(1, n_units), n_right / len(question.gold)
        weighted = beta**2 * precision + recall
        f = (1 + beta**2) * precision * recall / np.where(weighted > 0, weighted, 1)
        yield np.array([f, precision, recall, kept])
