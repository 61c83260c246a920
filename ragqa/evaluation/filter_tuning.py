"""Which threshold and max drop of the filter keep the right passages, by cross-validation. Pure.

A filter is judged by what it keeps, not by an order: F-beta of the kept passages against the gold ones, per question,
then averaged. beta 2, recall counting twice, is what the Competition on Legal Information Extraction/Entailment takes
for retrieving statute law, because what is retrieved is read by the next step (https://coliee.org/evaluation, task 3);
so it is here: the generator can leave a passage out, and cannot write from one it never got. AUEB 4.2 chose its filter
by RePASs instead, which needs a language model, and rewards an answer that says little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragqa.config import FilteringConfig
from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError
from ragqa.evaluation.folds import Floats, Fold, choose
from ragqa.evaluation.significance import PairedTest, paired_test
from ragqa.normalisation import min_max_norm
from ragqa.types import Ranking

FIGURES = ("F", "precision", "recall", "kept")  # of a selection; F decides
THRESHOLDS = tuple(n / 20 for n in range(21))  # AUEB table 3 tried steps of .05
MAX_DROPS = (*(n / 20 for n in range(1, 11)), 1.0)  # 1: no such rule


@dataclass(frozen=True, slots=True)
class FilterFold:
    """The filter best on a fold's train set, and the mean F of it and of the default over the test set, in [0, 1]."""

    chosen: FilteringConfig
    tuned: float
    default: float


@dataclass(frozen=True, slots=True)
class TunedFilter:
    """What cross-validation found. ``final`` is best on all questions, for the ranking that is best on them.

    ``tuned`` and ``default`` are means of `FIGURES` (``kept`` in passages, the others in [0, 1]), each question's taken
    where it is tested, both filters on the same ranking. ``test`` compares the two in F.
    """

    beta: float
    folds: tuple[FilterFold, ...]
    tuned: dict[str, float]
    default: dict[str, float]
    test: PairedTest
    final: FilteringConfig


def filters(default: FilteringConfig) -> tuple[FilteringConfig, ...]:
    """Every threshold 0, .05, ... 1 with every max drop .05, .1, ... .5 and 1 (off), and the default last: 232.

    All keep at most as many passages as the default: a longer list would cost every answer more.
    """
    return (*(FilteringConfig(low, drop, default.top_k) for low in THRESHOLDS for drop in MAX_DROPS), default)


def check_beta(beta: float) -> None:
    """Raises ConfigError unless beta is above 0 and finite."""
    if not 0 < beta < np.inf:
        msg = f"beta must be above 0, got {beta}; take 2, where recall counts twice, or 1, and try again"
        raise ConfigError(msg)


def kept_figures(
    questions: Sequence[GoldQuestion],
    fused: Iterable[Ranking],
    candidates: Sequence[FilteringConfig],
    beta: float = 2.0,
    unit: GoldUnit = "passage",
) -> Iterator[Floats]:
    """For each question in order `FIGURES` of what each filter keeps of its fused ranking, (n_figures, n_filters).

    What is kept is what `ragqa.filtering.select` keeps. ``F = (1 + beta^2) p r / (beta^2 p + r)``, 0 where nothing
    right is kept (van Rijsbergen 1979, Information Retrieval, chapter 7). Where ``unit`` is ``"document"``, p and r
    count the documents of the kept passages. Every question has gold. Raises ConfigError unless beta is above 0.
    """
    check_beta(beta)
    threshold, drop, top_k = (
        np.array([[getattr(one, name)] for one in candidates], float) for name in ("threshold", "max_drop", "top_k")
    )
    longest = int(top_k.max())
    for question, ranking in zip(questions, fused, strict=True):
        relevance = np.array(min_max_norm([hit.score for hit in ranking.hits])[:longest], float)
        names = [hit.passage.passage_id if unit == "passage" else hit.passage.document_id for hit in ranking.hits]
        is_new = np.array([name not in names[:n] for n, name in enumerate(names[:longest])], bool)
        is_gold = is_new & np.array([name in question.gold for name in names[:longest]], bool)
        fall = -np.diff(relevance)
        goes_on = (relevance[1:] >= threshold) & ((drop >= 1) | (fall < drop))
        goes_on &= np.arange(2, len(relevance) + 1) <= top_k
        kept = min(1, len(relevance)) + np.cumprod(goes_on, axis=1).sum(axis=1)
        n_units, n_right = (np.concatenate([[0], np.cumsum(flags)])[kept] for flags in (is_new, is_gold))
        precision, recall = n_right / np.maximum(1, n_units), n_right / len(question.gold)
        weighted = beta**2 * precision + recall
        f = (1 + beta**2) * precision * recall / np.where(weighted > 0, weighted, 1)
        yield np.array([f, precision, recall, kept])


def tune_filter(
    figures: Sequence[Floats],
    candidates: Sequence[FilteringConfig],
    folds: Sequence[Fold],
    beta: float = 2.0,
    seed: int = 0,
) -> TunedFilter:
    """The filter best on each fold's train set for the ranking chosen there, measured on its test set.

    ``figures[k]`` is what `kept_figures` gave for the ranking that fold k chose, (n_questions, n_figures, n_filters),
    the last of them for the ranking chosen on all questions; the last filter is the default. So nothing a question is
    tested with was chosen on it, neither its ranking nor its filter. Of filters equal on a train set the one nearest
    the default is taken (Euclidean). ``seed`` is the test's, 0 or more.
    """
    *by_fold, of_all = figures
    default = candidates[-1]
    distance = np.array(
        [np.hypot(one.threshold - default.threshold, one.max_drop - default.max_drop) for one in candidates[:-1]]
    )
    out_of_fold = np.empty((2, *of_all.shape[:2]))
    rows = []
    for fold, values in zip(folds, by_fold, strict=True):
        test = list(fold.test)
        (best,) = choose(values[:, :, :-1], (fold,), distance).by_fold
        out_of_fold[:, test] = values[test][:, :, [best, -1]].transpose(2, 0, 1)
        rows.append(FilterFold(candidates[best], *out_of_fold[:, test, 0].mean(axis=1).tolist()))
    final = choose(of_all[:, :, :-1], folds, distance).by_all
    tuned, base = (dict(zip(FIGURES, row, strict=True)) for row in out_of_fold.mean(axis=1).tolist())
    paired = paired_test(out_of_fold[0, :, 0].tolist(), out_of_fold[1, :, 0].tolist(), seed)
    return TunedFilter(beta, tuple(rows), tuned, base, paired, candidates[final])
