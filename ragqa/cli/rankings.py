"""Rankings for tuning and training, computed or read from storage under a bar, as `ragqa eval retrieval` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragqa import loading
from ragqa.cli.output import counted, stderr
from ragqa.corpus.questions import GoldQuestion
from ragqa.evaluation.benchmarks.retrieval.comparing import Result
from ragqa.evaluation.benchmarks.retrieval.rankings import Ranker, Rankings, open_ranker, rank_all
from ragqa.index import Index
from ragqa.lab import rankings as lab_rankings
from ragqa.lab.questions import Fold
from ragqa.lab.rankings import Stacking
from ragqa.settings.config import Config, RerankingConfig
from ragqa.settings.paths import Paths
from ragqa.types import Ranking


def _ranker(config: Config) -> Ranker:
    with stderr().status("Loading the encoder"):
        return open_ranker(config, Paths.from_env())


def rankings_of(
    gold: Sequence[GoldQuestion], index: Index, config: Config
) -> tuple[list[Rankings], dict[str, float | None]]:
    """Each retriever's rankings, ``columns[r][q]``, and its median milliseconds per question that it had to rank."""
    return counted(rank_all(_ranker(replace(config, index=index.name)), gold), len(gold), "Retrieving")


def fused_rankings(
    gold: Sequence[GoldQuestion], index: Index, reading: Stacking | None = None, folds: Sequence[Fold] = ()
) -> list[Ranking]:
    """The fused ranking of each question; computed rankings are stored as by `ragqa eval retrieval`.

    Raises ConfigError as `Stacking.fusion_of`.
    """
    reading = reading or Stacking()
    fusion = reading.fusion_of(index, len(folds))
    return counted(reading.fused(_ranker(Config(index.name)), gold, fusion, folds), len(gold), "Retrieving")


def reranked_results(
    questions: Sequence[GoldQuestion],
    index: Index,
    rankings: Rankings,
    reranking: RerankingConfig,
    weights: Sequence[float],
) -> tuple[list[Result], float | None]:
    """A result per weight, and the median milliseconds of a question, None if every score was cached.

    Raises ModelError if there is no such reranker or its reply is unusable, and ConfigError for an invalid weight or
    a missing server key.
    """
    choices = [replace(reranking, weight=weight) for weight in dict.fromkeys(weights)]
    with stderr().status("Loading the reranker"):
        loaded = loading.load_reranker(reranking.model)
        ranker = open_ranker(Config(index.name), Paths.from_env())
    steps = lab_rankings.reranked_results(ranker, loaded, questions, rankings, choices)
    return counted(steps, len(questions), "Reranking")
