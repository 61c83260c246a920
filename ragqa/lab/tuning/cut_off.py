"""Refits the weights of the dynamic cut-off, `ragqa.filtering.CUT_WEIGHTS`, and measures them out of fold.

Nothing is written; to use the printed weights, copy them into `filtering.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import CorpusError
from ragqa.evaluation.measures import Floats, kept_figures
from ragqa.filtering import RULES, CutRule, features
from ragqa.lab.questions import Fold
from ragqa.settings.config import FilteringConfig
from ragqa.types import Ranking, min_max_norm

FILTERS = (FilteringConfig(), FilteringConfig(method="expected-f2"))


def fitted(gold: Sequence[GoldQuestion], fused: Sequence[Ranking], counts: Sequence[float]) -> dict[str, float]:
    """A logistic regression of relevance over the best ten passages of each question, weighted by ``counts``.

    Raises CorpusError if none of them, or all of them, are gold.
    """
    from sklearn.linear_model import LogisticRegression

    rows, labels, weights = [], [], []
    for question, ranking, count in zip(gold, fused, counts, strict=True):
        found = features(min_max_norm([hit.score for hit in ranking.hits]))
        rows += [list(row.values()) for row in found]
        labels += [hit.passage.passage_id in question.gold for hit in ranking.hits[: len(found)]]
        weights += [count] * len(found)
    if len(set(labels)) < 2:
        msg = f"expected gold passages and others among the best ten of {len(gold):,} questions, found one kind"
        msg += "; give more questions, or the index that they were asked of"
        raise CorpusError(msg)
    model = LogisticRegression(C=1e3, max_iter=500).fit(rows, labels, sample_weight=weights)
    names = list(features([1.0])[0])
    return {"bias": float(model.intercept_[0]), **dict(zip(names, map(float, model.coef_[0]), strict=True))}


def out_of_fold(
    gold: Sequence[GoldQuestion], fused: Sequence[Ranking], counts: Sequence[float], folds: Sequence[Fold]
) -> Floats:
    """The figures of the limits and of the cut-off, (n_questions, n_figures, 2), by weights of the other folds."""
    found = np.empty((len(gold), 4, len(FILTERS)))
    for fold in folds:
        learnt, tested = list(fold.train), list(fold.test)
        weights = fitted([gold[n] for n in learnt], [fused[n] for n in learnt], [counts[n] for n in learnt])
        rules = RULES | {"expected-f2": partial(CutRule, weights=weights)}
        figures = kept_figures([gold[n] for n in tested], [fused[n] for n in tested], FILTERS, rules=rules)
        found[tested] = np.stack(list(figures))
    return found
