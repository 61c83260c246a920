"""Chooses index, depth, fusion and filter by cross-validation on questions with gold passages. Pure.

Every fusion is measured once per question (`measured`) with numpy, with the same results as `ragqa.fusion.fuse` and
`ragqa.evaluation.measures.measure_run`. Choosing among them (`tune`) is arithmetic on that table.

A filter is judged by F-beta of the passages that it keeps (`ragqa.evaluation.measures`). AUEB 4.2 chose its
filter by RePASs instead, which needs a language model, and rewards an answer that says little.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.errors import ConfigError, IndexingError
from ragqa.evaluation.benchmarks.retrieval.rankings import Rankings
from ragqa.evaluation.measures import KEPT_FIGURES
from ragqa.evaluation.significance import PairedTest, paired_test
from ragqa.fusion import RRF_K
from ragqa.lab.questions import Floats, Fold, choose
from ragqa.settings.config import FilteringConfig, FusionConfig, settings_at
from ragqa.settings.schema import Place
from ragqa.types import min_max_norm

MOST_CANDIDATES = 6_000  # two measures of 2,788 questions are then 0.3 GB; three rankings at step .01 are 5,151
NUMBERS_AT_ONCE = 250_000  # in one array of scores: 2 MB, about the cache of a core
BY_MEASURE = re.compile(r"(AP|R|nDCG|RR|Success)@([1-9]\d{0,3})")
THRESHOLDS = tuple(n / 20 for n in range(21))  # AUEB table 3 tried steps of .05
TUNED = tuple(one for one in settings_at(Place.ALL, "filtering") if one.under)  # the limits, of `filters`
MAX_DROPS = (*(n / 20 for n in range(1, 11)), 1.0)  # 1 switches the rule off

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class RankingSetting:
    """How passages are ranked: the index, the number of candidates per retriever (1 to 1000) and the fusion."""

    index: str
    depth: int
    fusion: FusionConfig


@dataclass(frozen=True, slots=True)
class TunedFold(Generic[Choice]):
    """The best choice on a fold's train set, with its mean and the default's over the test set, in [0, 1]."""

    chosen: Choice
    tuned: float
    default: float


@dataclass(frozen=True, slots=True)
class Tuned:
    """The result of cross-validation. ``final`` is best on all questions, and to be used if it beats the default.

    ``tuned`` and ``default`` are means by measure in [0, 1], each question's value taken where it is tested. ``test``
    compares the two in ``measure``; it treats questions that share gold as independent, so p near 0.05 decides nothing.
    """

    measure: str
    folds: tuple[TunedFold[RankingSetting], ...]
    tuned: dict[str, float]
    default: dict[str, float]
    test: PairedTest
    final: RankingSetting


def candidates(retrievers: Sequence[str], step: float = 0.05) -> tuple[FusionConfig, ...]:
    """Every weighted sum with weights 0, step, 2 step, ... 1 that sum to 1, then RRF over all of these retrievers.

    Three retrievers and .05 give 231 and 1. Raises ConfigError if ``step`` is not 1 divided by a whole number, or if
    there would be no weighted sum or more than 6,000.
    """
    parts, borders = round(1 / step) if 1e-6 < step <= 1 else 0, len(retrievers) - 1
    whole = parts > 0 and borders >= 0 and abs(parts * step - 1) < 1e-9
    if not whole or math.comb(parts + borders, borders) > MOST_CANDIDATES:
        wanted = f"1 divided by a whole number, and give 1 to {MOST_CANDIDATES:,} weighted sums"
        msg = f"step must be {wanted} of {len(retrievers)} rankings, got {step}; take 0.05, or 0.1, and try again"
        raise ConfigError(msg)
    sums = []
    for bars in combinations(range(parts + borders), borders):  # stars and bars: the gaps are the shares
        shares = (np.diff((-1, *bars, parts + borders)) - 1).tolist()
        sums.append(FusionConfig("wsum", {name: share / parts for name, share in zip(retrievers, shares, strict=True)}))
    return (*sums, FusionConfig.of("rrf", **dict.fromkeys(retrievers, 1.0)))


def check_measure(name: str) -> tuple[str, int]:
    """``"AP@10"`` -> ``("AP", 10)``. Raises ConfigError unless it is AP, R, nDCG, RR or Success at 1 to 9999."""
    found = BY_MEASURE.fullmatch(name)
    if not found:
        msg = f"measure must be AP, R, nDCG, RR or Success with a cutoff, as AP@10, got {name!r}; correct it"
        raise ConfigError(msg)
    return found[1], int(found[2])


def measured(
    questions: Sequence[GoldQuestion],
    columns: Sequence[Rankings],
    fusions: Sequence[FusionConfig],
    measures: Sequence[str],
    unit: GoldUnit = "passage",
) -> Iterator[Floats]:
    """For each question in order, each measure in [0, 1] under each fusion, of shape (n_measures, n_fusions).

    ``columns[r][q]`` is ranking r of question q. The values equal those of fusing and measuring one by one, including
    ties by passage id and missing gold; ``unit`` as in `ragqa.evaluation.benchmarks.retrieval.evaluate`. Every question
    must have gold (`folds_by_gold` checks it). Raises ConfigError for an unknown measure, IndexingError for a score
    that is not finite.
    """
    parsed = [check_measure(name) for name in measures]
    names = [column[0].retriever for column in columns if column]
    weights = np.array([[fusion.weights.get(name, 0.0) for name in names] for fusion in fusions])
    by_rank = np.array([[fusion.method == "rrf"] for fusion in fusions])
    weights = np.hstack([np.where(by_rank, 0.0, weights), by_rank & (weights > 0)])
    for question, *rankings in zip(questions, *columns, strict=True):
        ranks = np.sort(_gold_ranks(tuple(rankings), weights, question.gold, unit), axis=1)
        yield np.array([_value(name, cutoff, ranks, len(question.gold)) for name, cutoff in parsed])


def _gold_ranks(rankings: Rankings, weights: Floats, gold: frozenset[str], unit: GoldUnit) -> Floats:
    """The rank of each gold unit under each fusion, from 1, infinity if it is not found: (n_fusions, n_gold)."""
    found = (hit.passage for ranking in rankings for hit in ranking.hits)
    pairs = sorted({(one.passage_id if unit == "passage" else one.document_id, one.passage_id) for one in found})
    units, names = [name for name, _ in pairs], [name for _, name in pairs]  # passages of a unit lie together
    at = [n for n, name in enumerate(units) if not n or units[n - 1] != name]  # the first position of each unit
    column_of = {units[n]: column for column, n in enumerate(at)}
    order = np.array(names, dtype=object).argsort().argsort()  # rank by passage id, which decides ties
    parts, present = _contributions(rankings, names)
    finds = np.array([ranking.finds for ranking in rankings] * 2)
    ranks = np.full((len(weights), len(gold)), np.inf)
    block = max(1, NUMBERS_AT_ONCE // max(1, len(names)))
    for begin in range(0, len(weights) if gold & column_of.keys() else 0, block):
        scores = _fused(weights[begin : begin + block], parts, present, finds)
        best = np.maximum.reduceat(scores, at, axis=1)  # a document has the rank of its best passage
        is_best = scores == np.repeat(best, np.diff((*at, len(names))), axis=1)
        first = np.minimum.reduceat(np.where(is_best, order, len(names)), at, axis=1)
        for column, name in enumerate(gold & column_of.keys()):
            own, own_first = (each[:, [column_of[name]]] for each in (best, first))
            ahead = np.count_nonzero((best > own) | ((best == own) & (first < own_first)), axis=1)
            ranks[begin : begin + block, column] = np.where(np.isneginf(own[:, 0]), np.inf, 1 + ahead)
    return ranks


def _contributions(rankings: Rankings, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Each ranking's addition to each passage, by score, then by rank, and 1 if it has it: (2 n_rankings, n) twice."""
    by_score, by_rank, present = np.zeros((3, len(rankings), len(names)))
    column = {name: n for n, name in enumerate(names)}
    for row, ranking in enumerate(rankings):
        at = [column[hit.passage.passage_id] for hit in ranking.hits]
        by_score[row, at] = min_max_norm([hit.score for hit in ranking.hits], ranking.bounds)
        by_rank[row, at] = 1 / (RRF_K + np.arange(1, len(at) + 1))
        present[row, at] = 1
        if not np.isfinite(by_score[row]).all():
            msg = f"expected finite scores from retriever {ranking.retriever!r}; check with `ragqa index verify`"
            raise IndexingError(msg)
    return np.vstack([by_score, by_rank]), np.vstack([present, present])


def _fused(weights: Floats, parts: Floats, present: Floats, finds: npt.NDArray[np.bool_]) -> Floats:
    """Fused scores (n_fusions, n), minus infinity for a passage that `ragqa.fusion.fuse` leaves out.

    The sums of rounded products are exact, like those of `math.fsum`; otherwise ties would be lost: Ogita, Rump and
    Oishi 2005, Accurate Sum and Dot Product, algorithm 4.4 (Sum2), https://doi.org/10.1137/030601818.
    """
    total, lost = np.zeros((2, len(weights), parts.shape[1]))
    for weight, part in zip(weights.T, parts, strict=True):
        rows = np.flatnonzero(weight)
        before, term = total[rows], np.multiply.outer(weight[rows], part)
        after = before + term
        of_term = after - before
        lost[rows] += (before - (after - of_term)) + (term - of_term)
        total[rows] = after
    finding = (weights > 0) & finds
    found = np.where(finding.any(axis=1, keepdims=True), finding, weights > 0) @ present
    return np.where(found > 0, total + lost, -np.inf)


def _value(name: str, cutoff: int, ranks: Floats, n_gold: int) -> Floats:
    """A measure, as trec_eval defines it, of gold found at these ascending ranks (n_fusions, n_gold): (n_fusions,)."""
    nth = np.arange(1, n_gold + 1)
    gain, ideal = {
        "R": (np.ones(n_gold), n_gold),
        "AP": (nth / ranks, n_gold),
        "nDCG": (1 / np.log2(1 + ranks), np.sum(1 / np.log2(1 + nth[:cutoff]))),
        "RR": ((nth == 1) / ranks, 1),
        "Success": (nth == 1, 1),
    }[name]
    return np.asarray(np.where(ranks <= cutoff, gain, 0).sum(axis=1) / ideal)


def tune(
    values: Floats, settings: Sequence[RankingSetting], measures: Sequence[str], folds: Sequence[Fold], seed: int = 0
) -> Tuned:
    """The best setting on each fold's train set, compared with the default on its test set.

    ``values[q]`` is what `measured` gave for question q, in all (n_questions, n_measures, n_settings). The first
    measure decides; the last setting is the default, which is compared with but not chosen. Of equal settings on a
    train set, the one nearest the default is chosen: its index, then its depth, then its fusion (Euclidean, shares of
    the same rankings; RRF last). ``seed`` is the test's, 0 or more.
    """
    chosen = choose(values[:, :, :-1], folds, _places(settings[:-1], settings[-1]))
    both = np.stack([chosen.out_of_fold, values[:, :, -1]])
    pairs = zip(folds, chosen.by_fold, strict=True)
    rows = [TunedFold(settings[best], *both[:, list(fold.test), 0].mean(axis=1).tolist()) for fold, best in pairs]
    tuned, default = (dict(zip(measures, row, strict=True)) for row in both.mean(axis=1).tolist())
    test = paired_test(both[0, :, 0].tolist(), both[1, :, 0].tolist(), seed)
    return Tuned(measures[0], tuple(rows), tuned, default, test, settings[chosen.by_all])


def _places(settings: Sequence[RankingSetting], default: RankingSetting) -> Floats:
    """Each setting's rank by distance from the default; equal distances have equal ranks."""
    keys = [
        (one.index != default.index, abs(math.log(one.depth / default.depth)), _distance(one.fusion, default.fusion))
        for one in settings
    ]
    place = {key: float(n) for n, key in enumerate(sorted(set(keys)))}
    return np.array([place[key] for key in keys])


def _distance(fusion: FusionConfig, default: FusionConfig) -> float:
    if fusion.method != default.method:
        return math.inf
    total = math.fsum(default.weights.get(name, 0.0) for name in fusion.weights) or 1.0
    return math.hypot(*(share - default.weights.get(name, 0.0) / total for name, share in fusion.weights.items()))


# The filter --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TunedFilter:
    """The result of cross-validation. ``final`` is the best filter on all questions, for the best ranking on them.

    ``tuned`` and ``default`` are means of `KEPT_FIGURES` (``kept`` in passages, the others in [0, 1]), with each
    question's value taken where it is tested, and both filters on the same ranking. ``test`` compares the two in F.
    """

    beta: float
    folds: tuple[TunedFold[FilteringConfig], ...]
    tuned: dict[str, float]
    default: dict[str, float]
    test: PairedTest
    final: FilteringConfig

    @property
    def measure(self) -> str:
        """``"F2"``."""
        return f"F{self.beta:g}"


def filters(default: FilteringConfig) -> tuple[FilteringConfig, ...]:
    """Every threshold 0, .05, ... 1 with every max drop .05, .1, ... .5 and 1 (off), and the default last: 232.

    All keep at most as many passages as the default, because a longer list would make every answer costlier.
    """
    return (*(FilteringConfig(low, drop, default.top_k) for low in THRESHOLDS for drop in MAX_DROPS), default)


def tune_filter(
    figures: Sequence[Floats],
    candidates: Sequence[FilteringConfig],
    folds: Sequence[Fold],
    beta: float = 2.0,
    seed: int = 0,
) -> TunedFilter:
    """The best filter on each fold's train set for the ranking chosen there, measured on its test set.

    ``figures[k]`` is what `kept_figures` gave for the ranking that fold k chose, (n_questions, n_figures, n_filters),
    the last of them for the ranking chosen on all questions; the last filter is the default. So neither the ranking nor
    the filter that a question is tested with was chosen on it. Of equal filters on a train set, the one nearest the
    default is chosen (Euclidean). ``seed`` is the test's, 0 or more.
    """
    *by_fold, of_all = figures
    default = candidates[-1]
    distance = np.array(
        [
            np.hypot(*(getattr(each, one.field) - getattr(default, one.field) for one in TUNED))
            for each in candidates[:-1]
        ]
    )
    out_of_fold = np.empty((2, *of_all.shape[:2]))
    rows = []
    for fold, values in zip(folds, by_fold, strict=True):
        test = list(fold.test)
        (best,) = choose(values[:, :, :-1], (fold,), distance).by_fold
        out_of_fold[:, test] = values[test][:, :, [best, -1]].transpose(2, 0, 1)
        rows.append(TunedFold(candidates[best], *out_of_fold[:, test, 0].mean(axis=1).tolist()))
    final = choose(of_all[:, :, :-1], folds, distance).by_all
    tuned, base = (dict(zip(KEPT_FIGURES, row, strict=True)) for row in out_of_fold.mean(axis=1).tolist())
    paired = paired_test(out_of_fold[0, :, 0].tolist(), out_of_fold[1, :, 0].tolist(), seed)
    return TunedFilter(beta, tuple(rows), tuned, base, paired, candidates[final])
