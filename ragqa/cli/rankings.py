"""Rankings for tuning and training, made or read back under a bar: those that `ragqa eval retrieval` measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragqa import loading
from ragqa.cli.output import progress_bar, stderr
from ragqa.config import Config, RerankingConfig
from ragqa.corpus.questions import GoldQuestion, GoldUnit
from ragqa.evaluation.retrieval.comparing import Result, measured
from ragqa.evaluation.retrieval.rankings import Rankings, open_ranker, rank_all, reread_all
from ragqa.fusion import rerank
from ragqa.indexing import Index
from ragqa.paths import Paths
from ragqa.streams import returned


def rankings_of(
    gold: Sequence[GoldQuestion], index: Index, config: Config
) -> tuple[list[Rankings], dict[str, float | None]]:
    """Each retriever's rankings, ``columns[r][q]``, and its median milliseconds per question where it had to rank."""
    with stderr().status("Loading the encoder"):
        ranker = open_ranker(replace(config, index=index.name), Paths.from_env())
    with progress_bar() as bar:
        task = bar.add_task("Retrieving", total=len(gold))
        return returned(rank_all(ranker, gold), lambda done: bar.update(task, completed=done))


def reranked_results(
    questions: Sequence[GoldQuestion],
    index: Index,
    rankings: Rankings,
    reranking: RerankingConfig,
    weights: Sequence[float],
    unit: GoldUnit = "passage",
) -> tuple[list[Result], float | None]:
    """A result per weight, and the median milliseconds of a question, None where every score was cached.

    Raises ModelError where there is no such reranker or it gives no good answer, and ConfigError for a weight that is
    none or a server's key that is missing.
    """
    chosen = [replace(reranking, weight=weight) for weight in dict.fromkeys(weights)]
    with stderr().status("Loading the reranker"):
        loaded = loading.load_reranker(reranking.model)
        ranker = open_ranker(Config(index.name), Paths.from_env())
    with progress_bar() as bar:
        task = bar.add_task("Reranking", total=len(questions))
        steps = reread_all(ranker, loaded, questions, rankings, reranking.depth)
        scores, milliseconds = returned(steps, lambda done: bar.update(task, completed=done))
    results = []
    for config in chosen:
        reranked = tuple(rerank(ranking, found, config) for ranking, found in zip(rankings, scores, strict=True))
        results.append(measured(f"fused, reranked {config.weight:g}", questions, reranked, unit))
    return results, milliseconds
