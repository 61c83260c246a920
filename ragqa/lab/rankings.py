"""Fused and reranked rankings, question by question, for tuning and training."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ragqa.corpus.questions import GoldQuestion
from ragqa.errors import ConfigError
from ragqa.evaluation.benchmarks.retrieval.comparing import Result, measured
from ragqa.evaluation.benchmarks.retrieval.rankings import Ranker, Rankings, reread_all
from ragqa.fusion import fuse, rerank
from ragqa.index import Index
from ragqa.lab.questions import Fold
from ragqa.plugins.protocols import Reranker
from ragqa.retrieval.ranking import adding_command, fitting_fusion
from ragqa.settings.config import FusionConfig, RerankingConfig
from ragqa.types import Ranking


class Stacking(NamedTuple):
    """A further ranking, the index's rankings that replace it in each fold, if any, and the fusion of all."""

    further: str = ""
    stacked: Sequence[str] = ()
    fusion: FusionConfig | None = None  # None: the default

    def fusion_of(self, index: Index, n_folds: int) -> FusionConfig:
        """The fusion with the index's names. Raises ConfigError if the index lacks a ranking or a fold has none."""
        if self.stacked and not (self.further and len(set(self.stacked)) == len(self.stacked) == n_folds):
            raise ConfigError(
                f"--stacked names one ranking of the index for each of the {n_folds} folds, in their order, and "
                f"--further what they stand for; got {len(self.stacked)}, and --further {self.further!r}"
            )
        manifest = index.manifest
        has = manifest.retrievers
        lacking = [name for name in self.stacked or filter(None, [self.further]) if name not in has]
        if lacking:
            raise ConfigError(
                f"the index has no ranking {lacking[0]!r}, only {', '.join(has)}; build it with "
                f"`{adding_command(lacking, index.name)}`"
            )
        own = [name for name in has if name not in self.stacked]
        rankings = [*own, self.further] if self.stacked else own
        return fitting_fusion(self.fusion or FusionConfig(), rankings, manifest.encoder, index.name)

    def fused(
        self, ranker: Ranker, gold: Sequence[GoldQuestion], fusion: FusionConfig, folds: Sequence[Fold] = ()
    ) -> Generator[int, None, list[Ranking]]:
        """Yields the number of questions done; returns the fused ranking of each.

        If rankings are stacked, each of them replaces the further one for the questions that its fold tests.
        """
        tested = zip((fold.test for fold in folds), self.stacked, strict=True) if self.stacked else [(None, "")]
        found: dict[int, Ranking] = {}
        for places, read in tested:
            of_fold = ranker.without({*self.stacked} - {read})
            for n in range(len(gold)) if places is None else places:
                rows = of_fold.rank(gold[n].question.text).rankings
                rows = tuple(replace(one, retriever=self.further) if one.retriever == read else one for one in rows)
                found[n] = fuse(rows, fusion)
                yield len(found)
        return [found[n] for n in range(len(gold))]


def reranked_results(
    ranker: Ranker,
    reranker: Reranker,
    questions: Sequence[GoldQuestion],
    rankings: Rankings,
    choices: Sequence[RerankingConfig],
) -> Generator[int, None, tuple[list[Result], float | None]]:
    """Yields the number of questions done; returns a result per choice (choices differ only in weights).

    It also returns the median milliseconds per question, None if every score was cached. Raises ModelError.
    """
    scores, milliseconds = yield from reread_all(ranker, reranker, questions, rankings, choices[0].depth)
    results = []
    for config in choices:
        reranked = tuple(rerank(ranking, found, config) for ranking, found in zip(rankings, scores, strict=True))
        results.append(measured(f"fused, reranked {config.weight:g}", questions, reranked))
    return results, milliseconds
