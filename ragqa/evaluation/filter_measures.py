"""Measures the passages that filters keep of a ranking against gold passages, for many filters at once. Pure.

A filter is judged by the kept passages, not by their order: F-beta against the gold passages per question, then
averaged. The Competition on Legal Information Extraction/Entailment uses beta 2, which weights recall twice, for
statute law retrieval, because the next step reads the retrieved passages (https://coliee.org/evaluation, task 3). The
same holds here: the generator can ignore a passage, but cannot write from one that it never got.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError
from ragqa.filtering import BEST, RULES, FilterRule, Relevances, kept_places, pairs
from ragqa.settings.config import FilteringConfig
from ragqa.types import Ranking, min_max_norm

KEPT_FIGURES = ("F", "precision", "recall", "kept")  # of a selection


Floats = npt.NDArray[np.float64]


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
