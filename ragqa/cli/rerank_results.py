"""A ranking reranked with several weights, measured: for `ragqa eval retrieval` and `ragqa train reranker`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragqa.cli.evaluate_retrieval import drawn
from ragqa.cli.output import progress_bar, stderr
from ragqa.config import RerankingConfig
from ragqa.paths import Paths

if TYPE_CHECKING:
    from ragqa.corpus.questions import GoldQuestion, GoldUnit
    from ragqa.evaluation.retrieval import Rankings, Result
    from ragqa.indexing import Index


def reranked_results(
    questions: Sequence[GoldQuestion],
    index: Index,
    rankings: Rankings,
    reranking: RerankingConfig,
    weights: Sequence[float],
    unit: GoldUnit = "passage",
    name: str = "fused",
) -> tuple[list[Result], float | None]:
    """A result per weight, and the median milliseconds of a question, None where the scores were kept from before.

    ``name`` is that of ``rankings``, one per question. Raises ModelError where there is no such reranker or it
    gives no good answer, and ConfigError for a weight that is none or a server's key that is missing.
    """
    from ragqa.evaluation.ranking_cache import RankingCache
    from ragqa.evaluation.reranking import read_all, reranked
    from ragqa.evaluation.retrieval import measured
    from ragqa.loading import load_reranker

    chosen = [replace(reranking, weight=weight) for weight in dict.fromkeys(weights)]
    with stderr().status("Loading the reranker"):
        loaded = load_reranker(reranking.model)
    cache = RankingCache(Paths.from_env().home / "rankings")
    with progress_bar() as bar:
        steps = read_all(questions, index, rankings, loaded, reranking.depth, cache)
        scores, milliseconds = drawn(steps, bar, "reranker", len(questions))
    results = [
        measured(f"{name}, reranked {config.weight:g}", questions, reranked(rankings, scores, config), unit)
        for config in chosen
    ]
    return results, milliseconds
